//! The provider: sends signed events at a steady rate, some of them twice at the same moment, and sends again, with
//! growing pauses, whatever was not answered 200. It writes down every delivery and what came back.

mod balancer;
mod event;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use reqwest::Client;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::draw::Draw;
use crate::evidence::{Key, Reply, Send, Source};
use crate::scene::{Running, Scene};
use crate::settings::PROVIDER_PATIENCE;
use balancer::Balancer;

/// First pause before an event is sent again; it doubles.
const RESEND_FIRST: Duration = Duration::from_millis(100);

/// Longest pause.
const RESEND_MAX: Duration = Duration::from_millis(800);

/// How often a copy is sent at most. The ledger may have to be found again after its fault.
const ECHOES_MAX: usize = 10;

/// So many events in a hundred come twice at once, at two replicas.
const TWINS_PERCENT: u32 = 10;

/// A provider of two sources.
pub(crate) struct Provider {
    shared: Arc<Shared>,
    probing: JoinHandle<()>,
}

struct Shared {
    scene: Arc<Scene>,
    balancer: Balancer,
    client: Client,
    /// What makes its ids unlike those of other runs.
    run: String,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    events: Vec<Key>,
    /// How many of them were answered 200.
    answered: usize,
    sends: Vec<Send>,
    /// Deliveries under way.
    open: usize,
}

impl Provider {
    /// Sends nothing yet, and probes already.
    pub(crate) fn new(scene: Arc<Scene>, run: String) -> Self {
        let client = client();
        let balancer = Balancer::new(Arc::clone(&scene), client.clone());
        let shared = Arc::new(Shared {
            scene,
            balancer,
            client,
            run,
            book: Mutex::default(),
        });
        let prober = Arc::clone(&shared);
        let probing = tokio::spawn(async move { prober.balancer.probe().await });
        Self { shared, probing }
    }

