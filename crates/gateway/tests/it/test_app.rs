//! The gateway inside the test's own process, with a clock that the test sets: for deliveries that were recorded
//! at another time and go over HTTP with a moment of their own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use hookgate_gateway::app::{App, Outside, Roles};
use hookgate_gateway::clock::{Clock, Hand};
use hookgate_gateway::config::{Config, Reader};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::embedded;
use crate::gateway::{Answer, client};
use crate::provider::Signed;

/// A running gateway on the embedded stores.
pub struct TestApp {
    base: String,
    hand: Hand,
    client: reqwest::Client,
    stop: CancellationToken,
    running: thread::JoinHandle<bool>,
    _directory: TempDir,
}

impl TestApp {
    /// Starts with these settings, and with a configuration file if there is one. The clock stands at this
    /// moment, unix seconds.
    pub async fn start(settings: &[(&str, &str)], toml: Option<&str>, now: i64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = embedded::url(&directory.path().join("hookgate.db"));
        let common = [
            ("DATABASE_URL", database.as_str()),
            ("HOOKGATE_LISTEN", "127.0.0.1:0"),
            ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0"),
        ];
        let settings: BTreeMap<_, _> = common
            .iter()
            .chain(settings)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let file = directory.path().join("hookgate.toml");
        if let Some(toml) = toml {
            std::fs::write(&file, toml).expect("the directory takes a file");
        }
        let reader = Reader::new(settings, toml.map(|_| file.as_path())).expect("the file can be read");
        let config = Config::read(&reader, false).expect("the settings are accepted");
        let (clock, hand) = Clock::settable(now);
        let outside = Outside {
            clock,
            ..Outside::default()
        };
        let stop = CancellationToken::new();
        let (told, address) = oneshot::channel();
        let stopping = stop.clone();
        let running = thread::spawn(move || run(&config, outside, &stopping, told));
        Self {
            base: format!("http://{}", address.await.expect("it starts")),
            hand,
            client: client(),
            stop,
            running,
            _directory: directory,
        }
    }

    /// Posts a delivery; the gateway believes that it is this moment, unix seconds.
    pub async fn deliver_at(&self, now: i64, delivery: &Signed) -> Answer {
        self.deliver_to_at(now, &format!("/webhooks/{}", delivery.source), delivery)
            .await
    }

    /// As [`Self::deliver_at`], to a path with a query.
    pub async fn deliver_to_at(&self, now: i64, path: &str, delivery: &Signed) -> Answer {
        self.hand.set(now);
        let url = format!("{}{path}", self.base);
        let mut request = self.client.post(url).body(delivery.body.clone());
        for (name, value) in &delivery.headers {
            request = request.header(name, value);
        }
        Answer::of(request.send().await.expect("the gateway answers")).await
    }

    /// Ends it, and insists that it finished everything.
    pub async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::task::spawn_blocking(move || self.running.join()).await;
        let finished = ended
            .expect("joining does not panic")
            .expect("the gateway does not panic");
        assert!(finished, "everything was finished");
    }
}

/// The whole life of a gateway, on a runtime of its own as in a process of its own.
fn run(
    config: &Config,
    outside: Outside,
    stop: &CancellationToken,
    told: oneshot::Sender<SocketAddr>,
) -> bool {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be built");
    runtime.block_on(async {
        let app = App::build(config, Roles::ALL, outside, stop).await;
        let app = app.expect("it starts").expect("nobody stops it yet");
        let address = app.public_address().expect("all roles have the public listener");
        told.send(address).expect("the test waits for it");
        app.run(stop).await
    })
}
