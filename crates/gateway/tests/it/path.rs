//! One delivery, sent twice, on every pair of stores.

use hookgate_harness::{PostgresServer, RedisServer, Upstream};
use hookgate_webhook::Provider;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::provider::{self, SECRET};

#[tokio::test]
async fn an_event_sent_twice_is_accepted_once_on_the_embedded_stores() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = format!("sqlite://{}", directory.path().join("hookgate.db").display());
    let replica = Replica::serve(&[("DATABASE_URL", &database), ("STRIPE_WEBHOOK_SECRET", SECRET)]).await;
    sent_twice_is_accepted_once(&replica).await;
    assert_eq!(replica.stop().await, Some(0));
}

#[tokio::test]
async fn an_event_sent_twice_is_accepted_once_on_redis_and_postgres() {
    let (redis, postgres) = (RedisServer::shared().await, PostgresServer::shared().await);
    let database = postgres.create_database().await;
    let settings = [
        ("REDIS_URL", redis.url()),
        ("DATABASE_URL", database.clone()),
        ("STRIPE_WEBHOOK_SECRET", SECRET.into()),
    ];
    let settings: Vec<_> = settings
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let replica = Replica::serve(&settings).await;
    sent_twice_is_accepted_once(&replica).await;
    assert_eq!(
        postgres.psql(&database, "SELECT count(*), min(state) FROM webhook_events"),
        "1|done"
    );
    assert_eq!(replica.stop().await, Some(0));
}

async fn sent_twice_is_accepted_once(replica: &Replica) {
    let event = provider::event(Provider::Stripe);
    let first = replica.deliver(&event).await;
    assert!(first.is_ok(false), "{first:?}");
    assert_eq!(first.json["event_id"], event.event_id.as_str());
    let second = replica.deliver(&event).await;
    assert!(second.is_ok(true), "{second:?}");
    assert_eq!(replica.deliveries("stripe", "accepted").await, 1.0);
    assert_eq!(replica.deliveries("stripe", "duplicate").await, 1.0);
}

#[tokio::test]
async fn an_inbox_with_a_target_delivers_the_raw_bytes_with_a_stable_key() {
    let upstream = Upstream::start().await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = format!("sqlite://{}", directory.path().join("hookgate.db").display());
    let replica = Replica::serve(&[
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_TARGET_URL", &upstream.url()),
        ("HOOKGATE_TARGET_SECRET", SECRET),
    ])
    .await;
    let event = provider::event(Provider::Stripe);
    assert!(replica.deliver(&event).await.is_ok(false));
    let requests = upstream.wait_for(1).await;
    let request = &requests[0];
    let id = format!("stripe:{}", event.event_id);
    assert_eq!(request.body, event.body);
    assert_eq!(request.id(), Some(id.as_str()));
    assert_eq!(request.header("idempotency-key"), Some(id.as_str()));
    assert_eq!(request.header("hookgate-source"), Some("stripe"));
    assert_eq!(request.header("hookgate-attempt"), Some("1"));
    assert_eq!(
        request.header("stripe-signature"),
        Some(event.headers.last().expect("a signature").1.as_str())
    );
    assert_eq!(replica.stop().await, Some(0));
}

#[tokio::test]
async fn a_replica_that_starts_second_says_where_it_listens_too() {
    let deployment = Deployment::on(Stores::PostgresAlone).await;
    // Each start waits for that line. A database that tells the second that its tables are there must not
    // make it swallow it.
    let (first, second) = (deployment.replica().await, deployment.replica().await);
    assert_ne!(first.public(), second.public());
}
