//! Every refusal of the contract: its word, its status, its counter, a sentence that says what to do, and not
//! a trace of it in any store.

use hookgate_harness::{PostgresServer, RedisServer};
use hookgate_webhook::Provider;
use reqwest::Method;

use crate::gateway::{Answer, Replica};
use crate::provider::{self, SECRET, Signed};
use crate::raw::{self, Raw};

fn signed(body: &[u8]) -> Signed {
    provider::sign(Provider::Stripe, SECRET, "", body)
}

fn with_header(name: &str, value: &str) -> Signed {
    let mut delivery = provider::stripe("evt_refused");
    delivery.headers.push((name.to_owned(), value.to_owned()));
    delivery
}

fn with_signature(value: &str) -> Signed {
    let mut delivery = provider::stripe("evt_refused");
    delivery.headers = vec![("Stripe-Signature".to_owned(), value.to_owned())];
    delivery
}

fn unsigned() -> Signed {
    let mut delivery = provider::stripe("evt_refused");
    delivery.headers.clear();
    delivery
}

fn forged() -> Signed {
    let mut delivery = provider::stripe("evt_refused");
    delivery.body.push(b'\n');
    delivery
}

/// A body that is too slow, and one that breaks off.
async fn unfinished(replica: &Replica, leave: bool) -> Option<Answer> {
    let mut client = Raw::connect(replica).await;
    let length = [("Content-Length".to_owned(), "100".to_owned())];
    client.send(raw::head("/webhooks/stripe", &length)).await;
    client.send(b"{\"id\":\"evt_refused\"").await;
    if leave {
        client.end().await;
    }
    client.answer().await
}

#[tokio::test]
async fn each_has_its_word_its_counter_and_a_sentence_and_none_touches_a_store() {
    let (redis, postgres) = (RedisServer::start().await, PostgresServer::shared().await);
    let database = postgres.create_database().await;
    let (redis_url, mut settings) = (redis.url(), crate::embedded::ALL_SECRETS.to_vec());
    settings.extend([
        ("REDIS_URL", redis_url.as_str()),
        ("DATABASE_URL", &database),
        ("HOOKGATE_REQUEST_TIMEOUT", "500ms"),
        ("HOOKGATE_MAX_BODY_BYTES", "10000"),
    ]);
    let replica = Replica::serve(&settings).await;
    assert!(replica.deliver(&provider::stripe("evt_0")).await.is_ok(false));
    let monitor = redis.monitor().await;

    let now = provider::now();
    let body = provider::stripe("evt_refused").body;
    let at = |provider, moment| provider::sign_at(provider, SECRET, "msg", &body, moment);
    let deliveries = [
        (400, "missing_signature", unsigned()),
        (400, "malformed_signature", with_signature("nonsense")),
        (400, "bad_signature", forged()),
        (400, "stale_timestamp", at(Provider::Stripe, now - 3_600)),
        (
            400,
            "future_timestamp",
            at(Provider::StandardWebhooks, now + 3_600),
        ),
        (400, "malformed_body", signed(b"no json")),
        (400, "missing_event_id", signed(b"{}")),
        (400, "bad_event_id", signed(b"{\"id\":\"a\\nb\"}")),
        (413, "body_too_large", signed(&[b' '; 10_001])),
        (
            415,
            "unsupported_encoding",
            with_header("Content-Encoding", "gzip"),
        ),
    ];
    for (status, error, delivery) in deliveries {
        let before = replica.refusals(&delivery.source, error).await;
        let answer = replica.deliver(&delivery).await;
        assert_eq!((answer.status, answer.error()), (status, error), "{answer:?}");
        says_what_to_do(&answer);
        assert_eq!(
            replica.refusals(&delivery.source, error).await,
            before + 1.0,
            "{error}"
        );
    }
    let slow = unfinished(&replica, false).await.expect("an answer");
    assert_eq!((slow.status, slow.error()), (408, "request_timeout"));
    says_what_to_do(&slow);
    assert_eq!(replica.refusals("stripe", "request_timeout").await, 1.0);
    let cut = unfinished(&replica, true).await;
    assert!(cut.is_none_or(|answer| answer.error() == "malformed_body"));
    let unknown = replica.ask(Method::POST, "/webhooks/nobody").await;
    assert_eq!((unknown.status, unknown.error()), (404, "unknown_source"));
    says_what_to_do(&unknown);
    let get = replica.ask(Method::GET, "/webhooks/stripe").await;
    assert_eq!((get.status, get.error()), (405, "method_not_allowed"));
    says_what_to_do(&get);

    let touching = monitor.commands().await;
    let touching: Vec<_> = touching.iter().filter(|line| !line.contains("PING")).collect();
    assert!(touching.is_empty(), "{touching:?}");
    assert_eq!(
        postgres.psql(&database, "SELECT event_id FROM webhook_events"),
        "evt_0"
    );
}

fn says_what_to_do(answer: &Answer) {
    let detail = answer.json["detail"].as_str().unwrap_or_default();
    assert!((10..200).contains(&detail.len()), "{answer:?}");
    assert!(
        !detail.contains("evt_refused"),
        "a body is not quoted: {answer:?}"
    );
    assert_eq!(
        answer.headers.get("content-type").map(String::as_str),
        Some("application/json")
    );
    assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
}
