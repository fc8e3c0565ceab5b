//! The bytes that were signed are the bytes that are kept and handed on, whatever an editor, a JSON library
//! or a character set would have made of them.

use hookgate_harness::Upstream;
use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::provider::{self, SECRET, Signed};

fn stripe(body: &[u8], content_type: &str) -> Signed {
    let mut signed = provider::sign(Provider::Stripe, SECRET, "", body);
    signed
        .headers
        .push(("Content-Type".to_owned(), content_type.to_owned()));
    signed
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// What is in the ledger for this event, in hexadecimal.
async fn stored(replica: &Embedded, event_id: &str) -> String {
    let query = format!("SELECT lower(hex(body)) FROM webhook_events WHERE event_id = '{event_id}'");
    replica.sql(&query).await
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn readable_bodies_are_kept_byte_for_byte() {
    let replica = Embedded::serve().await;
    let bodies: [(&str, &[u8]); 10] = [
        (
            "evt_emoji",
            "{\"id\":\"evt_emoji\",\"note\":\"😀 ☕\"}".as_bytes(),
        ),
        (
            "evt_marks",
            "{\"id\":\"evt_marks\",\"note\":\"e\u{301} \u{e9}\"}".as_bytes(),
        ),
        ("evt_bom", b"\xef\xbb\xbf{\"id\":\"evt_bom\"}"),
        ("evt_newline", b"{\"id\":\"evt_newline\"}\n"),
        ("evt_crlf", b"{\r\n  \"id\": \"evt_crlf\"\r\n}\r\n"),
        (
            "evt_spacing",
            b"\t{ \"z\" :1,\n\n\"id\"  :\"evt_spacing\" , \"a\":\t[ ] }  ",
        ),
        (
            "evt_numbers",
            br#"{"id":"evt_numbers","amount":9007199254740993,"b":1.0,"c":1e2,"d":0.1000,"e":-0}"#,
        ),
        (
            "evt_escapes",
            br#"{"id":"evt\u005fescapes","url":"https:\/\/example.com\/","s":"\u00e9"}"#,
        ),
        (
            "evt_twice",
            br#"{"id":"evt_twice","amount":1,"amount":2,"data":{"x":1,"x":2}}"#,
        ),
        (
            "evt_order",
            br#"{"type":"b","id":"evt_order","created":1790000000,"a":1}"#,
        ),
    ];
    for (event_id, body) in bodies {
        for content_type in ["application/json", "text/plain; charset=iso-8859-1"] {
            let answer = replica.deliver(&stripe(body, content_type)).await;
            assert_eq!(answer.status, 200, "{event_id}: {answer:?}");
            assert_eq!(answer.json["event_id"], event_id);
            assert_eq!(stored(&replica, event_id).await, hex(body), "{event_id}");
        }
    }
    assert_eq!(replica.deliveries("stripe", "accepted").await, 10.0);
    assert_eq!(replica.deliveries("stripe", "duplicate").await, 10.0);
}

#[tokio::test]
async fn a_signed_body_that_is_no_json_object_is_refused_after_its_signature_and_counted() {
    let replica = Embedded::serve().await;
    let bodies: [(&str, Vec<u8>); 12] = [
        ("empty", Vec::new()),
        (
            "a lone continuation byte",
            b"{\"id\":\"evt_1\",\"note\":\"\x80\"}".to_vec(),
        ),
        (
            "an overlong slash",
            b"{\"id\":\"evt_1\",\"note\":\"\xc0\xaf\"}".to_vec(),
        ),
        (
            "a surrogate in UTF-8",
            b"{\"id\":\"evt_1\",\"note\":\"\xed\xa0\x80\"}".to_vec(),
        ),
        ("UTF-16", utf16(r#"{"id":"evt_1"}"#)),
        (
            "two byte order marks",
            b"\xef\xbb\xbf\xef\xbb\xbf{\"id\":\"evt_1\"}".to_vec(),
        ),
        ("a list", br#"[{"id":"evt_1"}]"#.to_vec()),
        ("a bare text", br#""evt_1""#.to_vec()),
        ("cut off", br#"{"id":"evt_1""#.to_vec()),
        ("something behind it", br#"{"id":"evt_1"}{"id":"evt_2"}"#.to_vec()),
        (
            "a raw control character",
            b"{\"id\":\"evt_1\",\"note\":\"a\nb\"}".to_vec(),
        ),
        ("the id twice", br#"{"id":"evt_1","id":"evt_2"}"#.to_vec()),
    ];
    for (what, body) in &bodies {
        let answer = replica.deliver(&stripe(body, "application/json")).await;
        assert_eq!((answer.status, answer.error()), (400, "malformed_body"), "{what}");
        let mut forged = stripe(body, "application/json");
        forged.body.push(b' ');
        let answer = replica.deliver(&forged).await;
        assert_eq!(
            answer.error(),
            "bad_signature",
            "{what}: the signature is judged first"
        );
    }
    assert_eq!(
        replica.refusals("stripe", "malformed_body").await,
        bodies.len() as f64
    );
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
}

#[tokio::test]
async fn a_target_gets_the_bytes_that_were_signed_and_can_verify_them_itself() {
    let upstream = Upstream::start().await;
    let replica = Embedded::serve_with(&[("HOOKGATE_TARGET_URL", &upstream.url())]).await;
    let body = b"\xef\xbb\xbf{ \"id\":\"evt_1\",\r\n \"amount\": 9007199254740993, \"amount\":1.0 ,\"s\":\"\\/\\u00e9\xf0\x9f\x98\x80\" }\n";
    let delivery = stripe(body, "application/json; charset=iso-8859-1");
    assert!(replica.deliver(&delivery).await.is_ok(false));
    let requests = upstream.wait_for(1).await;
    assert_eq!(requests[0].body.as_ref(), body);
    for (name, value) in &delivery.headers {
        assert_eq!(requests[0].header(name), Some(value.as_str()));
    }
}

#[tokio::test]
async fn the_id_that_deduplicates_is_the_id_that_the_target_gets() {
    let upstream = Upstream::start().await;
    let replica = Embedded::serve_with(&[("HOOKGATE_TARGET_URL", &upstream.url())]).await;
    // Escapes in the key and in the value: one event for every JSON reader, and so for us.
    let plain = stripe(br#"{"id":"evt_1","type":"a"}"#, "application/json");
    let escaped = stripe(br#"{"\u0069d":"\u0065vt_1","type":"a"}"#, "application/json");
    // Inside another object it is another field.
    let inner = stripe(br#"{"data":{"id":"evt_1"},"id":"evt_2"}"#, "application/json");
    assert!(replica.deliver(&plain).await.is_ok(false));
    assert!(replica.deliver(&escaped).await.is_ok(true));
    assert!(replica.deliver(&inner).await.is_ok(false));
    let requests = upstream.wait_for(2).await;
    let mut ids: Vec<_> = requests.iter().filter_map(|request| request.id()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["stripe:evt_1", "stripe:evt_2"]);
}
