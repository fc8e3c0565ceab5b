//! Svix: Standard Webhooks under a brand that may be missing.

use hookgate_webhook::Provider;

use crate::{NOW_MS, keys, verify};

const SECRET: &str = "whsec_aG9va2dhdGUtdGVzdHMtc3ZpeC1rZXktMDE=";

/// The outcome where each of the three headers, id, time and signature, comes under these names.
fn named(names: &[[&str; 3]]) -> Result<String, &'static str> {
    let keys = keys(Provider::Svix, &[SECRET]);
    let body = br#"{"type":"user.created","data":{"id":"user_1"},"timestamp":1790000000123}"#;
    let signed = keys.sign("msg_1", NOW_MS / 1000, body);
    let headers: Vec<_> = names
        .iter()
        .flat_map(|names| names.iter().zip(&signed))
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, (_, value))| (*name, &**value))
        .collect();
    let event = verify(Provider::Svix, &keys, None, &headers, body)?;
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_123);
    assert_eq!(event.object_id.unwrap().as_str(), "user_1");
    Ok(event.id.as_str().to_owned())
}

#[test]
fn each_header_may_come_without_the_brand() {
    for names in [
        ["svix-id", "svix-timestamp", "svix-signature"],
        ["webhook-id", "webhook-timestamp", "webhook-signature"],
        ["Svix-Id", "webhook-timestamp", "svix-signature"],
        ["webhook-id", "svix-timestamp", "Svix-Signature"],
    ] {
        assert_eq!(named(&[names]).unwrap(), "msg_1", "{names:?}");
    }
    for names in [
        ["", "svix-timestamp", "svix-signature"],
        ["svix-id", "", "svix-signature"],
        ["svix-id", "svix-timestamp", ""],
        ["id", "timestamp", "signature"],
    ] {
        assert_eq!(named(&[names]).unwrap_err(), "missing_signature", "{names:?}");
    }
    let twice = [
        ["svix-id", "svix-timestamp", "svix-signature"],
        ["svix-id", "", ""],
    ];
    assert_eq!(named(&twice).unwrap_err(), "malformed_signature");
}

#[test]
fn the_id_that_is_read_is_the_one_that_is_signed() {
    let keys = keys(Provider::Svix, &[SECRET]);
    let signed = keys.sign("msg_1", NOW_MS / 1000, b"{}");
    let mut headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
    headers.insert(0, ("webhook-id", "msg_forged"));
    let event = verify(Provider::Svix, &keys, None, &headers, b"{}").unwrap();
    assert_eq!(event.id.as_str(), "msg_1");
    headers[1].1 = "";
    let outcome = verify(Provider::Svix, &keys, None, &headers, b"{}");
    assert_eq!(
        outcome.unwrap_err(),
        "bad_signature",
        "an empty brand leaves the other, which is not signed"
    );
}

#[test]
fn five_minutes_are_allowed_in_both_directions() {
    let keys = keys(Provider::Svix, &[SECRET]);
    for (offset, expected) in [
        (-300, "ok"),
        (-301, "stale_timestamp"),
        (300, "ok"),
        (301, "future_timestamp"),
    ] {
        let signed = keys.sign("msg_1", NOW_MS / 1000 + offset, b"{}");
        let headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
        let outcome =
            verify(Provider::Svix, &keys, None, &headers, b"{}").map_or_else(|reason| reason, |_| "ok");
        assert_eq!(outcome, expected, "{offset}");
    }
}