    /// Sends so many events a second to both sources in turn, until it is dropped.
    pub(crate) async fn send_steadily(&self, per_second: u32, mut draw: Draw) {
        let mut ticks = interval(Duration::from_secs(1) / per_second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for source in [Source::Inbox, Source::Forward].into_iter().cycle() {
            ticks.tick().await;
            let key = self.shared.new_event(source);
            if draw.percent(TWINS_PERCENT) {
                let place = self.shared.balancer.next();
                let (shared, twin) = (Arc::clone(&self.shared), key.clone());
                tokio::spawn(async move { shared.send(&twin, place).await });
            }
            tokio::spawn(Arc::clone(&self.shared).see_through(key, None));
        }
    }

    /// An event that is sent only when its trap is set.
    pub(crate) fn bait(&self, source: Source) -> Key {
        self.shared.new_event(source)
    }

    /// Sends it to this replica first.
    pub(crate) fn throw(&self, bait: &Key, place: usize) {
        tokio::spawn(Arc::clone(&self.shared).see_through(bait.clone(), Some(place)));
    }

    /// Waits until every event was answered 200 and nothing is under way.
    pub(crate) async fn is_content(&self, patience: Duration) -> bool {
        let content = async {
            while !self.shared.book().is_closed() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(patience, content).await.is_ok()
    }

    /// One more copy of an event to a replica, outside the book, and again until it is answered 200.
    pub(crate) async fn echo(&self, key: &Key, place: usize) -> Vec<Send> {
        let mut sends = Vec::new();
        for _ in 0..ECHOES_MAX {
            let running = self.shared.scene.replicas()[place].present();
            sends.push(self.shared.exchange(key, &running).await);
            if sends.last().is_some_and(|send| send.reply.status() == Some(200)) {
                break;
            }
            sleep(RESEND_MAX).await;
        }
        sends
    }

    /// All events and deliveries so far, and what probes said that they must not say.
    pub(crate) fn journal(&self) -> (Vec<Key>, Vec<Send>, Vec<String>) {
        let book = self.shared.book();
        (
            book.events.clone(),
            book.sends.clone(),
            self.shared.balancer.findings(),
        )
    }

    /// What a process takes for the time of day, in seconds, by the `Date` of an answer.
    pub(crate) async fn time_of_day(&self, running: &Running) -> Option<i64> {
        let url = format!("http://{}/healthz", running.admin);
        let answer = self.shared.client.get(url).send().await.ok()?;
        let date = answer.headers().get("date")?.to_str().ok()?;
        // As `Tue, 01 Dec 2026 08:30:00 GMT`.
        let mut parts = date.split(' ').nth(4)?.split(':').map(str::parse::<i64>);
        let mut next = || parts.next()?.ok();
        Some((next()? * 60 + next()?) * 60 + next()?)
    }

    /// The metrics page of a process.
    pub(crate) async fn metrics(&self, running: &Running) -> Option<String> {
        let url = format!("http://{}/metrics", running.admin);
        let page = self.shared.client.get(url).send().await.ok()?;
        page.text().await.ok()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.probing.abort();
    }
}

impl Book {
    fn is_closed(&self) -> bool {
        self.answered == self.events.len() && self.open == 0
    }
}

impl Shared {
    fn new_event(&self, source: Source) -> Key {
        let mut book = self.book();
        let prefix = match source {
            Source::Inbox => "evt",
            Source::Forward => "wh",
        };
        let key = Key {
            source,
            id: format!("{prefix}_{}_{:05}", self.run, book.events.len()),
        };
        book.events.push(key.clone());
        key
    }

    /// Sends until somebody says 200.
    async fn see_through(self: Arc<Self>, key: Key, first: Option<usize>) {
        let mut pause = RESEND_FIRST;
        let mut place = first.unwrap_or_else(|| self.balancer.next());
        loop {
            let reply = self.send(&key, place).await;
            place = self.balancer.next();
            match reply {
                Reply::Answer { status: 200, .. } => break,
                // The balancer knows at once, and asks somebody else.
                Reply::Refused => sleep(Duration::from_millis(10)).await,
                Reply::Answer { .. } | Reply::Nothing => {
                    sleep(pause).await;
                    pause = (pause * 2).min(RESEND_MAX);
                }
            }
        }
        self.book().answered += 1;
    }

    async fn send(&self, key: &Key, place: usize) -> Reply {
        self.book().open += 1;
        let running = self.scene.replicas()[place].present();
        let send = self.exchange(key, &running).await;
        let reply = send.reply.clone();
        if reply == Reply::Refused {
            self.balancer.is_gone(place);
        }
        let mut book = self.book();
        book.open -= 1;
        book.sends.push(send);
        reply
    }

    async fn exchange(&self, key: &Key, running: &Running) -> Send {
        let event::Delivery { headers, body } = event::deliver(key);
        let url = format!("http://{}/webhooks/{}", running.public, key.source.name());
        let mut request = self.client.post(url).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let at = self.scene.at(Instant::now());
        let reply = match request.send().await {
            Ok(answer) => read(answer).await,
            Err(error) if error.is_connect() => Reply::Refused,
            Err(_) => Reply::Nothing,
        };
        Send {
            key: key.clone(),
            process: running.name.clone(),
            at,
            until: self.scene.at(Instant::now()),
            reply,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("nobody panics over the book")
    }
}

async fn read(answer: reqwest::Response) -> Reply {
    let status = answer.status().as_u16();
    let Ok(body) = answer.bytes().await else {
        return Reply::Nothing;
    };
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    Reply::Answer {
        status,
        duplicate: json["duplicate"].as_bool(),
        unix_us: event::unix_us(),
    }
}

/// A client with nothing of the environment.
fn client() -> Client {
    // The first run installs it, the others find it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .timeout(PROVIDER_PATIENCE)
        .build()
        .expect("a client needs nothing")
}
