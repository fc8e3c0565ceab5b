//! How long does it take from the provider's 200 to the target's receipt of the event: idle, one event after the
//! other, and under 1,000 events a second?
//!
//! Receiver and worker are two gateways that share nothing but Postgres, so what is measured includes the way of
//! the news through the database; the embedded gateway is one. Provider, gateways, stores and target share the
//! machine. The figures are percentiles, which criterion does not give, so this prints its own table.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hookgate_benches::{Prepared, runtime};
use hookgate_gateway::app::{App, Outside, Roles};
use hookgate_gateway::clock;
use hookgate_gateway::config::{Config, Reader};
use hookgate_harness::PostgresServer;
use hookgate_webhook::Provider;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};
use tokio_util::sync::CancellationToken;

/// Body size of a common Stripe event.
const BODY_BYTES: usize = 2_000;

/// Events a second under load.
const RATE: u64 = 1_000;

/// How much is sent.
#[derive(Clone, Copy)]
struct Extent {
    /// Events one after the other.
    idle_events: usize,
    /// How long the load lasts.
    load: Duration,
}

impl Extent {
    /// Enough to see that it works, unless it is run to measure: tests run every bench once.
    fn asked() -> Self {
        match std::env::args().any(|argument| argument == "--bench") {
            true => Self {
                idle_events: 300,
                load: Duration::from_secs(10),
            },
            false => Self {
                idle_events: 3,
                load: Duration::from_millis(50),
            },
        }
    }
}

/// Connections of the provider under load.
const CONNECTIONS: usize = 32;

/// Who got what when.
type Times = Arc<Mutex<HashMap<String, Instant>>>;

fn main() {
    let runtime = runtime();
    // A gateway stays on the thread that built it; its work does not.
    LocalSet::new().block_on(&runtime, async {
        let postgres = PostgresServer::start().await;
        let database = postgres.create_database().await;
        measure("postgres, receiver and worker apart", &database, &[RECEIVE, WORK]).await;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = format!("sqlite://{}", directory.path().join("bench.db").display());
        measure("embedded", &file, &[BOTH]).await;
    });
}

const NONE: Roles = Roles {
    receive: false,
    work: false,
    sweep: false,
};
const RECEIVE: Roles = Roles {
    receive: true,
    ..NONE
};
const WORK: Roles = Roles { work: true, ..NONE };
const BOTH: Roles = Roles::ALL;

async fn measure(name: &str, database: &str, roles: &[Roles]) {
    let (target, received) = target().await;
    let stop = CancellationToken::new();
    let (mut running, mut public) = (JoinSet::new(), None);
    for roles in roles {
        let config = config(database, &target);
        let app = App::build(&config, *roles, Outside::default(), &stop)
            .await
            .expect("it starts")
            .expect("nobody stops it");
        public = public.or(app.public_address().map(|address| address.to_string()));
        let stop = stop.clone();
        running.spawn_local(async move { app.run(&stop).await });
    }
    let public = public.expect("somebody receives");
    let extent = Extent::asked();
    let idle = idle(&public, &received, extent.idle_events).await;
    report(&format!("{name}, idle"), idle);
    let loaded = loaded(&public, &received, extent.load).await;
    report(&format!("{name}, {RATE}/s"), loaded);
    stop.cancel();
    running.join_all().await;
}

fn config(database: &str, target: &str) -> Config {
    let knowledge = Provider::Stripe.knowledge();
    let settings = [
        ("DATABASE_URL", database),
        ("REDIS_URL", "none"),
        ("HOOKGATE_TARGET_URL", target),
        ("STRIPE_WEBHOOK_SECRET", knowledge.dev_secrets[0]),
        ("HOOKGATE_LISTEN", "127.0.0.1:0"),
        ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let reader = Reader::new(settings.into(), None).expect("there is no file");
    Config::read(&reader, false).expect("the settings are accepted")
}

/// A target that answers 200 at once and writes down when it got what.
async fn target() -> (String, Times) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let times = Times::default();
    let received = Arc::clone(&times);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let times = Arc::clone(&received);
            tokio::spawn(async move { serve(stream, &times).await });
        }
    });
    (url, times)
}

