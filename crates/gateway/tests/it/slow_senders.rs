//! Clients that dawdle: each is let go within the stated time, and nobody else notices them.

use std::time::Duration;

use hookgate_harness::PATIENCE;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use crate::api::ADMIN_TOKEN;
use crate::embedded::Embedded;
use crate::provider;
use crate::raw::{self, Raw};

/// Of each kind.
const SLOW_CLIENTS: usize = 16;

/// Between two bytes: far more of them than fit into the request timeout.
const DRIP: Duration = Duration::from_millis(100);

async fn impatient() -> Embedded {
    Embedded::serve_with(&[("HOOKGATE_REQUEST_TIMEOUT", "1s"), ("HOOKGATE_KEEP_ALIVE", "1s")]).await
}

/// A head that never ends.
const ENDLESS_HEAD: &str = "POST /webhooks/stripe HTTP/1.1\r\nX-Slow: ";

/// Sends a byte at a time for ever; returns the status it was let go with.
async fn drip(mut client: Raw, bytes: &'static [u8]) -> Option<u16> {
    let mut pace = interval(DRIP);
    let dripping = async {
        for byte in bytes.iter().cycle() {
            pace.tick().await;
            if !client.send([*byte]).await {
                break;
            }
            if client.has_heard().await {
                break;
            }
        }
    };
    timeout(PATIENCE, dripping)
        .await
        .expect("a slow client is let go");
    let status = client.answer().await.map(|answer| answer.status);
    timeout(PATIENCE, client.closed())
        .await
        .expect("a slow client is let go");
    status
}

