//! Deliveries that carry several events: each is kept with its own bytes and its place, and the answer tells of all
//! of them, or of the worst.

use std::fmt::Write as _;

use hookgate_harness::Upstream;
use hookgate_webhook::Provider;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::command_line::run;
use crate::embedded::Embedded;
use crate::gateway::{Answer, client};
use crate::patience::until;
use crate::provider::{self, SECRET, Signed};

const LINE: (&str, &str) = ("LINE_WEBHOOK_SECRET", SECRET);

/// One event of LINE, spelt in a way that no serialiser would choose.
fn element(id: &str) -> String {
    format!("{{ \"type\" : \"message\",\"webhookEventId\":\"{id}\",  \"note\": \"\\u00e9\" }}")
}

/// A delivery of these events.
fn batch_of(elements: &[String]) -> Signed {
    let body = format!(
        "{{\"destination\":\"U1\",\"events\":[{}]}}",
        elements.join(" ,\n ")
    );
    let mut signed = provider::sign(Provider::Line, SECRET, "", body.as_bytes());
    let common = [
        ("Content-Type", "application/json; charset=utf-8"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("Hookgate-Batch", "a stranger's"),
    ];
    let common = common.map(|(name, value)| (name.to_owned(), value.to_owned()));
    signed.headers.extend(common);
    signed
}

fn batch(ids: &[&str]) -> Signed {
    batch_of(&ids.iter().map(|id| element(id)).collect::<Vec<_>>())
}

/// The place of an event, as targets and consumers are told.
fn place(batch: &Signed, index: usize, count: usize) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(&batch.body) {
        let _ = write!(hex, "{byte:02x}");
    }
    format!("{hex};{index}/{count}")
}

/// The answer lists just these.
fn lists(answer: &Answer, events: &[(&str, bool)]) {
    let events: Vec<_> = events
        .iter()
        .map(|(id, duplicate)| json!({"event_id": id, "duplicate": duplicate}))
        .collect();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json, json!({"received": true, "events": events}));
}

#[tokio::test]
async fn the_answer_lists_each_event_as_fresh_or_known() {
    let replica = Embedded::serve_with(&[LINE]).await;
    lists(&replica.deliver(&batch(&["a"])).await, &[("a", false)]);
    lists(
        &replica.deliver(&batch(&["a", "b"])).await,
        &[("a", true), ("b", false)],
    );
    lists(
        &replica.deliver(&batch(&["b", "a"])).await,
        &[("b", true), ("a", true)],
    );
    assert_eq!(replica.deliveries("line", "accepted").await, 2.0);
    assert_eq!(replica.deliveries("line", "duplicate").await, 3.0);
}

#[tokio::test]
async fn an_id_that_stands_twice_in_one_batch_is_one_event() {
    let replica = Embedded::serve_with(&[LINE]).await;
    let answer = replica.deliver(&batch(&["a", "b", "a"])).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let fresh = |index: usize| answer.json["events"][index]["duplicate"] == false;
    assert!(fresh(1), "{answer:?}");
    assert_ne!(
        fresh(0),
        fresh(2),
        "one of the two is a copy of the other: {answer:?}"
    );
    assert_eq!(
        replica
            .sql("SELECT event_id FROM webhook_events ORDER BY 1")
            .await,
        "a\nb"
    );
}

#[tokio::test]
async fn a_batch_of_none_is_received_and_counts_as_no_delivery() {
    let replica = Embedded::serve_with(&[LINE]).await;
    lists(&replica.deliver(&batch(&[])).await, &[]);
    for outcome in ["accepted", "duplicate", "refused"] {
        assert_eq!(replica.deliveries("line", outcome).await, 0.0, "{outcome}");
    }
    let answered = replica.metric("hookgate_requests_total{source=\"line\",status=\"200\"}");
    assert_eq!(answered.await, 1.0);
}

#[tokio::test]
async fn each_row_has_the_exact_slice_and_no_signature_of_the_whole() {
    let replica = Embedded::serve_with(&[LINE]).await;
    let batch = batch(&["a", "b"]);
    assert_eq!(replica.deliver(&batch).await.status, 200);
    for (number, id) in ["a", "b"].into_iter().enumerate() {
        let of = |column: &str| format!("SELECT {column} FROM webhook_events WHERE event_id = '{id}'");
        assert_eq!(replica.sql(&of("CAST(body AS TEXT)")).await, element(id));
        let headers = replica.sql(&of("headers")).await.to_lowercase();
        for kept in ["content-type", "traceparent", &place(&batch, number + 1, 2)] {
            assert!(headers.contains(kept), "{kept}: {headers}");
        }
        for other in ["x-line-signature", "a stranger's"] {
            assert!(!headers.contains(other), "{other}: {headers}");
        }
    }
}

