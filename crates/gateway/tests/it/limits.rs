//! How large a body may be, and how little a larger one costs: the answer comes while the rest is still on
//! its way, and nothing is unpacked.

use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::gateway::Replica;
use crate::provider::{self, SECRET, Signed};
use crate::raw::{self, Raw};

const LIMIT: usize = 300_000;

async fn limited() -> Embedded {
    Embedded::serve_with(&[("HOOKGATE_MAX_BODY_BYTES", &LIMIT.to_string())]).await
}

/// A signed Stripe event of exactly this size.
fn sized(bytes: usize) -> Signed {
    let frame = format!(r#"{{"id":"evt_{bytes}","note":""}}"#).len();
    let body = format!(r#"{{"id":"evt_{bytes}","note":"{}"}}"#, "x".repeat(bytes - frame));
    provider::sign(Provider::Stripe, SECRET, "", body.as_bytes())
}

#[tokio::test]
async fn a_body_up_to_the_limit_is_accepted_and_one_byte_more_is_not() {
    let replica = limited().await;
    for bytes in [100, 257_000, LIMIT - 1, LIMIT] {
        let answer = replica.deliver(&sized(bytes)).await;
        assert!(answer.is_ok(false), "{bytes}: {answer:?}");
    }
    for bytes in [LIMIT + 1, 1_000_000, 20_000_000] {
        let answer = replica.deliver(&sized(bytes)).await;
        assert_eq!(
            (answer.status, answer.error()),
            (413, "body_too_large"),
            "{bytes}"
        );
        assert!(
            answer.json["detail"]
                .as_str()
                .unwrap_or_default()
                .contains("300000"),
            "{answer:?}"
        );
    }
    assert_eq!(replica.refusals("stripe", "body_too_large").await, 3.0);
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "4");
}

#[tokio::test]
async fn an_announced_length_over_the_limit_is_answered_before_the_body_comes() {
    let replica = limited().await;
    for announced in [(LIMIT + 1).to_string(), u64::MAX.to_string()] {
        let mut client = Raw::connect(&replica).await;
        let headers = [("Content-Length".to_owned(), announced)];
        client.send(raw::head("/webhooks/stripe", &headers)).await;
        client.send(b"{\"id\":").await;
        let answer = client.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.error()), (413, "body_too_large"));
        client.closed().await;
    }
}

#[tokio::test]
async fn a_chunked_body_is_answered_as_soon_as_it_is_over_the_limit() {
    let replica = limited().await;
    let mut client = Raw::connect(&replica).await;
    let headers = [("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    client.send(raw::head("/webhooks/stripe", &headers)).await;
    let chunk = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
    for _ in 0..4 {
        client.send(&chunk).await;
    }
    let answer = client.answer().await.expect("an answer without a last chunk");
    assert_eq!((answer.status, answer.error()), (413, "body_too_large"));
    client.closed().await;
}

#[tokio::test]
async fn a_chunked_body_within_the_limit_is_one_body() {
    let replica = limited().await;
    let delivery = sized(5_000);
    let mut headers = delivery.headers.clone();
    headers.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
    let mut client = Raw::connect(&replica).await;
    client.send(raw::head("/webhooks/stripe", &headers)).await;
    for piece in delivery.body.chunks(7) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        client.send(&chunk).await;
    }
    client.send(b"0\r\n\r\n").await;
    assert!(client.answer().await.expect("an answer").is_ok(false));
}

#[tokio::test]
async fn oversized_bodies_leave_no_mark_on_memory() {
    const MEGABYTE: usize = 1 << 20;
    let replica = Embedded::serve_with(&[("HOOKGATE_THREADS", "1")]).await;
    let chunk = format!("{MEGABYTE:x}\r\n{}\r\n", "x".repeat(MEGABYTE));
    let flood = async |replica: &Replica| {
        let mut client = Raw::connect(replica).await;
        let headers = [("Transfer-Encoding".to_owned(), "chunked".to_owned())];
        client.send(raw::head("/webhooks/stripe", &headers)).await;
        for _ in 0..16 {
            if !client.send(&chunk).await {
                break;
            }
        }
        let status = client.answer().await.map(|answer| answer.status);
        assert!(matches!(status, None | Some(413)), "{status:?}");
    };
    // What the process needs once for a first large body is not what is asked about.
    flood(&replica).await;
    let before = peak_bytes(&replica);
    for _ in 0..16 {
        flood(&replica).await;
    }
    let grown = peak_bytes(&replica) - before;
    assert!(
        grown < 4 * MEGABYTE,
        "16 bodies of 16 MB over a limit of 1 MB cost {grown} bytes"
    );
}

/// The most memory the replica ever had resident.
fn peak_bytes(replica: &Replica) -> usize {
    let path = format!("/proc/{}/status", replica.process().pid());
    let status = std::fs::read_to_string(path).expect("the replica runs on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
    let kilobytes: usize = kilobytes.expect("a peak").trim().parse().expect("a number");
    kilobytes * 1024
}

#[tokio::test]
async fn a_compressed_body_is_refused_packed_whether_it_is_compressed_or_not() {
    let replica = limited().await;
    // The beginning of a gzip stream; how it would go on is never found out.
    let bomb = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3][..], &[0xed; 1_000]].concat();
    let plain = provider::stripe("evt_1").body;
    for body in [bomb, plain] {
        for encoding in [
            "gzip",
            "GZIP",
            "deflate",
            "br",
            "zstd",
            "gzip, gzip",
            "identity, gzip",
        ] {
            let mut delivery = provider::sign(Provider::Stripe, SECRET, "", &body);
            delivery
                .headers
                .push(("Content-Encoding".to_owned(), encoding.to_owned()));
            let answer = replica.deliver(&delivery).await;
            assert_eq!(
                (answer.status, answer.error()),
                (415, "unsupported_encoding"),
                "{encoding}"
            );
        }
    }
    let mut delivery = provider::stripe("evt_2");
    delivery
        .headers
        .push(("Content-Encoding".to_owned(), "identity".to_owned()));
    assert!(replica.deliver(&delivery).await.is_ok(false));
    assert_eq!(replica.refusals("stripe", "unsupported_encoding").await, 14.0);
    assert_eq!(replica.sql("SELECT event_id FROM webhook_events").await, "evt_2");
}

