//! What is an event id, and what is none.

use std::collections::HashSet;

use hookgate_webhook::Provider;

use crate::{deliver, malformed, read, reason, stripe, word};

fn check(json: &str, expected: &str) {
    assert_eq!(
        reason(stripe(format!(r#"{{"id":{json},"type":"a"}}"#))),
        expected,
        "{json}"
    );
}

#[test]
fn an_id_is_text_and_nothing_else() {
    for json in [
        "null",
        "\"\"",
        "0",
        "42",
        "1e3",
        "true",
        "{}",
        r#"{"id":"evt_1"}"#,
        r#"["evt_1"]"#,
    ] {
        check(json, "missing_event_id");
    }
    assert_eq!(reason(stripe(r#"{"type":"a"}"#)), "missing_event_id");
}

#[test]
fn an_id_has_255_bytes_at_most_and_no_control_characters() {
    let text = |length: usize| format!("\"{}\"", "x".repeat(length));
    check(&text(255), "ok");
    for length in [256, 300, 10_240] {
        check(&text(length), "bad_event_id");
    }
    check(&format!("\"{}\"", "é".repeat(128)), "bad_event_id");
    for json in [
        r#""a\u0000""#,
        r#""a\r\nSET x y""#,
        r#""\t""#,
        r#""\u007f""#,
        r#""\u0085""#,
        r#""\ud800""#,
    ] {
        check(json, "bad_event_id");
    }
}

#[test]
fn ids_differ_byte_for_byte() {
    let ids = [
        "a", "A", " a", "a ", "a:b", "..", "*", "😀", "é", "e\u{301}", "a%20", "evt_1&2", "\\u0000", "{a}",
    ];
    let kept: HashSet<_> = ids
        .iter()
        .map(|id| {
            let json = serde_json::to_string(id).unwrap();
            let event = stripe(format!(r#"{{"id":{json}}}"#)).unwrap();
            assert_eq!(event.id.as_str(), *id);
            event.id
        })
        .collect();
    assert_eq!(kept.len(), ids.len());
}

#[test]
fn an_id_in_a_header_follows_the_same_rules() {
    for (provider, header) in [
        (Provider::Github, "X-GitHub-Delivery"),
        (Provider::Shopify, "X-Shopify-Webhook-Id"),
    ] {
        let outcome = |headers: &[(&str, &[u8])]| reason(read(provider, "", headers, b"{}"));
        let long = [b'x'; 256];
        assert_eq!(outcome(&[(header, b"a")]), "ok");
        assert_eq!(outcome(&[(header, "ü".as_bytes())]), "ok");
        assert_eq!(outcome(&[]), "missing_event_id");
        assert_eq!(outcome(&[(header, b"")]), "missing_event_id");
        assert_eq!(outcome(&[(header, &long)]), "bad_event_id");
        assert_eq!(outcome(&[(header, b"\xff\xfe")]), "bad_event_id");
        assert_eq!(outcome(&[(header, b"a\tb")]), "bad_event_id");
        assert_eq!(outcome(&[(header, b"a"), (header, b"b")]), "bad_event_id");
    }
}

#[test]
fn a_signed_header_id_follows_the_same_rules() {
    let outcome = |id: &str| reason(read(Provider::StandardWebhooks, id, &[], b"{}"));
    assert_eq!(outcome("msg.1:2"), "ok");
    assert_eq!(outcome(&"x".repeat(256)), "bad_event_id");
    assert_eq!(outcome("a\u{7f}"), "bad_event_id");
}

#[test]
fn a_malformed_body_is_named_before_a_missing_id() {
    for provider in Provider::ALL {
        let outcome = deliver(provider, "msg_1", &[], b"Hello, World!");
        assert_eq!(word(outcome), malformed(provider), "{provider:?}");
    }
}
