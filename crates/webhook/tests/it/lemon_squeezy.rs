//! Lemon Squeezy: an id that is not documented, and a type that a header repeats without being signed.

use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use crate::{keys, read, reason, verify};

fn lemon(body: &str) -> Result<Event, Unreadable> {
    read(Provider::LemonSqueezy, "", &[], body.as_bytes())
}

/// A body whose `meta.webhook_id` is this JSON.
fn with_id(json: &str) -> String {
    format!(r#"{{"meta":{{"webhook_id":{json},"event_name":"order_created"}},"data":{{"id":"7"}}}}"#)
}

#[test]
fn the_signed_body_names_everything() {
    let event = lemon(
        r#"{"data":{"type":"orders","id":"7001","attributes":{"store_id":1001,"updated_at":"2026-09-21T12:00:00.000001Z","url":"https:\/\/x"}},"meta":{"test_mode":false,"event_name":"order_created","webhook_id":"0d6c"}}"#,
    )
    .unwrap();
    assert_eq!((event.id.as_str(), event.id_is_digest), ("0d6c", false));
    assert_eq!(event.event_type.unwrap().as_str(), "order_created");
    assert_eq!(event.object_id.unwrap().as_str(), "7001");
    assert_eq!(event.account.unwrap().as_str(), "1001");
    assert_eq!(event.mode, Mode::Live);
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_992_000_000);
}

#[test]
fn an_event_name_in_a_header_changes_nothing() {
    let body = with_id("\"0d6c\"");
    let headers: [(&str, &[u8]); 1] = [("X-Event-Name", b"subscription_created")];
    let event = read(Provider::LemonSqueezy, "", &headers, body.as_bytes()).unwrap();
    assert_eq!(event.event_type.unwrap().as_str(), "order_created");
    let nameless = br#"{"meta":{"webhook_id":"0d6c"}}"#;
    let event = read(Provider::LemonSqueezy, "", &headers, nameless).unwrap();
    assert_eq!(event.event_type, None);
}

#[test]
fn without_an_id_the_bytes_and_the_name_are_the_identity() {
    let body = |name: &str, note: &str| {
        format!(r#"{{"meta":{{"event_name":"{name}"}},"data":{{"id":"9001","note":"{note}"}}}}"#)
    };
    let updated = body("subscription_updated", "a");
    let id = |body: &str| {
        let event = lemon(body).unwrap();
        assert!(event.id_is_digest);
        event.id
    };
    assert_eq!(id(&updated), id(&updated), "a copy");
    assert_ne!(
        id(&updated),
        id(&body("subscription_updated", "b")),
        "the next update"
    );
    assert_ne!(id(&updated), id(&body("subscription_created", "a")));
    assert_ne!(id(&updated), id(&format!("{updated}\n")), "one byte more");
    assert!(id(&updated).as_str().starts_with("sha256-"));
    assert_eq!(id(&updated).as_str().len(), "sha256-".len() + 64);
}

#[test]
fn what_is_no_text_is_no_id_and_what_does_not_fit_is_refused() {
    for json in ["null", "\"\"", "7", "true", "{}", "[\"0d6c\"]"] {
        assert!(lemon(&with_id(json)).unwrap().id_is_digest, "{json}");
    }
    let long = format!("\"{}\"", "x".repeat(300));
    for json in [&*long, r#""a\u0000""#, r#""\ud800""#] {
        assert_eq!(reason(lemon(&with_id(json))), "bad_event_id", "{json}");
    }
    assert_eq!(
        reason(lemon(r#"{"meta":{"webhook_id":"a","webhook_id":"b"}}"#)),
        "malformed_body"
    );
    assert_eq!(
        reason(lemon(r#"{"meta":{},"meta":{"webhook_id":"b"}}"#)),
        "malformed_body"
    );
}

#[test]
fn test_mode_is_a_boolean_or_nothing() {
    for (json, mode) in [
        ("true", Mode::Test),
        ("false", Mode::Live),
        ("null", Mode::Unknown),
        ("\"true\"", Mode::Unknown),
        ("1", Mode::Unknown),
    ] {
        let event = lemon(&format!(r#"{{"meta":{{"webhook_id":"a","test_mode":{json}}}}}"#)).unwrap();
        assert_eq!(event.mode, mode, "{json}");
    }
    assert_eq!(
        lemon(r#"{"meta":{"webhook_id":"a"}}"#).unwrap().mode,
        Mode::Unknown
    );
}

#[test]
fn large_numbers_and_odd_times_do_no_harm() {
    let event = lemon(
        r#"{"meta":{"webhook_id":"a"},"data":{"id":9007199254740993,"attributes":{"store_id":18446744073709551616,"updated_at":"2026-09-21 12:00:00"}}}"#,
    )
    .unwrap();
    assert_eq!(event.object_id.unwrap().as_str(), "9007199254740993");
    assert_eq!(event.account.unwrap().as_str(), "18446744073709551616");
    assert_eq!(
        (event.provider_time, &*event.dropped),
        (None, &[Dropped::Time][..])
    );
}

#[test]
fn the_header_holds_64_lower_case_digits_and_nothing_else() {
    let keys = keys(Provider::LemonSqueezy, &["first-secret", "second-secret"]);
    let body = with_id("\"a\"");
    let digest = keys.sign("", 0, body.as_bytes()).remove(0).1;
    let outcome = |headers: &[(&str, &str)]| {
        verify(Provider::LemonSqueezy, &keys, None, headers, body.as_bytes())
            .map_or_else(|reason| reason, |_| "ok")
    };
    let with = |value: &str| outcome(&[("X-Signature", value)]);
    assert_eq!(with(&digest), "ok");
    assert_eq!(outcome(&[("x-signature", &digest)]), "ok");
    assert_eq!(outcome(&[]), "missing_signature");
    assert_eq!(with(""), "missing_signature");
    for length in 1..64 {
        assert_eq!(with(&digest[..length]), "malformed_signature", "{length}");
    }
    for odd in [
        format!("{digest}0"),
        digest.to_uppercase().replace(|c: char| c.is_ascii_digit(), "A"),
        format!("sha256={digest}"),
        format!(" {digest}"),
        format!("{digest},{digest}"),
        "GnCdQ0Ge2gXd4yOTykP2fGfO4hmbJFMkVJlyLsyZfko=".to_owned(),
    ] {
        assert_eq!(with(&odd), "malformed_signature", "{odd}");
    }
    assert_eq!(
        outcome(&[("X-Signature", &digest), ("X-Signature", &digest)]),
        "malformed_signature"
    );
    assert_eq!(with(&"0".repeat(64)), "bad_signature");
}