#[tokio::test]
async fn a_target_gets_each_event_by_itself_with_its_place() {
    let target = Upstream::start().await;
    let replica = Embedded::serve_with(&[LINE, ("HOOKGATE_TARGET_URL", &target.url())]).await;
    let batch = batch(&["a", "b", "c"]);
    assert_eq!(replica.deliver(&batch).await.status, 200);
    target.wait_for(3).await;
    for (number, id) in ["a", "b", "c"].into_iter().enumerate() {
        let requests = target.requests_for(&format!("line:{id}"));
        assert_eq!(requests.len(), 1, "{id}");
        assert_eq!(&requests[0].body[..], element(id).as_bytes());
        let header = |name| requests[0].header(name);
        assert_eq!(header("hookgate-batch"), Some(&*place(&batch, number + 1, 3)));
        assert_eq!(header("x-line-signature"), None);
        assert_eq!(header("content-type"), Some("application/json; charset=utf-8"));
    }
}

#[tokio::test]
async fn an_event_that_came_alone_has_its_providers_signature_and_no_place() {
    let target = Upstream::start().await;
    let replica = Embedded::serve_with(&[("HOOKGATE_TARGET_URL", &target.url())]).await;
    let mut event = provider::stripe("evt_1");
    event
        .headers
        .push(("Hookgate-Batch".to_owned(), "a stranger's".to_owned()));
    assert!(replica.deliver(&event).await.is_ok(false));
    let requests = target.wait_for(1).await;
    assert!(requests[0].header("stripe-signature").is_some());
    assert_eq!(requests[0].header("hookgate-batch"), None);
}

#[tokio::test]
async fn a_consumer_that_pulls_is_told_the_place_too() {
    const TOKEN: &str = "a-token-for-consumers";
    let settings = [
        LINE,
        ("HOOKGATE_CONSUMER", "pull"),
        ("HOOKGATE_CONSUME_TOKEN", TOKEN),
    ];
    let replica = Embedded::serve_with(&settings).await;
    let batch = batch(&["a", "b"]);
    assert_eq!(replica.deliver(&batch).await.status, 200);
    let url = format!("http://{}/v1/consume", replica.admin_address());
    let request = client()
        .post(url)
        .bearer_auth(TOKEN)
        .header("content-type", "application/json")
        .body(json!({"sources": ["line"]}).to_string());
    let answer = Answer::of(request.send().await.expect("the admin listener answers")).await;
    let items = answer.json["items"].as_array().expect("a list of events");
    assert_eq!(items.len(), 2, "{answer:?}");
    for item in items {
        let number = if item["event_id"] == "a" { 1 } else { 2 };
        let told = json!({"name": "hookgate-batch", "value": place(&batch, number, 2)});
        let headers = item["headers"].as_array().expect("a list of headers");
        assert!(headers.contains(&told), "{item}");
    }
}

#[tokio::test]
async fn the_worst_event_answers_for_all_and_the_others_are_kept() {
    let replica = Embedded::serve_with(&[LINE]).await;
    replica
        .execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON webhook_events WHEN NEW.event_id = 'bad' \
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
        )
        .await;
    let batch = batch(&["a", "bad", "b"]);
    let answer = replica.deliver(&batch).await;
    assert!(answer.status >= 500, "{answer:?}");
    assert!(
        ["unavailable", "handler_failed"].contains(&answer.error()),
        "{answer:?}"
    );
    assert_eq!(
        replica
            .sql("SELECT event_id FROM webhook_events ORDER BY 1")
            .await,
        "a\nb"
    );
    assert_eq!(replica.deliveries("line", "accepted").await, 2.0);
    replica.execute("DROP TRIGGER refuse").await;
    until("the whole is accepted", async || {
        let again = replica.deliver(&batch).await;
        if again.status == 200 {
            lists(&again, &[("a", true), ("bad", false), ("b", true)]);
        }
        again.status == 200
    })
    .await;
}

#[tokio::test]
async fn more_events_than_one_delivery_may_carry_are_too_many_and_none_is_kept() {
    let replica = Embedded::serve_with(&[LINE]).await;
    let many = |count: usize| {
        batch_of(
            &(0..count)
                .map(|number| element(&format!("e{number}")))
                .collect::<Vec<_>>(),
        )
    };
    let answer = replica.deliver(&many(5_001)).await;
    assert_eq!(
        (answer.status, answer.error()),
        (413, "body_too_large"),
        "{answer:?}"
    );
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
    assert_eq!(replica.refusals("line", "body_too_large").await, 1.0);
    let answer = replica.deliver(&many(5_000)).await;
    assert_eq!(answer.status, 200, "{}", answer.error());
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "5000");
}

#[tokio::test]
async fn forward_of_a_provider_that_batches_stops_the_start() {
    let settings = [
        LINE,
        ("HOOKGATE_HANDLER", "forward"),
        ("HOOKGATE_TARGET_URL", "http://127.0.0.1:9/"),
    ];
    let ran = run(&["serve"], &settings).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains("line sends batches"), "{ran:#?}");
}
