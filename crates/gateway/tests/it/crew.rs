//! Two replicas under a steady load of fresh and doubled events, while something happens to their Redis: every answer
//! is 200, and every event takes effect once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookgate_harness::{RedisServer, Upstream};
use hookgate_ledger::State;
use tokio::task::JoinHandle;

use crate::deployment::Deployment;
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// How many events are on their way at the same time.
const AT_ONCE: usize = 4;

/// Two replicas, their target, and those who send.
pub struct Crew {
    pub deployment: Deployment,
    pub target: Upstream,
    pub replicas: [Arc<Replica>; 2],
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<Vec<Signed>>>,
}

impl Crew {
    /// Starts both replicas on a Postgres of their own and this Redis, and the load.
    pub async fn start(handler: &str, redis_mode: &str, redis_urls: &str) -> Self {
        let target = Upstream::start().await;
        let deployment = Deployment::with_postgres(Some(redis_urls)).await;
        let deployment = deployment
            .delivering_to(&target)
            .set("HOOKGATE_REDIS_MODE", redis_mode)
            .set("HOOKGATE_HANDLER", handler)
            // A copy waits for the event itself, however busy the machine is.
            .set("HOOKGATE_CLAIM_WAIT", "10m");
        let replicas = [deployment.replica().await, deployment.replica().await].map(Arc::new);
        let stop = Arc::new(AtomicBool::new(false));
        let sender = |number: usize| {
            let [one, two] = replicas.clone();
            let (first, second) = if number.is_multiple_of(2) {
                (one, two)
            } else {
                (two, one)
            };
            tokio::spawn(send(first, second, Arc::clone(&stop)))
        };
        let crew = Self {
            senders: (0..AT_ONCE).map(sender).collect(),
            deployment,
            target,
            replicas,
            stop,
        };
        crew.more("events flow").await;
        crew
    }

    /// Waits until this many more events were accepted by each replica.
    pub async fn more(&self, what: &str) {
        for replica in &self.replicas {
            let before = replica.deliveries("stripe", "accepted").await;
            until(what, async || {
                replica.deliveries("stripe", "accepted").await > before + 10.0
            })
            .await;
        }
    }

    /// Events that were decided without claims, on both replicas.
    pub async fn fallbacks(&self) -> f64 {
        let [one, two] = &self.replicas;
        one.fallbacks("stripe").await + two.fallbacks("stripe").await
    }

    /// Waits until both replicas write claims to the primary of the moment, as it says itself.
    pub async fn claims_reach<'server>(&self, primary: impl AsyncFn() -> &'server RedisServer) {
        for replica in &self.replicas {
            until("claims are written to the new primary", async || {
                let event = provider::fresh();
                let answer = replica.deliver(&event).await;
                assert!(answer.is_ok(false), "{answer:?}");
                primary().await.cli(&["EXISTS", &event.claim_key()]) == "1"
            })
            .await;
        }
    }

    /// Ends the load: every event has its row, reached the target once, and is known.
    pub async fn each_took_effect_once(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let mut sent = Vec::new();
        for sender in self.senders.drain(..) {
            sent.extend(sender.await.expect("every event is answered 200"));
        }
        for event in &sent {
            self.deployment.wait_for_state(event, State::Done).await;
            assert_eq!(self.target.count_for(&event.target_id()), 1, "{}", event.event_id);
        }
        let unfinished = "SELECT count(*) FROM webhook_events WHERE state <> 'done'";
        until("everything is done", async || {
            self.deployment.sql(unfinished).await == "0"
        })
        .await;
        let rows = self.deployment.sql("SELECT count(*) FROM webhook_events").await;
        assert_eq!(rows, self.target.requests().len().to_string());
        for replica in &self.replicas {
            for outcome in ["in_flight", "failed", "unavailable", "refused"] {
                assert_eq!(replica.deliveries("stripe", outcome).await, 0.0, "{outcome}");
            }
        }
    }
}

/// Fresh events, each to both replicas at the same instant and once more afterwards.
async fn send(first: Arc<Replica>, second: Arc<Replica>, stop: Arc<AtomicBool>) -> Vec<Signed> {
    let mut sent = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let event = provider::fresh();
        let (one, two) = tokio::join!(first.deliver(&event), second.deliver(&event));
        let once = (one.is_ok(false) && two.is_ok(true)) || (one.is_ok(true) && two.is_ok(false));
        assert!(once, "{one:?} {two:?}");
        let again = second.deliver(&event).await;
        assert!(again.is_ok(true), "{again:?}");
        sent.push(event);
    }
    sent
}
