//! A database restored from a dump keeps the timeline of the one that it is restored into, so nothing but a person can
//! say that history was turned back: by raising HOOKGATE_CLAIM_EPOCH. The page docs/restore.md says so, and what happens
//! if it is forgotten.

use hookgate_harness::{PostgresServer, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::Deployment;
use crate::provider::{self, Signed};

const DUMP: &str = "hookgate.dump";

fn count(server: &PostgresServer, database: &str, event: &Signed) -> String {
    let count = format!(
        "SELECT count(*) FROM webhook_events WHERE event_id = '{}'",
        event.event_id
    );
    server.psql(database, &count)
}

#[tokio::test]
async fn after_a_dump_was_restored_a_raised_epoch_lets_missing_events_in_again() {
    let (redis, server, target) = (
        RedisServer::shared().await,
        PostgresServer::shared().await,
        Upstream::start().await,
    );
    let database = server.create_database().await;
    let deployment = Deployment::with_database(&redis.url(), &database).delivering_to(&target);
    let replica = deployment.replica().await;
    let (kept, missing) = (provider::fresh(), provider::fresh());
    assert!(replica.deliver(&kept).await.is_ok(false));
    deployment.wait_for_state(&kept, State::Done).await;
    server.dump(&database, DUMP);
    assert!(replica.deliver(&missing).await.is_ok(false));
    deployment.wait_for_state(&missing, State::Done).await;
    assert_eq!(replica.stop().await, Some(0));

    let restored = server.create_database().await;
    server.restore(&restored, DUMP);
    let deployment = Deployment::with_database(&redis.url(), &restored).delivering_to(&target);
    // The harm, if the epoch is forgotten: a mark answers for a row that is not there.
    let forgetful = deployment.replica().await;
    assert!(forgetful.deliver(&missing).await.is_ok(true));
    assert_eq!(count(server, &restored, &missing), "0");
    assert_eq!(forgetful.stop().await, Some(0));

    let raised = deployment
        .clone()
        .set("HOOKGATE_CLAIM_EPOCH", "1")
        .replica()
        .await;
    let names = |line: &str| line.contains("claims speak of epoch 1-1");
    raised.process().wait_for_line(names).await;
    assert!(raised.deliver(&missing).await.is_ok(false));
    assert!(raised.deliver(&kept).await.is_ok(true));
    assert_eq!(raised.duplicates("stripe", "ledger").await, 1.0);
    assert_eq!(raised.duplicates("stripe", "claim").await, 0.0);
    deployment.wait_for_state(&missing, State::Done).await;
    assert_eq!(target.count_for(&missing.target_id()), 2);
    assert_eq!(target.count_for(&kept.target_id()), 1);
    assert!(raised.deliver(&missing).await.is_ok(true));
}
