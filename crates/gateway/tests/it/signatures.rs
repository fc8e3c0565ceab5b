//! Which signatures open the door: any valid one under any active secret, however many stand beside it, and
//! nothing that is merely shaped like one.

use hookgate_harness::{PostgresServer, RedisServer};
use hookgate_signature::Scheme;
use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::every_provider;
use crate::gateway::Replica;
use crate::provider::{self, SECRET};
use crate::secret_file::{SecretFile, hang_up};

const OLD: &str = "whsec_b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQtb2xkLW9sZC0=";
const NEW: &str = "whsec_bmV3LW5ldy1uZXctbmV3LW5ldy1uZXctbmV3LW5ldy0=";

/// A Stripe body and the digest of it under a secret at one moment.
struct Body {
    bytes: Vec<u8>,
    moment: i64,
}

impl Body {
    fn new(id: &str) -> Self {
        Self {
            bytes: provider::stripe(id).body,
            moment: provider::now(),
        }
    }

    /// 64 hex digits.
    fn digest(&self, secret: &str) -> String {
        let signed = provider::sign_at(Provider::Stripe, secret, "", &self.bytes, self.moment);
        let (_, value) = signed.headers.last().expect("Stripe signs in one header").clone();
        value.split_once("v1=").expect("a signature").1.to_owned()
    }

    fn header(&self, items: &[&str]) -> Vec<(String, String)> {
        let value = format!("t={},{}", self.moment, items.join(","));
        vec![("Stripe-Signature".to_owned(), value)]
    }
}

fn v1(digest: &str) -> String {
    format!("v1={digest}")
}

/// One way to write the header, and whether it is accepted.
struct Form(&'static str, Vec<(String, String)>, bool);

/// Every form of the header, as a replica with these secrets judges it.
fn rotation_forms(body: &Body, active: &[&str]) -> Vec<Form> {
    let (old, new) = (&*v1(&body.digest(OLD)), &*v1(&body.digest(NEW)));
    let (knows_old, knows_new) = (active.contains(&OLD), active.contains(&NEW));
    let wrong = &*v1(&"0".repeat(64));
    let last_of = |crowd: usize| [vec![wrong; crowd - 1], vec![new]].concat();
    let v0 = &*format!("v0={}", body.digest(NEW));
    let spaced = &*format!(" {new}");
    let repeated = [body.header(&[old]), body.header(&[new])].concat();
    vec![
        Form("old", body.header(&[old]), knows_old),
        Form("new", body.header(&[new]), knows_new),
        Form("old and new", body.header(&[old, new]), true),
        Form("new and old", body.header(&[new, old]), true),
        Form("v0 and v1", body.header(&[v0, new]), knows_new),
        Form("v0 alone", body.header(&[v0]), false),
        Form(
            "an unknown scheme beside v1",
            body.header(&["v7=x", new]),
            knows_new,
        ),
        Form("the valid one last of 20", body.header(&last_of(20)), knows_new),
        Form(
            "21 signatures, one over the cap",
            body.header(&last_of(21)),
            false,
        ),
        Form(
            "a space before it, as no SDK reads it",
            body.header(&[spaced]),
            false,
        ),
        Form("the header line repeated", repeated, false),
    ]
}

async fn every_form_is_judged(active: &[&str]) {
    let secrets = active.join(",");
    let replica = Embedded::serve_with(&[("STRIPE_WEBHOOK_SECRET", &secrets)]).await;
    let refused = judge_every_form(&replica, active, "evt").await;
    assert_eq!(replica.deliveries("stripe", "refused").await, refused);
}

/// Sends every form of the header in an event of its own. Says how many were rightly refused.
async fn judge_every_form(replica: &Replica, active: &[&str], event_id: &str) -> f64 {
    let mut refused = 0.0;
    for number in 0..rotation_forms(&Body::new("evt"), active).len() {
        let body = Body::new(&format!("{event_id}_{number}"));
        let Form(form, headers, accepted) = rotation_forms(&body, active).swap_remove(number);
        let answer = replica.post("stripe", &headers, body.bytes.clone()).await;
        if accepted {
            assert!(answer.is_ok(false), "{form}: {answer:?}");
        } else {
            assert_eq!(answer.status, 400, "{form}: {answer:?}");
            refused += 1.0;
        }
    }
    refused
}

#[tokio::test]
async fn one_replica_led_through_a_rotation_judges_every_form_by_the_secrets_of_the_moment() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = SecretFile::new(&directory, &[OLD]);
    let replica = Embedded::serve_from_file(&file, &[("HOOKGATE_SECRET_POLL", "off")]).await;
    judge_every_form(&replica, &[OLD], "evt_before").await;
    for (stage, active) in [
        ("both", &[OLD, NEW][..]),
        ("turned", &[NEW, OLD]),
        ("after", &[NEW]),
    ] {
        file.replace(active);
        hang_up(&replica).await;
        judge_every_form(&replica, active, &format!("evt_{stage}")).await;
    }
}

#[tokio::test]
async fn with_the_old_secret_only_what_it_signed_is_accepted() {
    every_form_is_judged(&[OLD]).await;
}

#[tokio::test]
async fn with_the_new_secret_the_old_one_has_expired() {
    every_form_is_judged(&[NEW]).await;
}

#[tokio::test]
async fn during_a_rotation_either_secret_opens_the_door() {
    every_form_is_judged(&[OLD, NEW]).await;
}

