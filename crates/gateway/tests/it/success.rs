//! What a provider hears when all is well: exactly 200, or exactly 204 where it wants that, whatever happened to the
//! event before and whether or not anybody knows its type.

use hookgate_harness::Upstream;
use hookgate_webhook::{Provider, Success};
use serde_json::Value;

use crate::embedded::Embedded;
use crate::every_provider;
use crate::gateway::{Answer, Replica};
use crate::provider::{self, SECRET};

fn is_a_plain_200(answer: &Answer, duplicate: bool) {
    assert!(answer.is_ok(duplicate), "{answer:?}");
    assert_eq!(
        answer.headers.get("content-type").map(String::as_str),
        Some("application/json")
    );
    let length: usize = answer.headers["content-length"].parse().expect("a length");
    assert!(length < 512, "{answer:?}");
    assert!(!answer.headers.contains_key("location"), "{answer:?}");
    assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
}

/// As the provider wants to hear it, and of a copy no less than of the first.
fn is_success(provider: Provider, answer: &Answer, duplicate: bool) {
    let knowledge = provider.knowledge();
    let name = provider.name();
    let of_type = answer.headers.get("content-type").map(String::as_str);
    assert_eq!(of_type, Some("application/json"), "{name}: {answer:?}");
    match knowledge.success {
        Success::NoContent => {
            assert_eq!(
                (answer.status, &answer.json),
                (204, &Value::Null),
                "{name}: {answer:?}"
            );
            assert!(
                answer
                    .headers
                    .get("content-length")
                    .is_none_or(|length| length == "0"),
                "{answer:?}"
            );
        }
        Success::Ok | Success::OkAccepted if knowledge.batches => {
            assert_eq!(
                (answer.status, &answer.json["received"]),
                (200, &Value::Bool(true)),
                "{name}: {answer:?}"
            );
            let events = answer.json["events"].as_array().expect("a list of events");
            assert!(
                !events.is_empty() && events.iter().all(|event| event["duplicate"] == duplicate),
                "{answer:?}"
            );
        }
        Success::Ok | Success::OkAccepted => is_a_plain_200(answer, duplicate),
    }
    if knowledge.success == Success::OkAccepted {
        assert!(
            answer.json.to_string().contains("[accepted]"),
            "{name}: {answer:?}"
        );
    }
}

/// Sends every event that there is a sample of, and two copies. Says how many events there were.
async fn every_event_is_success(replica: &Replica, providers: &[Provider]) -> usize {
    let mut events = 0;
    for &provider in providers {
        for event_type in provider.sample_types() {
            let event = every_provider::delivery(provider, event_type);
            if event.is_handshake(provider) {
                continue;
            }
            for duplicate in [false, true, true] {
                is_success(provider, &event.send(replica).await, duplicate);
            }
            events += 1;
        }
    }
    events
}

#[tokio::test]
async fn every_provider_hears_of_success_for_an_event_kept_and_for_its_copies() {
    let (replica, _directory) = every_provider::serve(&Provider::ALL, &[]).await;
    every_event_is_success(&replica, &Provider::ALL).await;
}

#[tokio::test]
async fn every_provider_hears_of_success_for_an_event_queued_for_a_target() {
    let upstream = Upstream::start().await;
    let settings = [("HOOKGATE_TARGET_URL", &*upstream.url())];
    let (replica, _directory) = every_provider::serve(&Provider::ALL, &settings).await;
    every_event_is_success(&replica, &Provider::ALL).await;
}

#[tokio::test]
async fn every_provider_hears_of_success_for_an_event_forwarded() {
    let upstream = Upstream::start().await;
    let url = upstream.url();
    let settings = [("HOOKGATE_TARGET_URL", &*url), ("HOOKGATE_HANDLER", "forward")];
    // A batch cannot be answered by one target's verdict.
    let alone: Vec<_> = Provider::ALL
        .into_iter()
        .filter(|provider| !provider.knowledge().batches)
        .collect();
    let (replica, _directory) = every_provider::serve(&alone, &settings).await;
    let events = every_event_is_success(&replica, &alone).await;
    assert_eq!(upstream.requests().len(), events, "each went out once");
}

#[tokio::test]
async fn an_event_of_an_unknown_type_is_kept_as_finished_with_the_reason() {
    let replica = Embedded::serve().await;
    let body = br#"{"id":"evt_1","type":"entirely.new","data":{"object":{"id":"somebody_elses"}}}"#;
    let event = provider::sign(Provider::Stripe, SECRET, "", body);
    is_a_plain_200(&replica.deliver(&event).await, false);
    is_a_plain_200(&replica.deliver(&event).await, true);
    let row = "SELECT concat_ws(' ', event_type, object_id, state, last_error) FROM webhook_events";
    assert_eq!(
        replica.sql(row).await,
        "entirely.new somebody_elses done no_consumer"
    );
    let mut forged = event;
    forged.body.push(b' ');
    assert_eq!(
        replica.deliver(&forged).await.status,
        400,
        "an invalid signature stays a 4xx"
    );
}

#[tokio::test]
async fn an_event_without_a_type_is_an_event() {
    let replica = Embedded::serve().await;
    for body in [
        r#"{"id":"evt_1"}"#,
        r#"{"id":"evt_2","type":null}"#,
        r#"{"id":"evt_3","type":7}"#,
    ] {
        let event = provider::sign(Provider::Stripe, SECRET, "", body.as_bytes());
        is_a_plain_200(&replica.deliver(&event).await, false);
    }
    let typed = replica.sql("SELECT count(event_type) FROM webhook_events").await;
    assert_eq!(typed, "0");
}

#[tokio::test]
async fn a_target_gets_events_of_types_that_nobody_knows() {
    let upstream = Upstream::start().await;
    let replica = Embedded::serve_with(&[("HOOKGATE_TARGET_URL", &upstream.url())]).await;
    let body = br#"{"id":"evt_1","type":"entirely.new"}"#;
    let event = provider::sign(Provider::Stripe, SECRET, "", body);
    is_a_plain_200(&replica.deliver(&event).await, false);
    let requests = upstream.wait_for(1).await;
    assert_eq!(requests[0].header("hookgate-event-type"), Some("entirely.new"));
}
