//! A database that answers questions and keeps nothing, such as one whose disk is full or a standby: it is down.

use hookgate_harness::PostgresServer;

use crate::deployment::Deployment;
use crate::patience::until;
use crate::provider;

#[tokio::test]
async fn a_database_that_takes_nothing_is_down_until_it_does() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    let replica = Deployment::with_database("none", &database).replica().await;
    assert!(replica.deliver(&provider::fresh()).await.is_ok(false));
    let name = database.rsplit('/').next().expect("a URL ends with the name");
    let elsewhere = postgres.create_database().await;
    let only_read = |how: &str| {
        let alter = format!("ALTER DATABASE {name} SET default_transaction_read_only = {how}");
        postgres.psql(&elsewhere, &alter);
        let end =
            format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'");
        postgres.psql(&elsewhere, &end);
    };
    only_read("on");
    until("it is known to be down", async || {
        let answer = replica.deliver(&provider::fresh()).await;
        assert!(answer.says_later(503, "unavailable"), "{answer:?}");
        !replica.ledger_is_up().await
    })
    .await;
    // It is probed meanwhile, more than once, and answers every question.
    for _ in 0..30 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert!(!replica.ledger_is_up().await, "it would take nothing");
        assert!(replica.admin("/readyz").await.1.contains("degraded"));
    }
    only_read("off");
    until("it is up again", async || replica.ledger_is_up().await).await;
    until("it takes events again", async || {
        replica.deliver(&provider::fresh()).await.is_ok(false)
    })
    .await;
}
