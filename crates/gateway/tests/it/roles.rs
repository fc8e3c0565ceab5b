//! The roles as processes of their own, and the schema brought up to date by a command.

use hookgate_harness::{PostgresServer, RedisServer, Upstream};
use hookgate_webhook::Provider;

use crate::command_line::{run, run_in};
use crate::embedded;
use crate::gateway::Replica;
use crate::provider::{self, SECRET};

#[tokio::test]
async fn a_receiver_keeps_and_a_worker_delivers() {
    let (redis, postgres) = (RedisServer::start().await, PostgresServer::shared().await);
    let (database, upstream) = (postgres.create_database().await, Upstream::start().await);
    let (redis_url, target) = (redis.url(), upstream.url());
    let settings = [
        ("REDIS_URL", redis_url.as_str()),
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_TARGET_URL", &target),
    ];
    let receiver = Replica::start("receive", &settings).await;
    let event = provider::event(Provider::Stripe);
    assert!(receiver.deliver(&event).await.is_ok(false));
    let state = "SELECT state FROM webhook_events";
    assert_eq!(postgres.psql(&database, state), "queued", "nobody works yet");

    let worker = Replica::start("work", &settings).await;
    assert_eq!(worker.public(), "", "a worker has no public listener");
    let requests = upstream.wait_for(1).await;
    assert_eq!(
        requests[0].id(),
        Some(format!("stripe:{}", event.event_id).as_str())
    );
    assert_eq!(worker.admin("/readyz").await.0, 200);
    assert_eq!(worker.stop().await, Some(0), "what is in hand is settled first");
    assert_eq!(postgres.psql(&database, state), "done");
    assert!(receiver.deliver(&event).await.is_ok(true));
    assert_eq!(upstream.requests().len(), 1);
    assert_eq!(receiver.stop().await, Some(0));
}

#[tokio::test]
async fn migrate_brings_sqlite_up_to_date_and_may_be_repeated() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for _ in 0..2 {
        // No source is configured: the schema needs none.
        let ran = run_in(directory.path(), &["migrate"], &[]).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.text().contains("up to date"), "{ran:#?}");
    }
    let file = directory.path().join("hookgate.db");
    let names = "SELECT name FROM sqlite_master WHERE name IN ('webhook_events', 'dead_letters', 'webhook_events_json') ORDER BY 1";
    let found = embedded::sql(&file, names).await;
    assert_eq!(found, "dead_letters\nwebhook_events\nwebhook_events_json");
}

#[tokio::test]
async fn migrate_brings_postgres_up_to_date_also_when_three_do_so_at_once() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    let settings = [("DATABASE_URL", database.as_str())];
    let (one, two, three) = tokio::join!(
        run(&["migrate"], &settings),
        run(&["migrate"], &settings),
        run(&["migrate"], &settings)
    );
    for ran in [one, two, three] {
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }
    let rows = "SELECT (SELECT count(*) FROM webhook_events) + (SELECT count(*) FROM dead_letters) + (SELECT count(*) FROM webhook_events_json)";
    assert_eq!(postgres.psql(&database, rows), "0");
}

#[tokio::test]
async fn migrate_says_in_one_sentence_why_it_cannot() {
    let none = run(&["migrate"], &[("DATABASE_URL", "none")]).await;
    assert_eq!(none.code, Some(64), "{none:#?}");
    assert!(none.sentence().contains("DATABASE_URL"), "{none:#?}");
    let away = run(
        &["migrate"],
        &[("DATABASE_URL", "postgres://u:canary@127.0.0.1:1/d")],
    )
    .await;
    assert_eq!(away.code, Some(1), "{away:#?}");
    assert!(
        !away.sentence().is_empty() && !away.text().contains("canary"),
        "{away:#?}"
    );
}
