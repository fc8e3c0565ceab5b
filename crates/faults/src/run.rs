//! One run: build the world, let the provider send, strike, lift, wait until everything has come to rest, ask for
//! everything once more, collect the evidence, and judge.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use crate::collect;
use crate::draw::Draw;
use crate::evidence::{Evidence, Key, Send};
use crate::fault::{Fault, Strike};
use crate::provider::Provider;
use crate::rows;
use crate::scene::{Scene, Slot};

/// One run of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    /// One fault, or two at a time.
    pub(crate) faults: Vec<Fault>,
    /// What decides by chance.
    pub(crate) seed: u64,
}

/// How much is sent, and how long is waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Events a second, both sources together.
    pub(crate) per_second: u32,
    /// How long the provider goes on after the fault was lifted.
    pub(crate) afterwards: Duration,
    /// How long everything may take to come to rest.
    pub(crate) drain_max: Duration,
    /// Whether the machine may be busy with something else.
    pub(crate) tolerant: bool,
}

/// Load before the fault.
const BEFORE: std::ops::Range<u64> = 300..1_000;

/// Longest time that faults take by themselves.
const STRIKE_MAX: Duration = Duration::from_secs(40);

/// Copies that are sent to each replica when everything has come to rest.
const ECHOES: usize = 8;

impl Run {
    /// As the command line takes it.
    pub(crate) fn name(&self) -> String {
        let names: Vec<_> = self.faults.iter().map(|fault| fault.name()).collect();
        names.join("+")
    }

    /// The command that repeats it.
    pub(crate) fn command(&self) -> String {
        format!("cargo xtask faults --fault {} --seed {}", self.name(), self.seed)
    }

    /// Runs it. The scene is returned too, so that its logs can be kept.
    ///
    /// # Panics
    /// If the world cannot be built; the message says what did not start.
    pub(crate) async fn run(&self, slot: Arc<Slot>, pace: Pace) -> (Evidence, Arc<Scene>) {
        let scene = Arc::new(Scene::build(Arc::clone(&slot), self.seed).await);
        let id = format!("{}_{}", scene.database, self.seed);
        let provider = Arc::new(Provider::new(Arc::clone(&scene), id));
        let sending = {
            let (provider, draw) = (Arc::clone(&provider), Draw::new(self.seed, "events"));
            tokio::spawn(async move { provider.send_steadily(pace.per_second, draw).await })
        };
        sleep(Draw::new(self.seed, "beginning").ms(BEFORE)).await;
        let strikes = self.faults.iter().map(|&fault| {
            let strike = Strike {
                scene: Arc::clone(&scene),
                provider: Arc::clone(&provider),
                draw: Draw::new(self.seed, fault.name()),
            };
            Box::pin(strike.run(fault))
        });
        if timeout(STRIKE_MAX, join_all(strikes)).await.is_err() {
            scene.miss("the fault did not come to its end");
        }
        sleep(pace.afterwards).await;
        sending.abort();
        let unfinished = drain(&scene, &provider, pace.drain_max).await;
        let calls_before_echoes = scene.target.requests().len();
        let echoes = echo(&scene, &provider, self.seed).await;
        let evidence = collect::evidence(&scene, &provider).await;
        let evidence = Evidence {
            faults: self.faults.clone(),
            unfinished,
            echoes,
            calls_before_echoes,
            tolerant: pace.tolerant,
            ..evidence
        };
        (evidence, scene)
    }
}

/// Waits until every event was answered 200 and every row rests; what is left if patience ends first.
async fn drain(scene: &Scene, provider: &Provider, patience: Duration) -> Vec<String> {
    let deadline = Instant::now() + patience;
    let mut left = Vec::new();
    if !provider.is_content(patience).await {
        left.push("the provider still waits for a 200".to_owned());
    }
    let mut session = scene.slot.session(&scene.database).await;
    loop {
        match rows::restless(&mut session).await {
            Ok(rows) if rows.is_empty() => return left,
            Ok(rows) if Instant::now() > deadline => {
                left.extend(rows);
                return left;
            }
            Err(error) if Instant::now() > deadline => {
                left.push(format!("the rows cannot be read: {error}"));
                return left;
            }
            Ok(_) | Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Asks every replica again for events that are done, those that the fault touched first.
async fn echo(scene: &Scene, provider: &Provider, seed: u64) -> Vec<Send> {
    let mut session = scene.slot.session(&scene.database).await;
    let rows = rows::events(&mut session).await.unwrap_or_default();
    let done = |key: &Key| rows.get(key).is_some_and(|row| row.state == "done");
    let (events, sends, _) = provider.journal();
    let troubled = sends.iter().filter(|send| send.reply.status() != Some(200));
    let mut chosen: BTreeSet<Key> = troubled.map(|send| send.key.clone()).filter(&done).collect();
    let mut draw = Draw::new(seed, "echoes");
    let others: Vec<_> = events.into_iter().filter(done).collect();
    for _ in 0..if others.is_empty() { 0 } else { ECHOES } {
        chosen.insert(others[draw.below(others.len())].clone());
    }
    let copies = chosen.iter().take(4 * ECHOES).enumerate();
    let echoes = copies.map(|(number, key)| provider.echo(key, number % scene.replicas().len()));
    join_all(echoes).await.concat()
}
