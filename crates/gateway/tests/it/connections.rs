//! What one connection may say: one request after the other, several at once, and by POST.

use reqwest::Method;

use crate::embedded::Embedded;
use crate::provider;
use crate::raw::{self, Raw};

#[tokio::test]
async fn one_connection_carries_many_deliveries() {
    let replica = Embedded::serve().await;
    let mut client = Raw::connect(&replica).await;
    for number in 0..20 {
        let delivery = provider::stripe(&format!("evt_{number}"));
        assert!(client.send(raw::request(&delivery)).await);
        let answer = client.answer().await.expect("the connection stays open");
        assert!(answer.is_ok(false), "{answer:?}");
    }
}

#[tokio::test]
async fn pipelined_deliveries_are_answered_each_and_in_order() {
    let replica = Embedded::serve().await;
    let mut client = Raw::connect(&replica).await;
    let ids: Vec<_> = (0..10).map(|number| format!("evt_{number}")).collect();
    let mut requests: Vec<_> = ids.iter().map(|id| raw::request(&provider::stripe(id))).collect();
    requests.push(raw::request(&provider::stripe("evt_0")));
    client.send(requests.concat()).await;
    for id in &ids {
        let answer = client.answer().await.expect("an answer for each");
        assert!(answer.is_ok(false), "{answer:?}");
        assert_eq!(answer.json["event_id"], id.as_str());
    }
    assert!(client.answer().await.expect("an answer for the copy").is_ok(true));
}

#[tokio::test]
async fn a_refused_request_does_not_spoil_the_next_one_on_its_connection() {
    let replica = Embedded::serve().await;
    let mut client = Raw::connect(&replica).await;
    let mut forged = provider::stripe("evt_1");
    forged.body[2] ^= 1;
    client.send(raw::request(&forged)).await;
    let refused = client.answer().await.expect("an answer");
    assert_eq!(refused.error(), "bad_signature");
    assert_ne!(
        refused.headers.get("connection").map(String::as_str),
        Some("close")
    );
    client.send(raw::request(&provider::stripe("evt_1"))).await;
    assert!(
        client
            .answer()
            .await
            .expect("the connection stays open")
            .is_ok(false)
    );
}

#[tokio::test]
async fn a_body_cannot_smuggle_a_second_request() {
    let replica = Embedded::serve().await;
    let inner = raw::request(&provider::stripe("evt_smuggled"));
    let inner = String::from_utf8(inner).expect("text");
    // Two lengths that disagree: taken by one of them alone, or refused, but never read by both.
    let both = format!(
        "POST /webhooks/stripe HTTP/1.1\r\nHost: g\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        inner.len() + 5,
    );
    let mut client = Raw::connect(&replica).await;
    client.send(both).await;
    client.end().await;
    while let Some(answer) = client.answer().await {
        assert_ne!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
}

#[tokio::test]
async fn whoever_waits_to_be_told_to_continue_is_told() {
    let replica = Embedded::serve().await;
    let delivery = provider::stripe("evt_1");
    let mut headers = delivery.headers.clone();
    headers.push(("Expect".to_owned(), "100-continue".to_owned()));
    headers.push(("Content-Length".to_owned(), delivery.body.len().to_string()));
    let mut client = Raw::connect(&replica).await;
    client.send(raw::head("/webhooks/stripe", &headers)).await;
    assert_eq!(client.answer().await.expect("an interim answer").status, 100);
    client.send(&delivery.body).await;
    assert!(client.answer().await.expect("an answer").is_ok(false));
}

#[tokio::test]
async fn only_post_delivers_and_the_others_are_told_so() {
    let replica = Embedded::serve().await;
    let methods = [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::from_bytes(b"POSTPOST").expect("a method"),
    ];
    for method in &methods {
        let answer = replica.ask(method.clone(), "/webhooks/stripe").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(
            answer.headers.get("allow").map(String::as_str),
            Some("POST"),
            "{method}"
        );
        if *method != Method::HEAD {
            assert_eq!(answer.error(), "method_not_allowed", "{method}");
        }
    }
    let refused = replica.refusals("stripe", "method_not_allowed").await;
    assert_eq!(refused, methods.len() as f64);
}

#[tokio::test]
async fn there_is_one_path_and_everything_beside_it_is_an_unknown_source() {
    let replica = Embedded::serve().await;
    let paths = [
        "/",
        "/webhooks",
        "/webhooks/",
        "/webhooks/stripe/",
        "/webhooks/stripe/x",
        "/webhooks/Stripe",
        "/webhooks/unknown",
        "/webhooks/%00",
        "/webhooks/%ff%fe",
        "/webhooks/..%2fstripe",
        "/webhooks//stripe",
        "/healthz",
        "/metrics",
        "/%2e%2e/etc/passwd",
    ];
    for path in paths {
        for method in [Method::POST, Method::GET] {
            let answer = replica.ask(method, path).await;
            assert_eq!((answer.status, answer.error()), (404, "unknown_source"), "{path}");
            assert!(
                answer.json["detail"]
                    .as_str()
                    .is_some_and(|detail| !detail.is_empty()),
                "{path}"
            );
            assert!(answer.headers.contains_key("x-request-id"), "{path}");
            assert!(!answer.json.to_string().contains("passwd"), "{path}");
        }
    }
    let each = 2.0 * paths.len() as f64;
    assert_eq!(replica.refusals("unknown", "unknown_source").await, each);
    assert_eq!(replica.deliveries("unknown", "refused").await, each);
    let mut signed = provider::stripe("evt_1");
    signed.source = "stripe?from=somewhere".to_owned();
    assert!(
        replica.deliver(&signed).await.is_ok(false),
        "a query is not part of the path"
    );
}

#[tokio::test]
async fn a_probe_may_ask_for_the_head_alone_and_for_nothing_but_get_and_head() {
    let replica = Embedded::serve().await;
    let admin = format!("http://{}", replica.admin_address());
    for path in ["/healthz", "/readyz", "/metrics"] {
        let ask = async |method: Method| {
            let asked = crate::gateway::client().request(method, format!("{admin}{path}"));
            asked.send().await.expect("the admin listener answers")
        };
        let head = ask(Method::HEAD).await;
        assert_eq!(head.status(), 200, "{path}");
        let get = ask(Method::GET).await;
        assert_eq!(get.headers()["content-type"], head.headers()["content-type"]);
        assert!(head.bytes().await.expect("an end").is_empty());
        assert!(!get.bytes().await.expect("a body").is_empty());
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let refused = ask(method.clone()).await;
            assert_eq!(refused.status(), 405, "{method} {path}");
            assert_eq!(refused.headers()["allow"], "GET, HEAD", "{method} {path}");
        }
    }
}