#[tokio::test]
async fn an_empty_shortened_or_respelt_signature_is_refused_and_no_store_hears_of_it() {
    let (redis, postgres) = (RedisServer::start().await, PostgresServer::shared().await);
    let database = postgres.create_database().await;
    let (redis_url, mut settings) = (redis.url(), crate::embedded::ALL_SECRETS.to_vec());
    settings.extend([("REDIS_URL", redis_url.as_str()), ("DATABASE_URL", &database)]);
    let replica = Replica::serve(&settings).await;
    let body = Body::new("evt_1");
    let digest = body.digest(SECRET);
    // A first delivery opens the connections, whose greetings are no traffic of a refusal.
    assert!(replica.deliver(&provider::stripe("evt_0")).await.is_ok(false));
    let monitor = redis.monitor().await;

    let mut values: Vec<_> = (0..64).map(|digits| v1(&digest[..digits])).collect();
    values.extend([
        String::new(),
        "v1".to_owned(),
        "v1,".to_owned(),
        v1(&format!("{digest}0")),
        v1(&digest.to_uppercase()),
        v1("dGhpcyBpcyBiYXNlNjQgb2YgdGhpcnR5LXR3byBieXRlcyE="),
        v1(&"g".repeat(64)),
        format!("v0={digest}"),
        format!("v2={digest}"),
        format!("V1={digest}"),
        format!("v1=0x{digest}"),
        format!("v1=\"{digest}\""),
    ]);
    let mut refused = 0.0;
    for value in &values {
        let headers = body.header(&[value]);
        let answer = replica.post("stripe", &headers, body.bytes.clone()).await;
        assert_eq!(
            (answer.status, answer.error()),
            (400, "malformed_signature"),
            "{value}"
        );
        refused += 1.0;
    }
    let bare = [
        ("", "missing_signature"),
        ("t=", "malformed_signature"),
        (",,,", "malformed_signature"),
        (digest.as_str(), "malformed_signature"),
        (
            &format!("t={},t={},v1={digest}", body.moment, body.moment),
            "malformed_signature",
        ),
        (&format!("t=+{},v1={digest}", body.moment), "malformed_signature"),
        (&format!("t=now,v1={digest}"), "malformed_signature"),
        (&format!("v1={digest}"), "malformed_signature"),
        (
            &format!("t={},v1={}", body.moment, "0".repeat(64)),
            "bad_signature",
        ),
        (&format!("t={},v1={digest}", body.moment - 1), "bad_signature"),
    ];
    for (value, error) in bare {
        let headers = [("Stripe-Signature".to_owned(), value.to_owned())];
        let answer = replica.post("stripe", &headers, body.bytes.clone()).await;
        assert_eq!((answer.status, answer.error()), (400, error), "{value}");
        refused += 1.0;
    }
    assert_eq!(
        replica.post("stripe", &[], body.bytes.clone()).await.error(),
        "missing_signature"
    );
    refused += 1.0;

    assert_eq!(replica.deliveries("stripe", "refused").await, refused);
    let commands = monitor.commands().await;
    let touching: Vec<_> = commands.iter().filter(|line| !line.contains("PING")).collect();
    assert!(touching.is_empty(), "{touching:?}");
    assert_eq!(
        postgres.psql(&database, "SELECT event_id FROM webhook_events"),
        "evt_0"
    );
}

#[tokio::test]
async fn every_provider_refuses_an_empty_a_cut_and_a_foreign_signature() {
    let (replica, _directory) = every_provider::serve(&Provider::ALL, &[]).await;
    for provider in Provider::ALL {
        let known = provider.knowledge();
        let event_type = provider.sample_types().next().expect("there are samples");
        let event = every_provider::delivery(provider, event_type);
        let name = known.scheme.header();
        // Adyen's stands in the body, and its own tests break it there.
        let Some(signature) = event.header(name).map(str::to_owned) else {
            assert_eq!(provider, Provider::Adyen);
            continue;
        };
        let answer_to = async |value: Option<&str>| event.with(name, value).send(&replica).await;
        let cut = &signature[..signature.len() - 1];
        for value in ["", " ", ",", "=", "v1,", "v1=", "sha256=", "sha256", cut] {
            let answer = answer_to(Some(value)).await;
            assert_eq!(
                answer.status, known.refusal_status,
                "{} {value:?}: {answer:?}",
                known.name
            );
        }
        assert_eq!(
            answer_to(None).await.error(),
            "missing_signature",
            "{}",
            known.name
        );
        let foreign = match known.scheme {
            Scheme::Token(_) => format!("{signature}x"),
            _ => every_provider::delivery(provider, event_type)
                .header(name)
                .expect("it is signed")
                .to_owned(),
        };
        let answer = answer_to(Some(&foreign)).await;
        assert_eq!(answer.error(), "bad_signature", "{}", known.name);
        assert_eq!(
            answer.status, known.refusal_status,
            "{} answers as it documents",
            known.name
        );
        let genuine = event.send(&replica).await;
        assert!(
            (200..300).contains(&genuine.status),
            "{}: {genuine:?}",
            known.name
        );
    }
}

#[tokio::test]
async fn a_stale_signature_is_refused_and_one_within_the_tolerance_is_not() {
    let replica = Embedded::serve().await;
    let at = |source: Provider, id: &str, moment: i64| {
        let body = provider::stripe(id).body;
        provider::sign_at(source, SECRET, id, &body, moment)
    };
    let now = provider::now();
    let stale = replica.deliver(&at(Provider::Stripe, "evt_1", now - 400)).await;
    assert_eq!((stale.status, stale.error()), (400, "stale_timestamp"));
    assert!(
        replica
            .deliver(&at(Provider::Stripe, "evt_2", now - 200))
            .await
            .is_ok(false)
    );
    let future = replica
        .deliver(&at(Provider::StandardWebhooks, "msg_1", now + 400))
        .await;
    assert_eq!((future.status, future.error()), (400, "future_timestamp"));
    assert_eq!(replica.sql("SELECT event_id FROM webhook_events").await, "evt_2");
}
