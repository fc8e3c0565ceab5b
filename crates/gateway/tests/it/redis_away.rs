//! Redis that hangs, dies or is out of one replica's reach: the first few requests pay for finding out, the
//! ledger decides alone, and claims are used again when it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookgate_harness::{Fault, Monitor, PostgresServer, Proxy, RedisServer, Upstream};
use hookgate_ledger::State;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::deployment::Deployment;
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// Longest wait for Redis: short enough to pay for, longer than a busy machine takes for an answer.
const LIMIT: &str = "500ms";

/// Failures in a row that open the circuit. A request in the closed circuit makes at least one.
const PAYING_MAX: usize = 3;

async fn on_postgres_and(redis_url: &str) -> Deployment {
    Deployment::with_postgres(Some(redis_url))
        .await
        .set("HOOKGATE_REDIS_TIMEOUT", LIMIT)
}

/// Fresh events, one after the other, until told to stop; every one is accepted.
struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<Vec<Signed>>,
}

impl Load {
    fn start(replica: &Arc<Replica>) -> Self {
        let (stop, replica) = (Arc::new(AtomicBool::new(false)), Arc::clone(replica));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut sent = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let event = provider::fresh();
                let answer = replica.deliver(&event).await;
                assert!(answer.is_ok(false), "{answer:?}");
                sent.push(event);
            }
            sent
        });
        Self { stop, task }
    }

    async fn stop(self) -> Vec<Signed> {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.expect("every fresh event is accepted")
    }
}

/// Under steady load `harm` takes Redis away and `heal` brings it back: every event is accepted once.
async fn survives(
    deployment: &Deployment,
    harm: impl AsyncFnOnce(),
    heal: impl AsyncFnOnce(),
) -> (Arc<Replica>, Vec<Signed>) {
    let replica = Arc::new(deployment.replica().await);
    let load = [Load::start(&replica), Load::start(&replica)];
    until("events flow", async || {
        replica.deliveries("stripe", "accepted").await > 20.0
    })
    .await;
    harm().await;
    until("the circuit opens", async || !replica.claims_are_up().await).await;
    let before = replica.deliveries("stripe", "accepted").await;
    until("events flow without Redis", async || {
        replica.deliveries("stripe", "accepted").await > before + 100.0
    })
    .await;
    heal().await;
    until("claims are used again", async || replica.claims_are_up().await).await;
    let before = replica.deliveries("stripe", "accepted").await;
    until("events flow again", async || {
        replica.deliveries("stripe", "accepted").await > before + 20.0
    })
    .await;

    let mut sent = Vec::new();
    for load in load {
        sent.extend(load.stop().await);
    }
    assert_eq!(replica.deliveries("stripe", "accepted").await, sent.len() as f64);
    assert!(replica.fallbacks("stripe").await >= 100.0);
    let warnings = replica.lines_of_level("WARN").into_iter();
    let warnings = warnings
        .filter(|line| line.contains("deciding without it"))
        .count();
    assert_eq!(warnings, 1, "one warning a minute, not one a request");
    (replica, sent)
}

/// All of them again: the ledger knows every one, whatever commands Redis may have executed late.
async fn all_known(replica: &Replica, deployment: &Deployment, sent: &[Signed]) {
    for event in sent {
        let answer = replica.deliver(event).await;
        assert!(answer.is_ok(true), "{answer:?}");
    }
    let postgres = PostgresServer::shared().await;
    let rows = postgres.psql(
        deployment.setting("DATABASE_URL"),
        "SELECT count(*) FROM webhook_events",
    );
    assert_eq!(rows, sent.len().to_string());
}

/// How many of these events Redis was asked to claim.
async fn claimed(monitor: &Monitor<'_>, events: &[Signed]) -> usize {
    let commands = monitor.commands().await;
    let claims: Vec<_> = commands
        .iter()
        .filter(|command| command.contains("\"NX\""))
        .collect();
    let asked = |event: &&Signed| claims.iter().any(|claim| claim.contains(&event.claim_key()));
    events.iter().filter(asked).count()
}

async fn deliver_fresh(replica: &Replica, count: usize) -> Vec<Signed> {
    let events: Vec<_> = (0..count).map(|_| provider::fresh()).collect();
    for event in &events {
        let answer = replica.deliver(event).await;
        assert!(answer.is_ok(false), "{answer:?}");
    }
    events
}

