//! The whole gateway behind a real PgBouncer that lends sessions by the transaction.

use hookgate_harness::{PgBouncer, PoolMode, PostgresServer, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::Deployment;
use crate::patience::until;
use crate::provider;

#[tokio::test]
async fn receivers_and_workers_run_behind_a_transaction_pooler() {
    let (redis, server) = (RedisServer::shared().await, PostgresServer::shared().await);
    let pooler = PgBouncer::start(server.addr(), PoolMode::Transaction).await;
    let (target, database) = (Upstream::start().await, server.create_database().await);
    let direct = Deployment::with_database(&redis.url(), &database).delivering_to(&target);
    let deployment = direct.clone().set("DATABASE_URL", &pooler.url(&database));
    let receiver = deployment.start("receive").await;
    let workers = [deployment.start("work").await, deployment.start("work").await];
    let events: Vec<_> = (0..20).map(|_| provider::fresh()).collect();
    let mut sent: Vec<_> = events
        .iter()
        .chain(&events)
        .map(|event| receiver.send(event))
        .collect();
    for sent in &mut sent {
        assert_eq!(sent.answer().await.status, 200);
    }
    assert_eq!(receiver.deliveries("stripe", "accepted").await, 20.0);
    // No news pass; workers find them by looking.
    for event in &events {
        direct.wait_for_state(event, State::Done).await;
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
    for replica in [&receiver, &workers[0], &workers[1]] {
        let tells =
            |line: &str| line.contains("WARN") && line.contains("lends a session for each transaction");
        replica.process().wait_for_line(tells).await;
        until("it is counted", async || {
            replica.metric("hookgate_warnings").await >= 1.0
        })
        .await;
        let lines = replica.process().lines();
        assert_eq!(lines.iter().filter(|line| tells(line)).count(), 1, "said once");
        assert_eq!(replica.stop().await, Some(0));
    }
}
