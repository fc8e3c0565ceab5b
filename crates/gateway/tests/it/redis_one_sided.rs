//! One replica has lost Redis, the other has not. Nothing depends on what either remembers.

use hookgate_harness::{Fault, PostgresServer, Proxy, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// How many events are delivered at the same time.
const AT_ONCE: usize = 25;

struct Pair {
    deployment: Deployment,
    target: Upstream,
    cut_off: Replica,
    connected: Replica,
    _proxy: Proxy,
}

impl Pair {
    async fn start(handler: &str) -> Self {
        let target = Upstream::start().await;
        let deployment = Deployment::on(Stores::RedisAndPostgres)
            .await
            .delivering_to(&target);
        let deployment = deployment
            .set("HOOKGATE_HANDLER", handler)
            .set("HOOKGATE_CLAIM_WAIT", "10m")
            // A copy that watched its own claim would watch it for so long.
            .set("HOOKGATE_CLAIM_LEASE", "10m");
        let connected = deployment.replica().await;
        let proxy = Proxy::start(RedisServer::shared().await.addr()).await;
        proxy.set(Fault::Refuse);
        let deployment = deployment.through("REDIS_URL", &proxy);
        let cut_off = deployment.replica().await;
        until("it is cut off", async || !cut_off.claims_are_up().await).await;
        Self {
            deployment,
            target,
            cut_off,
            connected,
            _proxy: proxy,
        }
    }

    /// Every event has its row and reached the target once.
    async fn each_took_effect_once(&self, events: &[Signed]) {
        for event in events {
            self.deployment.wait_for_state(event, State::Done).await;
        }
        let postgres = PostgresServer::shared().await;
        let database = self.deployment.setting("DATABASE_URL");
        let rows = postgres.psql(database, "SELECT count(*) FROM webhook_events");
        assert_eq!(rows, events.len().to_string());
        assert_eq!(self.target.requests().len(), events.len());
    }
}

fn fresh(count: usize) -> Vec<Signed> {
    (0..count).map(|_| provider::fresh()).collect()
}

#[tokio::test]
async fn two_replicas_of_which_one_is_cut_off_from_redis_double_nothing_at_the_same_instant() {
    for (handler, count) in [("inbox", 1_000), ("forward", 200)] {
        let pair = Pair::start(handler).await;
        let events = fresh(count);
        for some in events.chunks(AT_ONCE) {
            let sent = some
                .iter()
                .map(|event| (pair.cut_off.send(event), pair.connected.send(event)));
            for (mut one, mut two) in sent.collect::<Vec<_>>() {
                let (one, two) = (one.answer().await, two.answer().await);
                let once = (one.is_ok(false) && two.is_ok(true)) || (one.is_ok(true) && two.is_ok(false));
                assert!(once, "{handler}: {one:?} {two:?}");
            }
        }
        pair.each_took_effect_once(&events).await;
    }
}

#[tokio::test]
async fn two_replicas_of_which_one_is_cut_off_from_redis_double_nothing_one_after_the_other() {
    for handler in ["inbox", "forward"] {
        let pair = Pair::start(handler).await;
        let events = fresh(100);
        for (number, event) in events.iter().enumerate() {
            let (first, second) = match number % 2 {
                0 => (&pair.cut_off, &pair.connected),
                _ => (&pair.connected, &pair.cut_off),
            };
            assert!(first.deliver(event).await.is_ok(false), "{handler}");
            assert!(second.deliver(event).await.is_ok(true), "{handler}");
        }
        pair.each_took_effect_once(&events).await;
    }
}
