//! A rotation under steady load: secrets come, stay and go while deliveries arrive without pause, and none that
//! is signed by a secret valid throughout is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookgate_webhook::Provider;
use tokio::task::JoinHandle;

use crate::embedded::Embedded;
use crate::patience::until;
use crate::provider::{self, Signed};
use crate::raw::{self, Raw};
use crate::secret_file::{SecretFile, reloads, used};

const OLD: &str = "whsec_the_old_secret";
const NEW: &str = "whsec_the_new_secret";
const LASTING: &str = "whsec_the_lasting_secret";

/// An event that nobody has seen before, signed by this secret.
fn signed_by(secret: &str) -> Signed {
    let event = provider::fresh();
    let mut signed = provider::sign(Provider::Stripe, secret, "", &event.body);
    signed.event_id = event.event_id;
    signed
}

/// Deliveries one after the other, until it is ended.
struct Load {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<u64>,
}

impl Load {
    fn start(replica: &Arc<Embedded>, secret: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ending, replica) = (Arc::clone(&stop), Arc::clone(replica));
        let sender = tokio::spawn(async move {
            let mut sent = 0;
            while !ending.load(Ordering::Relaxed) {
                let answer = replica.deliver(&signed_by(secret)).await;
                assert!(answer.is_ok(false), "signed by {secret}: {answer:?}");
                sent += 1;
            }
            sent
        });
        Self { stop, sender }
    }

    /// How many were sent; each was accepted.
    async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.await.expect("no delivery was refused")
    }
}

/// How a gateway hears of other secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Sighup,
    FileChange,
}

struct Scene {
    replica: Arc<Embedded>,
    file: SecretFile,
    by: By,
    _directory: tempfile::TempDir,
}

impl Scene {
    async fn start(by: By, secrets: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = SecretFile::new(&directory, secrets);
        let poll = match by {
            By::Sighup => "off",
            By::FileChange => "100ms",
        };
        let settings = [
            ("HOOKGATE_SECRET_POLL", poll),
            ("HOOKGATE_REQUEST_TIMEOUT", "10m"),
        ];
        let replica = Embedded::serve_from_file(&file, &settings).await;
        Self {
            replica: Arc::new(replica),
            file,
            by,
            _directory: directory,
        }
    }

    /// Makes these secrets the valid ones, and waits until they are.
    async fn rotate_to(&self, secrets: &[&str]) {
        let before = reloads(&self.replica, "changed").await;
        self.file.replace(secrets);
        if self.by == By::Sighup {
            self.replica.process().signal("HUP");
        }
        until("the new secrets are valid", async || {
            reloads(&self.replica, "changed").await == before + 1.0
        })
        .await;
    }

    /// Waits until this many more deliveries have come through.
    async fn more(&self) {
        let accepted = async || self.replica.deliveries("stripe", "accepted").await;
        let before = accepted().await;
        until("deliveries flow", async || accepted().await > before + 20.0).await;
    }
}

async fn no_delivery_is_lost_to_a_rotation(by: By) {
    let scene = Scene::start(by, &[OLD, LASTING]).await;
    let lasting = Load::start(&scene.replica, LASTING);
    let old = Load::start(&scene.replica, OLD);
    scene.more().await;
    scene.rotate_to(&[NEW, OLD, LASTING]).await;
    let new = Load::start(&scene.replica, NEW);
    scene.more().await;
    let mut sent = old.end().await;
    assert_ne!(
        used(&scene.replica, 2).await,
        Some(0.0),
        "the lasting one moved to slot 2"
    );
    scene.rotate_to(&[NEW, LASTING]).await;
    let expired = scene.replica.deliver(&signed_by(OLD)).await;
    assert_eq!((expired.status, expired.error()), (400, "bad_signature"));
    scene.more().await;
    sent += new.end().await + lasting.end().await;

    assert_eq!(scene.replica.deliveries("stripe", "accepted").await, sent as f64);
    assert_eq!(scene.replica.deliveries("stripe", "refused").await, 1.0);
    assert_eq!(used(&scene.replica, 2).await, None, "a slot goes with its secret");
    for (slot, secret) in [(0, NEW), (1, LASTING)] {
        let before = used(&scene.replica, slot)
            .await
            .expect("a secret has its counter");
        assert!(scene.replica.deliver(&signed_by(secret)).await.is_ok(false));
        assert_eq!(used(&scene.replica, slot).await, Some(before + 1.0));
    }
    assert_eq!(reloads(&scene.replica, "failed").await, 0.0);
    assert_eq!(scene.replica.stop().await, Some(0));
}

#[tokio::test]
async fn no_delivery_is_lost_to_a_rotation_by_sighup() {
    no_delivery_is_lost_to_a_rotation(By::Sighup).await;
}

#[tokio::test]
async fn no_delivery_is_lost_to_a_rotation_by_a_file_that_changes() {
    no_delivery_is_lost_to_a_rotation(By::FileChange).await;
}

#[tokio::test]
async fn a_delivery_that_was_under_way_keeps_the_secrets_it_began_with() {
    let scene = Scene::start(By::Sighup, &[OLD]).await;
    let mut delivery = signed_by(OLD);
    delivery
        .headers
        .push(("Expect".to_owned(), "100-continue".to_owned()));
    let request = raw::request(&delivery);
    let (head, body) = request.split_at(request.len() - delivery.body.len());
    let mut client = Raw::connect(&scene.replica).await;
    client.send(head).await;
    let begun = client.answer().await.map(|answer| answer.status);
    assert_eq!(begun, Some(100), "the gateway has begun, and waits for the body");
    scene.rotate_to(&[NEW]).await;
    assert_eq!(
        scene.replica.deliver(&signed_by(OLD)).await.error(),
        "bad_signature",
        "who begins now is too late"
    );
    client.send(body).await;
    let answer = client.answer().await.expect("the gateway answers");
    assert!(answer.is_ok(false), "{answer:?}");
}