async fn serve(stream: TcpStream, times: &Times) {
    let mut stream = BufReader::new(stream);
    while let Some(head) = head(&mut stream).await {
        let now = Instant::now();
        let id = header(&head, "webhook-id: stripe:")
            .unwrap_or_default()
            .to_owned();
        times.lock().expect("nobody panics").entry(id).or_insert(now);
        skip_body(&mut stream, &head).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        if stream.get_mut().write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Lines up to the empty one; `None` at the end of the connection.
async fn head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        if head[before..].trim_end().is_empty() {
            return Some(head);
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let line = head.lines().find(|line| {
        line.get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    })?;
    Some(line[name.len()..].trim())
}

async fn skip_body(stream: &mut BufReader<TcpStream>, head: &str) {
    let bytes = header(head, "content-length:")
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; bytes];
    let _ = stream.read_exact(&mut body).await;
}

/// One connection of the provider.
struct Client(BufReader<TcpStream>, String);

impl Client {
    async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the gateway listens");
        stream.set_nodelay(true).expect("a socket has this option");
        Self(BufReader::new(stream), address.to_owned())
    }

    /// Sends one event, and says when its 200 was here.
    async fn send(&mut self, id: &str) -> Instant {
        let event = Prepared::signed_at(clock::unix_seconds(), Provider::Stripe, BODY_BYTES, id);
        let delivery = event.delivery();
        let mut request = format!("POST /webhooks/stripe HTTP/1.1\r\nhost: {}\r\n", self.1).into_bytes();
        for (name, value) in event.headers() {
            request.extend(format!("{name}: {value}\r\n").bytes());
        }
        request.extend(format!("content-length: {}\r\n\r\n", delivery.body.len()).bytes());
        request.extend_from_slice(&delivery.body);
        self.0
            .get_mut()
            .write_all(&request)
            .await
            .expect("the gateway reads");
        let head = head(&mut self.0).await.expect("the gateway answers");
        let answered = Instant::now();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        skip_body(&mut self.0, &head).await;
        answered
    }
}

/// The delays of events that come alone.
async fn idle(address: &str, received: &Times, events: usize) -> Vec<Duration> {
    let mut client = Client::connect(address).await;
    let mut delays = Vec::new();
    for n in 0..events {
        let id = format!("evt_idle_{n}");
        let answered = client.send(&id).await;
        delays.push(delay(received, &id, answered).await);
    }
    delays
}

/// The delays of events that come a thousand a second.
async fn loaded(address: &str, received: &Times, load: Duration) -> Vec<Duration> {
    let begin = Instant::now();
    let mut senders = JoinSet::new();
    for lane in 0..CONNECTIONS {
        let mut client = Client::connect(address).await;
        senders.spawn(async move {
            let mut answered = Vec::new();
            for n in (lane as u64..).step_by(CONNECTIONS) {
                let due = Duration::from_micros(n * 1_000_000 / RATE);
                if due > load {
                    break;
                }
                tokio::time::sleep_until((begin + due).into()).await;
                let id = format!("evt_load_{n}");
                let moment = client.send(&id).await;
                answered.push((id, moment));
            }
            answered
        });
    }
    let mut delays = Vec::new();
    for (id, answered) in senders.join_all().await.into_iter().flatten() {
        delays.push(delay(received, &id, answered).await);
    }
    delays
}

/// From the 200 to the receipt; nothing if the target was faster than the provider's socket.
async fn delay(received: &Times, id: &str, answered: Instant) -> Duration {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let moment = received.lock().expect("nobody panics").get(id).copied();
        match moment {
            Some(moment) => return moment.saturating_duration_since(answered),
            None if Instant::now() > deadline => panic!("{id} never came"),
            None => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

fn report(name: &str, mut delays: Vec<Duration>) {
    delays.sort();
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let (half, most, all, count) = (at(0.5), at(0.99), at(1.0), delays.len());
    let line = format!(
        "{name:<45} {count:>6} events   p50 {half:>7.2} ms   p99 {most:>7.2} ms   max {all:>7.2} ms\n"
    );
    let _ = std::io::stdout().write_all(line.as_bytes());
}