#[tokio::test]
async fn a_redis_that_hangs_and_goes_on_costs_no_event() {
    let redis = RedisServer::start().await;
    for forward in [false, true] {
        let target = Upstream::start().await;
        let deployment = on_postgres_and(&redis.url()).await.delivering_to(&target);
        let handler = if forward { "forward" } else { "inbox" };
        let deployment = deployment.set("HOOKGATE_HANDLER", handler);
        let (replica, sent) = survives(&deployment, async || redis.pause(), async || redis.resume()).await;
        all_known(&replica, &deployment, &sent).await;
        for event in &sent {
            deployment.wait_for_state(event, State::Done).await;
        }
        assert_eq!(
            target.requests().len(),
            sent.len(),
            "{handler}: each took effect once"
        );
    }
}

#[tokio::test]
async fn a_redis_that_is_killed_and_restarted_empty_costs_no_event() {
    let redis = Mutex::new(RedisServer::start().await);
    let deployment = on_postgres_and(&redis.lock().await.url()).await;
    let kill = async || redis.lock().await.kill().await;
    let (replica, sent) = survives(&deployment, kill, async || redis.lock().await.restart().await).await;
    let redis = redis.lock().await;
    let monitor = redis.monitor().await;
    let after = deliver_fresh(&replica, 5).await;
    assert_eq!(claimed(&monitor, &after).await, 5, "claims are used again");
    all_known(&replica, &deployment, &[sent, after].concat()).await;
}

#[tokio::test]
async fn packets_that_vanish_on_the_way_to_redis_cost_no_event() {
    let proxy = Proxy::start(RedisServer::shared().await.addr()).await;
    let deployment = on_postgres_and(&RedisServer::shared().await.url()).await;
    let deployment = deployment.through("REDIS_URL", &proxy);
    let away = async || proxy.set(Fault::Blackhole);
    let (replica, sent) = survives(&deployment, away, async || proxy.set(Fault::None)).await;
    all_known(&replica, &deployment, &sent).await;
}

#[tokio::test]
async fn after_the_first_few_no_request_asks_a_redis_that_hangs() {
    let redis = RedisServer::start().await;
    let deployment = on_postgres_and(&redis.url()).await;
    let replica = deployment.replica().await;
    let before = deliver_fresh(&replica, 5).await;
    let monitor = redis.monitor().await;
    let fallbacks = replica.fallbacks("stripe").await;
    redis.pause();
    let meanwhile = deliver_fresh(&replica, 100).await;
    assert!(!replica.claims_are_up().await);
    assert_eq!(replica.fallbacks("stripe").await, fallbacks + 100.0);
    redis.resume();
    until("claims are used again", async || replica.claims_are_up().await).await;
    // What has piled up is executed now, so Redis itself says who had asked.
    let asked = claimed(&monitor, &meanwhile).await;
    assert!((1..=PAYING_MAX).contains(&asked), "{asked} requests asked Redis");
    let after = deliver_fresh(&replica, 5).await;
    assert_eq!(claimed(&monitor, &after).await, 5, "claims are used again");
    all_known(&replica, &deployment, &[before, meanwhile, after].concat()).await;
}

#[tokio::test]
async fn a_replica_that_starts_while_redis_hangs_or_is_silent_serves_at_once() {
    let redis = RedisServer::start().await;
    let proxy = Proxy::start(redis.addr()).await;
    let hangs = || redis.pause();
    let is_silent = || proxy.set(Fault::Blackhole);
    let goes_on = || {
        redis.resume();
        proxy.set(Fault::None);
    };
    for away in [&hangs as &dyn Fn(), &is_silent] {
        away();
        let deployment = on_postgres_and(&format!("redis://{}", proxy.addr())).await;
        let replica = deployment.replica().await;
        until("the circuit is open", async || !replica.claims_are_up().await).await;
        let meanwhile = deliver_fresh(&replica, 20).await;
        goes_on();
        until("claims are used again", async || replica.claims_are_up().await).await;
        let monitor = redis.monitor().await;
        let after = deliver_fresh(&replica, 5).await;
        assert_eq!(claimed(&monitor, &after).await, 5);
        let all: Vec<_> = [meanwhile, after].concat();
        all_known(&replica, &deployment, &all).await;
    }
}