#[tokio::test]
async fn a_length_shorter_than_the_body_cuts_it_and_its_signature_fails() {
    let replica = limited().await;
    let delivery = provider::stripe("evt_1");
    let mut headers = delivery.headers.clone();
    headers.push(("Content-Length".to_owned(), (delivery.body.len() - 2).to_string()));
    let mut client = Raw::connect(&replica).await;
    client.send(raw::head("/webhooks/stripe", &headers)).await;
    client.send(&delivery.body).await;
    let answer = client.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.error()), (400, "bad_signature"));
    // The rest is no request, and is not answered as one.
    client.end().await;
    let rest = client.answer().await;
    assert!(
        rest.as_ref().is_none_or(|answer| answer.status == 400),
        "{rest:?}"
    );
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
}

#[tokio::test]
async fn a_length_longer_than_the_body_is_never_an_accepted_event() {
    let replica = Embedded::serve_with(&[("HOOKGATE_REQUEST_TIMEOUT", "300ms")]).await;
    let delivery = provider::stripe("evt_1");
    let mut headers = delivery.headers.clone();
    headers.push(("Content-Length".to_owned(), (delivery.body.len() + 1).to_string()));
    let whole = [raw::head("/webhooks/stripe", &headers).as_bytes(), &delivery.body].concat();

    let mut waiting = Raw::connect(&replica).await;
    waiting.send(&whole).await;
    let answer = waiting.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.error()), (408, "request_timeout"));
    waiting.closed().await;

    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
    // On a busy machine a short limit would strike before the end is seen.
    let replica = Embedded::serve().await;
    let mut leaving = Raw::connect(&replica).await;
    leaving.send(&whole).await;
    leaving.end().await;
    let answer = leaving.answer().await;
    assert!(
        answer
            .as_ref()
            .is_none_or(|answer| answer.error() == "malformed_body"),
        "{answer:?}"
    );
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
    assert!(
        replica.deliver(&delivery).await.is_ok(false),
        "the event itself is still welcome"
    );
}

#[tokio::test]
async fn a_head_that_is_too_large_or_no_http_is_closed_and_the_gateway_goes_on() {
    let replica = limited().await;
    let long = format!(
        "POST /webhooks/stripe HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let many = format!("POST /webhooks/stripe HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(500));
    let garbage: [&[u8]; 7] = [
        long.as_bytes(),
        many.as_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /webhooks/stripe HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"POST /webhooks/stripe HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ];
    for bytes in garbage {
        let mut client = Raw::connect(&replica).await;
        client.send(bytes).await;
        client.end().await;
        let answer = client.answer().await;
        let status = answer.map(|answer| answer.status);
        assert!(
            status.is_none_or(|status| (400..500).contains(&status)),
            "{status:?}"
        );
        client.closed().await;
    }
    let mut last = provider::stripe("evt_1");
    last.headers
        .push(("X-Request-Id".to_owned(), "the-last-one".to_owned()));
    assert!(replica.deliver(&last).await.is_ok(false));
    replica.delivery_lines("the-last-one").await;
    let errors = replica.process().lines();
    let errors: Vec<_> = errors.iter().filter(|line| line.contains("ERROR")).collect();
    assert!(
        errors.is_empty(),
        "nobody need look at what strangers say: {errors:#?}"
    );
}
