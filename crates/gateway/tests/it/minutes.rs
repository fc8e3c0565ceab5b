//! What replicas counted stands in the database, minute by minute, and adds up over them.

use hookgate_harness::{Answer, Fault, PostgresServer, Proxy, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider;

/// Counts of the source, as `name=sum`, over all minutes and replicas.
fn sums(postgres: &PostgresServer, database: &str) -> String {
    postgres.psql(
        database,
        "SELECT string_agg(line, ' ' ORDER BY line) FROM (
             SELECT name || '=' || sum(count) AS line FROM stats_minute WHERE source = 'stripe' GROUP BY name
         ) AS lines",
    )
}

#[tokio::test]
async fn counts_of_all_replicas_add_up_to_what_happened() {
    let postgres = PostgresServer::shared().await;
    let target = Upstream::start().await;
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let deployment = deployment.set("HOOKGATE_RETRY_MAX_ATTEMPTS", "1");
    let replicas = [deployment.replica().await, deployment.replica().await];
    let event = provider::fresh();
    for replica in &replicas {
        replica.deliver(&event).await;
        replica.deliver(&provider::fresh()).await;
        replica.post("stripe", &[], "unsigned").await;
    }
    until("all are delivered", async || {
        let dones = replicas
            .iter()
            .map(|replica| replica.metric("hookgate_attempts_total{outcome=\"done\",source=\"stripe\"}"));
        futures_util::future::join_all(dones).await.iter().sum::<f64>() == 3.0
    })
    .await;
    target.answer(Answer::Status(500));
    let dying = provider::fresh();
    replicas[0].deliver(&dying).await;
    deployment.wait_for_state(&dying, State::Dead).await;
    for replica in &replicas {
        assert_eq!(
            replica.stop().await,
            Some(0),
            "the last counts are written on the way out"
        );
    }
    assert_eq!(
        sums(postgres, deployment.setting("DATABASE_URL")),
        "accepted=4 attempt_dead=1 attempt_done=3 duplicate=1 refused=2 skipped_ledger=1"
    );
    let replicas = "SELECT count(DISTINCT replica) FROM stats_minute";
    assert_eq!(postgres.psql(deployment.setting("DATABASE_URL"), replicas), "2");
    let whole = "SELECT count(*) FROM stats_minute WHERE minute <> date_trunc('minute', minute)";
    assert_eq!(postgres.psql(deployment.setting("DATABASE_URL"), whole), "0");
}

#[tokio::test]
async fn what_was_counted_while_the_ledger_was_away_is_written_later() {
    let postgres = PostgresServer::shared().await;
    let deployment = Deployment::on(Stores::PostgresAlone).await;
    let database = deployment.setting("DATABASE_URL").to_owned();
    let proxy = Proxy::start(postgres.addr()).await;
    let through = deployment.through("DATABASE_URL", &proxy);
    let replica = through.replica().await;
    proxy.set(Fault::Refuse);
    let event = provider::fresh();
    until("the ledger is away", async || !replica.ledger_is_up().await).await;
    for _ in 0..3 {
        assert!(replica.deliver(&event).await.says_later(503, "unavailable"));
    }
    proxy.set(Fault::None);
    until("the ledger is back", async || replica.ledger_is_up().await).await;
    assert!(replica.deliver(&event).await.is_ok(false));
    assert_eq!(replica.stop().await, Some(0));
    assert_eq!(sums(postgres, &database), "accepted=1 unavailable=3");
}
