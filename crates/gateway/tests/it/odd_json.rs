//! Valid JSON that databases refuse or rewrite: it is kept as the bytes that came, once, and never an error
//! that a provider would repeat for days.

use std::fmt::Write as _;

use hookgate_harness::PostgresServer;
use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::gateway::Replica;
use crate::provider::{self, SECRET, Signed};

/// Room for a text of 5 MB.
const BODY_BYTES_MAX: &str = "6000000";

/// Bodies by event id, and whether Postgres can show them as JSON; `None` where its build decides.
fn bodies() -> Vec<(&'static str, Vec<u8>, Option<bool>)> {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let long = "x".repeat(5_000_000);
    let with = |id: &str, rest: &str| format!(r#"{{"id":"{id}","type":"t",{rest}}}"#).into_bytes();
    vec![
        (
            "evt_nul_value",
            with("evt_nul_value", r#""note":"a\u0000b""#),
            Some(false),
        ),
        ("evt_nul_key", with("evt_nul_key", r#""a\u0000b":1"#), Some(false)),
        (
            "evt_surrogate",
            with("evt_surrogate", r#""note":"\ud800""#),
            Some(false),
        ),
        (
            "evt_low_surrogate",
            with("evt_low_surrogate", r#""note":"\udc00\ud800""#),
            Some(false),
        ),
        (
            "evt_exponent",
            with("evt_exponent", r#""n":1e400,"m":-1e400"#),
            Some(true),
        ),
        (
            "evt_no_number",
            with("evt_no_number", r#""n":1e999999"#),
            Some(false),
        ),
        ("evt_deep", with("evt_deep", &format!(r#""n":{deep}"#)), None),
        (
            "evt_deep_objects",
            with("evt_deep_objects", &format!(r#""n":{deep_objects}"#)),
            None,
        ),
        (
            "evt_long",
            with("evt_long", &format!(r#""note":"{long}""#)),
            Some(true),
        ),
        (
            "evt_backslash",
            with("evt_backslash", r#""note":"a\\u0000b""#),
            Some(true),
        ),
    ]
}

fn deliveries() -> Vec<(&'static str, Signed, Option<bool>)> {
    let signed = |(id, body, shown): (&'static str, Vec<u8>, Option<bool>)| {
        (id, provider::sign(Provider::Stripe, SECRET, id, &body), shown)
    };
    bodies().into_iter().map(signed).collect()
}

async fn each_is_accepted_once(replica: &Replica) {
    for (id, delivery, _) in deliveries() {
        let first = replica.deliver(&delivery).await;
        assert!(first.is_ok(false), "{id}: {first:?}");
        let second = replica.deliver(&delivery).await;
        assert!(second.is_ok(true), "{id}: {second:?}");
    }
    assert_eq!(replica.admin("/healthz").await.0, 200, "the process lives");
}

/// What the digest column holds, computed by whoever keeps it.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[tokio::test]
async fn postgres_keeps_what_its_json_type_refuses_and_shows_null_for_it() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    let replica = Replica::serve(&[
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_MAX_BODY_BYTES", BODY_BYTES_MAX),
        ("REDIS_URL", "none"),
    ])
    .await;
    each_is_accepted_once(&replica).await;
    for (id, delivery, shown) in deliveries() {
        let body = format!("SELECT encode(body, 'hex') FROM webhook_events WHERE event_id = '{id}'");
        assert!(
            postgres.psql(&database, &body) == hex(&delivery.body),
            "{id} is not kept as it came"
        );
        let json = format!("SELECT body IS NOT NULL FROM webhook_events_json WHERE event_id = '{id}'");
        let json = postgres.psql(&database, &json);
        assert!(
            shown.is_none_or(|shown| json == if shown { "t" } else { "f" }),
            "{id}: {json}"
        );
    }
    let note = "SELECT body ->> 'note' FROM webhook_events_json WHERE event_id = 'evt_backslash'";
    assert_eq!(postgres.psql(&database, note), r"a\u0000b");
    assert_eq!(replica.deliveries("stripe", "failed").await, 0.0);
    assert_eq!(replica.deliveries("stripe", "unavailable").await, 0.0);
}

#[tokio::test]
async fn sqlite_keeps_them_too() {
    let replica = Embedded::serve_with(&[("HOOKGATE_MAX_BODY_BYTES", BODY_BYTES_MAX)]).await;
    each_is_accepted_once(&replica).await;
    for (id, delivery, _) in deliveries() {
        let body = format!("SELECT lower(hex(body)) FROM webhook_events WHERE event_id = '{id}'");
        assert!(
            replica.sql(&body).await == hex(&delivery.body),
            "{id} is not kept as it came"
        );
    }
    // Whatever SQLite makes of each, looking at the view is no error.
    let shown = replica
        .sql("SELECT event_id FROM webhook_events_json WHERE body IS NOT NULL")
        .await;
    assert!(shown.contains("evt_backslash"), "{shown}");
    assert!(!shown.contains("evt_deep"), "{shown}");
}

#[tokio::test]
async fn a_field_that_identifies_the_event_and_is_no_text_is_refused_and_never_a_crash() {
    let replica = Embedded::serve().await;
    let deep = "[".repeat(10_000);
    let refused = [
        (r#"{"id":"\ud800"}"#.to_owned(), "bad_event_id"),
        (r#"{"id":"a\u0000"}"#.to_owned(), "bad_event_id"),
        (r#"{"id":5}"#.to_owned(), "missing_event_id"),
        (r#"{"id":1e400}"#.to_owned(), "missing_event_id"),
        (r#"{"id":null}"#.to_owned(), "missing_event_id"),
        (r#"{"id":""}"#.to_owned(), "missing_event_id"),
        (r#"{"id":{"id":"evt_1"}}"#.to_owned(), "missing_event_id"),
        (
            format!(r#"{{"id":{deep}{}}}"#, "]".repeat(10_000)),
            "missing_event_id",
        ),
        (r#"{"type":"t"}"#.to_owned(), "missing_event_id"),
        (format!(r#"{{"id":"evt_1","n":{deep}"#), "malformed_body"),
    ];
    for (body, error) in &refused {
        let answer = replica
            .deliver(&provider::sign(Provider::Stripe, SECRET, "", body.as_bytes()))
            .await;
        let start: String = body.chars().take(40).collect();
        assert_eq!((answer.status, answer.error()), (400, *error), "{start}");
        assert!(
            answer.json["detail"]
                .as_str()
                .is_some_and(|detail| detail.len() < 200),
            "{start}"
        );
    }
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
}

#[tokio::test]
async fn a_descriptive_field_that_does_not_fit_is_left_empty_and_counted() {
    let replica = Embedded::serve().await;
    let long = "x".repeat(256);
    let body = format!(
        r#"{{"id":"evt_1","type":"a\u0000b","created":1e400,"account":"{long}","data":{{"object":{{"id":"{long}"}}}}}}"#
    );
    let delivery = provider::sign(Provider::Stripe, SECRET, "", body.as_bytes());
    assert!(replica.deliver(&delivery).await.is_ok(false));
    let columns = "SELECT concat(event_type, object_id, account, provider_time) FROM webhook_events";
    assert_eq!(replica.sql(columns).await, "");
    let series = replica.series().await;
    let ignored: f64 = series
        .iter()
        .filter(|(name, _)| name.starts_with("hookgate_ignored_total") && name.contains("\"stripe\""))
        .filter(|(name, _)| !name.contains("no_consumer"))
        .map(|(_, value)| value)
        .sum();
    assert_eq!(ignored, 4.0, "{series:#?}");
}
