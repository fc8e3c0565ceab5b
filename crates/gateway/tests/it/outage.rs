//! Stores that are away: what the probes say, what deliveries are answered, and that everything comes back
//! without a restart.

use hookgate_harness::{PostgresServer, RedisServer, Upstream};
use hookgate_ledger::State;
use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider;

/// The answer of `/readyz`.
async fn readiness(replica: &Replica) -> (u16, Value) {
    let (status, body) = replica.admin("/readyz").await;
    (
        status,
        serde_json::from_str(&body).expect("the readiness is JSON"),
    )
}

fn ready(status: &str, claims: &str, ledger: &str) -> (u16, Value) {
    (200, json!({"status": status, "claims": claims, "ledger": ledger}))
}

/// Delivers fresh events until the probe says this; all the while the process lives and answers are these.
async fn deliver_until(replica: &Replica, probe: (u16, Value), status: u16) {
    until(&format!("the probe says {}", probe.1), async || {
        let answer = replica.deliver(&provider::fresh()).await;
        let fits = if status == 200 {
            answer.is_ok(false)
        } else {
            answer.says_later(status, "unavailable")
        };
        assert!(fits, "{answer:?}");
        assert_eq!(replica.admin("/healthz").await.0, 200);
        readiness(replica).await == probe
    })
    .await;
}

/// Waits until the probe says this, whatever deliveries meet meanwhile.
async fn recovered(replica: &Replica) {
    until("everything is back", async || {
        readiness(replica).await == ready("ready", "up", "up")
    })
    .await;
    assert!(replica.deliver(&provider::fresh()).await.is_ok(false));
}

#[tokio::test]
async fn stores_may_go_and_come_back_under_a_replica_that_stays_alive_and_ready() {
    let (mut redis, mut postgres) = (RedisServer::start().await, PostgresServer::start().await);
    let (target, database) = (Upstream::start().await, postgres.create_database().await);
    for forward in [false, true] {
        let deployment = Deployment::with_database(&redis.url(), &database).delivering_to(&target);
        let handler = if forward { "forward" } else { "inbox" };
        let deployment = deployment.set("HOOKGATE_HANDLER", handler);
        let replica = deployment.replica().await;
        let pid = replica.process().pid();
        recovered(&replica).await;

        redis.kill().await;
        deliver_until(&replica, ready("degraded", "down", "up"), 200).await;
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        assert!(replica.deliver(&event).await.is_ok(true), "the ledger knows it");
        // A delivery that the ledger cannot note down any more would be made again.
        deployment.wait_for_state(&event, State::Done).await;

        postgres.kill().await;
        deliver_until(&replica, ready("degraded", "down", "down"), 503).await;
        redis.restart().await;
        until("claims are back", async || replica.claims_are_up().await).await;
        deliver_until(&replica, ready("degraded", "up", "down"), 503).await;

        postgres.restart().await;
        recovered(&replica).await;
        assert!(
            replica.deliver(&event).await.is_ok(true),
            "{handler}: it is still known"
        );
        deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(target.count_for(&event.target_id()), 1, "{handler}");
        assert!(!replica.process().has_exited() && replica.process().pid() == pid);
    }
}

#[tokio::test]
async fn a_replica_that_starts_while_its_stores_are_away_serves_when_they_come() {
    let (mut redis, mut postgres) = (RedisServer::start().await, PostgresServer::start().await);
    let database = postgres.create_database().await;
    redis.kill().await;
    postgres.kill().await;
    let replica = Deployment::with_database(&redis.url(), &database).replica().await;
    deliver_until(&replica, ready("degraded", "down", "down"), 503).await;
    postgres.restart().await;
    until("the ledger is back", async || replica.ledger_is_up().await).await;
    deliver_until(&replica, ready("degraded", "down", "up"), 200).await;
    redis.restart().await;
    recovered(&replica).await;
}
