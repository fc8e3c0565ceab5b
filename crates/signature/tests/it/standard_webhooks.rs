//! Three headers, two kinds of key.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64_TEXT;
use ed25519_dalek::SigningKey;
use hookgate_signature::Tolerance;

use crate::{NEW, NOW, OLD, STANDARD, keys, keys_within, signature, slot};

const PRIVATE: &str = "whsk_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// The public half of `PRIVATE`.
fn public() -> String {
    let key = SigningKey::from_bytes(&[7; 32]).verifying_key();
    format!("whpk_{}", BASE64_TEXT.encode(key))
}

fn check(secrets: &[&str], signatures: &str, expected: Result<usize, &'static str>) {
    let now = NOW.to_string();
    let headers = [
        ("Webhook-Id", "msg_1"),
        ("Webhook-Timestamp", &now),
        ("Webhook-Signature", signatures),
    ];
    assert_eq!(slot(&keys(STANDARD, secrets), &headers), expected, "{signatures}");
}

#[test]
fn a_signed_delivery_has_the_three_headers_in_order() {
    let headers = keys(STANDARD, &[OLD]).sign("msg_1", NOW, b"{}");
    let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["webhook-id", "webhook-timestamp", "webhook-signature"]);
    assert_eq!(headers[0].1, "msg_1");
    assert_eq!(headers[1].1, NOW.to_string());
}

#[test]
fn any_entry_may_match_any_secret() {
    let old = signature(&keys(STANDARD, &[OLD]), NOW);
    let new = signature(&keys(STANDARD, &[NEW]), NOW);
    check(&[OLD, NEW], &format!("{new} {old}"), Ok(0));
    check(&[NEW], &format!("{old} {new}"), Ok(0));
    check(&[OLD, NEW], &new, Ok(1));
    check(&[OLD], &new, Err("bad_signature"));
}

#[test]
fn unknown_versions_and_entries_without_comma_are_skipped() {
    let valid = signature(&keys(STANDARD, &[OLD]), NOW);
    check(&[OLD], &format!("v9,zzz nonsense  , v1 {valid}"), Ok(0));
    for unusable in [
        &valid[3..],
        "v1",
        "v1,",
        "v1a,",
        &valid.replace("v1,", "v2,"),
        "V1,x",
        " ",
        "v1,%",
    ] {
        check(&[OLD], unusable, Err("malformed_signature"));
    }
}

#[test]
fn the_last_of_twenty_entries_counts_and_a_twenty_first_does_not() {
    let valid = signature(&keys(STANDARD, &[OLD]), NOW);
    let other = format!("{} ", signature(&keys(STANDARD, &[NEW]), NOW));
    check(&[OLD], &format!("{}{valid}", other.repeat(19)), Ok(0));
    check(
        &[OLD],
        &format!("{}{valid}", other.repeat(20)),
        Err("malformed_signature"),
    );
    check(&[OLD], &format!("{}{valid}", "v9,x ".repeat(100)), Ok(0));
}

#[test]
fn a_public_key_verifies_what_its_private_key_signed() {
    let private = keys(STANDARD, &[PRIVATE]);
    let public = &*public();
    let valid = signature(&private, NOW);
    assert!(valid.starts_with("v1a,"));
    check(&[public], &valid, Ok(0));
    check(&[PRIVATE], &valid, Ok(0));
    check(
        &[OLD, public],
        &format!("{} {valid}", signature(&keys(STANDARD, &[NEW]), NOW)),
        Ok(1),
    );
    check(&[OLD], &valid, Err("bad_signature"));
    check(
        &[public],
        &signature(&keys(STANDARD, &[OLD]), NOW),
        Err("bad_signature"),
    );
}

#[test]
fn a_public_key_cannot_sign() {
    let public = keys(STANDARD, &[&public(), OLD]);
    assert!(!public.can_sign());
    assert_eq!(public.sign("msg_1", NOW, b"{}"), []);
    assert!(keys(STANDARD, &[PRIVATE]).can_sign());
    assert!(keys(STANDARD, &[OLD]).can_sign());
}

#[test]
fn all_three_headers_are_needed_once() {
    let keys = keys(STANDARD, &[OLD]);
    let now = NOW.to_string();
    let valid = signature(&keys, NOW);
    let whole = [
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", &*now),
        ("webhook-signature", &*valid),
    ];
    assert_eq!(slot(&keys, &whole), Ok(0));
    for at in 0..3 {
        let mut headers = whole.to_vec();
        headers.push(whole[at]);
        assert_eq!(slot(&keys, &headers), Err("malformed_signature"));
        headers.pop();
        headers[at].1 = "";
        assert_eq!(slot(&keys, &headers), Err("missing_signature"));
        headers.remove(at);
        assert_eq!(slot(&keys, &headers), Err("missing_signature"));
    }
}

#[test]
fn a_timestamp_is_digits_only() {
    let keys = keys(STANDARD, &[OLD]);
    let valid = signature(&keys, NOW);
    for timestamp in ["12abc", "1.5", "-1", "+1", "yesterday", "99999999999999999999"] {
        let headers = [
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", &valid),
        ];
        assert_eq!(slot(&keys, &headers), Err("malformed_signature"), "{timestamp}");
    }
}

#[test]
fn both_directions_of_time_are_bounded_exactly() {
    let keys = keys_within(STANDARD, &[OLD], Tolerance::Both(Duration::from_secs(300)));
    for (offset, expected) in [
        (-300, Ok(0)),
        (300, Ok(0)),
        (-301, Err("stale_timestamp")),
        (301, Err("future_timestamp")),
    ] {
        let signed = keys.sign("msg_1", NOW + offset, crate::BODY);
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(slot(&keys, &headers), expected);
    }
}
