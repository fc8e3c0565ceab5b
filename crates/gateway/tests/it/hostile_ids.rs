//! Event ids that somebody chose with care: each is one event byte for byte, or is refused before any store
//! hears of it.

use hookgate_harness::{PostgresServer, RedisServer};

use crate::gateway::Replica;
use crate::provider::{self, SECRET, Signed};

/// Each is an event of its own.
fn accepted() -> Vec<Signed> {
    let long = "x".repeat(254);
    let ids = [
        "a:b",
        ":",
        "a:b:c",
        "..",
        "*",
        "?[a-z]*",
        "😀",
        "e\u{301}",
        "\u{e9}",
        " ",
        " evt",
        "evt ",
        "evt",
        "EVT",
        "'; DROP TABLE webhook_events; --",
        "%00%0d%0a",
        "{evt}",
        &format!("{long}1"),
        &format!("{long}2"),
    ];
    let mut deliveries: Vec<_> = ids.iter().map(|id| provider::stripe(id)).collect();
    // Two sources and ids that would be one text if source and id were only joined.
    for (source, id) in [("p", "q:r"), ("p-q", "r"), ("p", "q-r")] {
        let mut delivery = provider::stripe(id);
        delivery.source = source.to_owned();
        deliveries.push(delivery);
    }
    deliveries
}

const SOURCES: &str =
    "[sources.p]\nprovider = \"stripe\"\n[sources.p-q]\nprovider = \"stripe\"\n[sources.stripe]\n";

#[tokio::test]
async fn every_odd_id_is_one_event_and_no_hostile_id_reaches_a_store() {
    let (redis, postgres) = (RedisServer::start().await, PostgresServer::shared().await);
    let database = postgres.create_database().await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.toml");
    std::fs::write(&file, SOURCES).expect("the directory takes a file");
    let replica = Replica::serve(&[
        ("HOOKGATE_CONFIG", &file.display().to_string()),
        ("REDIS_URL", &redis.url()),
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("P_WEBHOOK_SECRET", SECRET),
        ("P_Q_WEBHOOK_SECRET", SECRET),
    ])
    .await;

    let accepted = accepted();
    for delivery in &accepted {
        let (first, second) = (replica.deliver(delivery).await, replica.deliver(delivery).await);
        assert!(first.is_ok(false), "{:?}: {first:?}", delivery.event_id);
        assert!(second.is_ok(true), "{:?}: {second:?}", delivery.event_id);
        assert_eq!(first.json["event_id"], delivery.event_id.as_str());
    }
    let monitor = redis.monitor().await;
    let long = "x".repeat(10_000);
    let near = "x".repeat(300);
    let refused = [
        long.as_str(),
        near.as_str(),
        &"é".repeat(128),
        "a\r\nSET x y",
        "a\nb",
        "\0",
        "evt_\0",
        "\u{7f}",
        "\u{85}",
        "\u{1b}[31m",
        "\t",
    ];
    for id in refused {
        for _ in 0..2 {
            let answer = replica.deliver(&provider::stripe(id)).await;
            assert_eq!((answer.status, answer.error()), (400, "bad_event_id"), "{id:?}");
        }
    }
    let commands = monitor.commands().await;
    let touching: Vec<_> = commands.iter().filter(|line| !line.contains("PING")).collect();
    assert!(touching.is_empty(), "{touching:?}");

    let keys = redis.cli(&["KEYS", "*"]);
    let keys = keys.lines().filter(|key| !key.starts_with("webhook:_probe:"));
    assert_eq!(keys.count(), accepted.len(), "one claim an event");
    assert_eq!(redis.cli(&["EXISTS", "x"]), "0");
    let rows = "SELECT count(*) || ' ' || count(DISTINCT (source, event_id)) FROM webhook_events";
    let each = accepted.len();
    assert_eq!(postgres.psql(&database, rows), format!("{each} {each}"));
    for delivery in &accepted {
        let key = format!("webhook:{}:{}", delivery.source, delivery.event_id);
        assert_eq!(redis.cli(&["EXISTS", &key]), "1", "{key:?}");
    }
    let twice = 2.0 * refused.len() as f64;
    assert_eq!(replica.refusals("stripe", "bad_event_id").await, twice);
    assert_eq!(replica.deliveries("stripe", "refused").await, twice);
}

#[tokio::test]
async fn every_request_with_an_odd_or_hostile_id_is_one_line_of_log() {
    let replica = crate::embedded::Embedded::serve().await;
    let ids = [
        "a:b",
        "😀",
        "\u{2028}forged",
        "\"}\n{\"level\":\"ERROR\"",
        "a\r\nb",
        "\u{1b}[2J",
        "\0",
    ];
    for id in ids {
        replica.deliver(&provider::stripe(id)).await;
    }
    let mut last = provider::stripe("evt_last");
    last.headers
        .push(("X-Request-Id".to_owned(), "the-last-one".to_owned()));
    replica.deliver(&last).await;
    let lines = replica.delivery_lines("the-last-one").await;
    assert_eq!(lines.len(), ids.len() + 1, "{lines:#?}");
    let garbage = replica.process().lines();
    let garbage: Vec<_> = garbage.iter().filter(|line| !line.starts_with('{')).collect();
    assert!(garbage.is_empty(), "{garbage:?}");
}
