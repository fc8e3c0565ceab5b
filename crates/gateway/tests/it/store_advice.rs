//! `hookgate config check` asks the stores, in a moment, and says what will hurt one day; the start says the same.

use hookgate_harness::{PgBouncer, PoolMode, PostgresServer, RedisServer};

use crate::command_line::{Ran, run};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::SECRET;

async fn check(arguments: &[&str], redis: &str, database: &str) -> Ran {
    let settings = [
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("REDIS_URL", redis),
        ("DATABASE_URL", database),
    ];
    let ran = run(&[&["config", "check"], arguments].concat(), &settings).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.text().contains("the configuration is accepted"), "{ran:#?}");
    ran
}

fn says(ran: &Ran, weight: &str, needle: &str) -> bool {
    let begins = format!("{weight}: ");
    ran.lines
        .iter()
        .any(|line| line.starts_with(&begins) && line.contains(needle))
}

#[tokio::test]
async fn stores_that_are_as_they_should_be_earn_nothing() {
    let (redis, postgres) = (RedisServer::shared().await, PostgresServer::shared().await);
    let ran = check(&[], &redis.url(), &postgres.create_database().await).await;
    for word in [
        "maxmemory",
        "pooler",
        "standby",
        "synchronous_commit",
        "could not be asked",
    ] {
        assert!(!ran.text().contains(word), "{word}: {ran:#?}");
    }
}

#[tokio::test]
async fn a_redis_that_evicts_is_found_also_by_a_user_with_no_more_than_the_documented_rights() {
    let redis = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "50mb"]).await;
    let rights =
        "ACL SETUSER gate on >word-of-gate ~webhook:* +set +get +pttl +expire +del +eval +evalsha +info";
    redis.cli(&rights.split(' ').collect::<Vec<_>>());
    let url = redis.url().replace("redis://", "redis://gate:word-of-gate@");
    let database = PostgresServer::shared().await.create_database().await;
    let ran = check(&[], &url, &database).await;
    assert!(
        says(&ran, "warning", "maxmemory-policy = allkeys-lru"),
        "{ran:#?}"
    );
    assert!(!ran.text().contains("word-of-gate"), "{ran:#?}");
    assert!(
        !check(&["--offline"], &url, &database)
            .await
            .text()
            .contains("maxmemory")
    );
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(!check(&[], &url, &database).await.text().contains("maxmemory"));
}

#[tokio::test]
async fn a_pooler_is_found_by_how_it_behaves() {
    let server = PostgresServer::shared().await;
    let database = server.create_database().await;
    for (mode, found) in [(PoolMode::Transaction, true), (PoolMode::Session, false)] {
        let pooler = PgBouncer::start(server.addr(), mode).await;
        let ran = check(&[], "none", &pooler.url(&database)).await;
        assert_eq!(
            says(&ran, "warning", "lends a session for each transaction"),
            found,
            "{mode:?}: {ran:#?}"
        );
    }
}

#[tokio::test]
async fn a_database_that_keeps_less_than_it_might_is_found() {
    let server = PostgresServer::start_with(&["synchronous_commit=off"]).await;
    let (database, standby) = (server.create_database().await, server.standby().await);
    until("the standby follows", async || {
        server.psql(
            &database,
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'",
        ) == "1"
    })
    .await;
    let ran = check(&[], "none", &database).await;
    assert!(says(&ran, "note", "synchronous_commit = off"), "{ran:#?}");
    assert!(says(&ran, "note", "1 standby(s) follow the database"), "{ran:#?}");
    let ran = check(&[], "none", &standby.url("postgres")).await;
    assert!(says(&ran, "warning", "the database is a standby"), "{ran:#?}");
}

#[tokio::test]
async fn a_store_out_of_reach_is_said_and_changes_no_exit_code() {
    let ran = check(
        &[],
        "redis://127.0.0.1:1",
        "postgres://gate:word-of-gate@127.0.0.1:1/gate",
    )
    .await;
    assert!(
        says(&ran, "warning", "REDIS_URL: Redis could not be asked"),
        "{ran:#?}"
    );
    assert!(
        says(&ran, "warning", "DATABASE_URL: the database could not be asked"),
        "{ran:#?}"
    );
    assert!(!ran.text().contains("word-of-gate"), "{ran:#?}");
    let ran = check(
        &["--offline"],
        "redis://127.0.0.1:1",
        "postgres://gate@127.0.0.1:1/gate",
    )
    .await;
    assert!(!ran.text().contains("could not be asked"), "{ran:#?}");
}

#[tokio::test]
async fn what_a_start_refuses_of_a_database_the_check_refuses() {
    let database = PostgresServer::shared().await.url("nowhere");
    let settings = [
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("DATABASE_URL", &*database),
        ("HOOKGATE_LISTEN", "127.0.0.1:0"),
        ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0"),
    ];
    for command in [&["serve"][..], &["config", "check"]] {
        let ran = run(command, &settings).await;
        assert_eq!(ran.code, Some(64), "{command:?}: {ran:#?}");
        assert!(ran.sentence().contains("DATABASE_URL"), "{ran:#?}");
    }
}

#[tokio::test]
async fn a_start_tells_once_what_a_store_says_when_it_first_answers() {
    let mut redis =
        RedisServer::start_with(&["--maxmemory-policy", "volatile-lru", "--maxmemory", "50mb"]).await;
    redis.kill().await;
    let database = PostgresServer::shared().await.create_database().await;
    let replica = Replica::serve(&[
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("REDIS_URL", &redis.url()),
        ("DATABASE_URL", &database),
        ("HOOKGATE_REDIS_TIMEOUT", "5s"),
    ])
    .await;
    let before = replica.metric("hookgate_warnings").await;
    redis.restart().await;
    let tells = |line: &str| line.contains("maxmemory-policy = volatile-lru");
    replica.process().wait_for_line(tells).await;
    until("it is counted", async || {
        replica.metric("hookgate_warnings").await == before + 1.0
    })
    .await;
    until("claims are back", async || replica.claims_are_up().await).await;
    let lines = replica.process().lines();
    assert_eq!(lines.iter().filter(|line| tells(line)).count(), 1);
}
