//! What a provider hears when all is well: exactly 200, whatever happened to the event before and whether or
//! not anybody knows its type.

use hookgate_harness::Upstream;
use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::gateway::Answer;
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

async fn every_type_of_every_provider_is_200(replica: &Embedded) {
    for provider in Provider::ALL {
        for event_type in provider.sample_types() {
            let event = provider::event_of(provider, event_type);
            is_a_plain_200(&replica.deliver(&event).await, false);
            is_a_plain_200(&replica.deliver(&event).await, true);
            is_a_plain_200(&replica.deliver(&event).await, true);
        }
    }
}

#[tokio::test]
async fn every_provider_gets_exactly_200_for_an_event_kept_and_for_its_copies() {
    every_type_of_every_provider_is_200(&Embedded::serve().await).await;
}

#[tokio::test]
async fn every_provider_gets_exactly_200_for_an_event_queued_for_a_target() {
    let upstream = Upstream::start().await;
    let settings = [("HOOKGATE_TARGET_URL", &*upstream.url())];
    every_type_of_every_provider_is_200(&Embedded::serve_with(&settings).await).await;
}

#[tokio::test]
async fn every_provider_gets_exactly_200_for_an_event_forwarded() {
    let upstream = Upstream::start().await;
    let url = upstream.url();
    let settings = [("HOOKGATE_TARGET_URL", &*url), ("HOOKGATE_HANDLER", "forward")];
    let replica = Embedded::serve_with(&settings).await;
    every_type_of_every_provider_is_200(&replica).await;
    let types: usize = Provider::ALL
        .iter()
        .map(|provider| provider.sample_types().count())
        .sum();
    assert_eq!(upstream.requests().len(), types, "each went out once");
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