#[tokio::test]
async fn slow_and_silent_clients_are_let_go_while_events_are_answered() {
    let replica = impatient().await;
    let mut slow = JoinSet::new();
    let announced = [("Content-Length".to_owned(), "1000".to_owned())];
    let chunked = [("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    for _ in 0..SLOW_CLIENTS {
        let mut heads = Raw::connect(&replica).await;
        heads.send(ENDLESS_HEAD).await;
        slow.spawn(drip(heads, b"x"));

        let mut bodies = Raw::connect(&replica).await;
        bodies.send(raw::head("/webhooks/stripe", &announced)).await;
        slow.spawn(drip(bodies, b"{"));

        let mut chunks = Raw::connect(&replica).await;
        chunks.send(raw::head("/webhooks/stripe", &chunked)).await;
        slow.spawn(drip(chunks, b"1\r\n{\r\n"));

        let silent = Raw::connect(&replica).await;
        slow.spawn(async move {
            timeout(PATIENCE, silent.closed())
                .await
                .expect("a silent client is let go");
            None
        });
    }
    let mut events = 0;
    let mut statuses = Vec::new();
    while !slow.is_empty() {
        let event = provider::stripe(&format!("evt_{events}"));
        assert!(replica.deliver(&event).await.is_ok(false));
        events += 1;
        while let Some(status) = slow.try_join_next() {
            statuses.push(status.expect("a slow client does not fail"));
        }
    }
    assert_eq!(statuses.len(), 4 * SLOW_CLIENTS);
    assert!(
        statuses.iter().all(|status| matches!(status, None | Some(408))),
        "{statuses:?}"
    );
    let bodies = replica.refusals("stripe", "request_timeout").await;
    assert_eq!(bodies, 2.0 * SLOW_CLIENTS as f64, "slow bodies are counted");
    assert_eq!(replica.deliveries("stripe", "accepted").await, f64::from(events));
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_a_while_and_then_closed() {
    let replica = impatient().await;
    let mut client = Raw::connect(&replica).await;
    client.send(raw::request(&provider::stripe("evt_1"))).await;
    assert!(client.answer().await.expect("an answer").is_ok(false));
    client.closed().await;
}

#[tokio::test]
async fn a_slow_second_request_is_let_go_like_a_slow_first_one() {
    let replica = impatient().await;
    let mut client = Raw::connect(&replica).await;
    client.send(raw::request(&provider::stripe("evt_1"))).await;
    assert!(client.answer().await.expect("an answer").is_ok(false));
    client.send(ENDLESS_HEAD).await;
    let status = drip(client, b"x").await;
    assert!(matches!(status, None | Some(408)), "{status:?}");
}

#[tokio::test]
async fn a_body_that_nobody_wants_cannot_hold_a_connection() {
    let replica = impatient().await;
    let announced = [("Content-Length".to_owned(), "100000".to_owned())];
    let chunked = [("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    for headers in [announced, chunked] {
        let mut client = Raw::connect(&replica).await;
        client.send(raw::head("/webhooks/nobody", &headers)).await;
        let answer = client.answer().await.expect("an answer before the body");
        assert_eq!(answer.status, 404);
        drip(client, b"1\r\nx\r\n").await;
    }
}

/// A connection to the admin listener that was answered once.
async fn answered_once(replica: &Embedded) -> Raw {
    let mut client = Raw::connect_to(replica.admin_address()).await;
    client
        .send("GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
        .await;
    assert_eq!(client.answer().await.expect("an answer").status, 200);
    client
}

#[tokio::test]
async fn strangers_cannot_keep_connections_of_the_admin_listener() {
    let replica = impatient().await;
    let length = [("Content-Length".to_owned(), "100000".to_owned())];
    let chunked = [("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    let mut slow = JoinSet::new();
    let heads = [
        ENDLESS_HEAD.to_owned(),
        raw::head("/v1/events/replay", &length),
        raw::head("/v1/events/replay", &chunked),
        raw::head("/healthz", &chunked),
        raw::head("/nothing", &chunked),
    ];
    for head in &heads {
        let mut client = answered_once(&replica).await;
        client.send(head).await;
        slow.spawn(drip(client, b"1\r\nx\r\n"));
        let mut client = Raw::connect_to(replica.admin_address()).await;
        client.send(head).await;
        slow.spawn(drip(client, b"1\r\nx\r\n"));
    }
    let idle = answered_once(&replica).await;
    slow.spawn(async move {
        idle.closed().await;
        None
    });
    assert_eq!(slow.join_all().await.len(), 2 * heads.len() + 1);
}

#[tokio::test]
async fn a_slow_body_is_let_go_at_the_admin_listener_whoever_sends_it() {
    let replica = Embedded::serve_with(&[
        ("HOOKGATE_REQUEST_TIMEOUT", "1s"),
        ("HOOKGATE_KEEP_ALIVE", "1s"),
        ("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN),
    ])
    .await;
    let token = ("Authorization".to_owned(), format!("Bearer {ADMIN_TOKEN}"));
    let length = ("Content-Length".to_owned(), "1000".to_owned());
    let chunked = ("Transfer-Encoding".to_owned(), "chunked".to_owned());
    for (headers, status) in [
        (vec![token.clone(), length.clone()], 408),
        (vec![token, chunked.clone()], 408),
        (vec![length], 401),
        (vec![chunked], 401),
    ] {
        let mut client = answered_once(&replica).await;
        client.send(raw::head("/v1/events/replay", &headers)).await;
        assert_eq!(drip(client, b"1\r\n \r\n").await, Some(status), "{headers:?}");
    }
}

#[tokio::test]
async fn one_who_takes_every_connection_of_the_admin_listener_does_not_stop_the_public_one() {
    const TAKEN: usize = 512;
    const BEYOND: usize = 32;
    let replica = Embedded::serve().await;
    let mut taken = Vec::new();
    for _ in 0..TAKEN {
        taken.push(answered_once(&replica).await);
    }
    let mut beyond = Vec::new();
    for _ in 0..BEYOND {
        let mut client = Raw::connect_to(replica.admin_address()).await;
        client
            .send("GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
            .await;
        beyond.push(client);
    }
    assert!(replica.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    for client in &mut beyond {
        assert!(!client.has_heard().await, "more connections are open than may be");
    }
    drop(taken);
    for client in &mut beyond {
        assert_eq!(client.answer().await.expect("an answer").status, 200);
    }
}

#[tokio::test]
async fn a_consumer_may_wait_for_longer_than_a_stranger_has_for_a_request() {
    let replica = Embedded::serve_with(&[
        ("HOOKGATE_REQUEST_TIMEOUT", "500ms"),
        ("HOOKGATE_KEEP_ALIVE", "1s"),
        ("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN),
        ("HOOKGATE_CONSUMER", "pull"),
    ])
    .await;
    let body = r#"{"sources": ["stripe"], "wait": "4s"}"#;
    let headers = [
        ("Authorization".to_owned(), format!("Bearer {ADMIN_TOKEN}")),
        ("Content-Length".to_owned(), body.len().to_string()),
    ];
    let polite = [&headers[..], &[("Expect".to_owned(), "100-continue".to_owned())]].concat();
    let mut client = Raw::connect_to(replica.admin_address()).await;
    for headers in [&headers[..], &polite] {
        client.send(raw::head("/v1/consume", headers)).await;
        if headers.len() > 2 {
            assert_eq!(client.answer().await.expect("an interim answer").status, 100);
        }
        client.send(body).await;
        let answer = client.answer().await.expect("an answer");
        assert_eq!(
            (answer.status, answer.json["items"].to_string()),
            (200, "[]".to_owned()),
            "{answer:?}"
        );
    }
}
