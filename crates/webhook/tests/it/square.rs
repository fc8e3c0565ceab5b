//! Square: the URL is signed as it is registered, character by character.

use hookgate_signature::Unsigned;
use hookgate_webhook::{Mode, Provider};

use crate::{keys, read, reason, verify};

const REGISTERED: &str = "https://hooks.example.com/in/square?tenant=a%20b";
const BODY: &[u8] = br#"{"merchant_id":"M1","type":"payment.updated","event_id":"e-1","created_at":"2026-09-21T14:13:20.112Z","data":{"type":"payment","id":"P1"}}"#;

fn outcome(url: Option<&str>, change: impl Fn(String) -> String) -> &'static str {
    let keys = keys(Provider::Square, &["a-new-key", "an-old-key"]);
    let signed = keys.sign_request(&Unsigned {
        id: "",
        now: 0,
        method: "POST",
        url: Some(REGISTERED),
        headers: &[],
        body: BODY,
    });
    let value = change(signed[0].1.clone());
    let headers = [("X-Square-HmacSha256-Signature", &*value)];
    verify(Provider::Square, &keys, url, &headers, BODY).map_or_else(|reason| reason, |_| "ok")
}

#[test]
fn the_signed_body_names_everything_and_no_header_a_mode() {
    let event = read(Provider::Square, "", &[("square-environment", b"Sandbox")], BODY).unwrap();
    assert_eq!(event.id.as_str(), "e-1");
    assert_eq!(event.event_type.unwrap().as_str(), "payment.updated");
    assert_eq!(event.object_id.unwrap().as_str(), "P1");
    assert_eq!(event.account.unwrap().as_str(), "M1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_112);
    assert_eq!(event.mode, Mode::Unknown, "the header is not signed");
    assert_eq!(
        reason(read(Provider::Square, "", &[], br#"{"id":"no"}"#)),
        "missing_event_id"
    );
}

#[test]
fn every_character_of_the_url_counts() {
    assert_eq!(outcome(Some(REGISTERED), |value| value), "ok");
    for other in [
        "https://hooks.example.com/in/square",
        "https://hooks.example.com/in/square/?tenant=a%20b",
        "https://hooks.example.com/in/square?tenant=a b",
        "https://hooks.example.com/in/square?tenant=a%20b&",
        "https://hooks.example.com:443/in/square?tenant=a%20b",
        "https://Hooks.example.com/in/square?tenant=a%20b",
        "http://hooks.example.com/in/square?tenant=a%20b",
        "",
    ] {
        assert_eq!(outcome(Some(other), |value| value), "bad_signature", "{other}");
    }
    assert_eq!(outcome(None, |value| value), "bad_signature");
}

#[test]
fn the_signature_is_the_base64_of_32_bytes() {
    let with = |change: fn(String) -> String| outcome(Some(REGISTERED), change);
    assert_eq!(with(|_| String::new()), "missing_signature");
    assert_eq!(with(|value| value[..43].to_owned()), "malformed_signature");
    assert_eq!(with(|value| format!("{value}=")), "malformed_signature");
    assert_eq!(with(|_| "0".repeat(64)), "malformed_signature", "hexadecimal");
    assert_eq!(with(|_| format!("{}=", "A".repeat(43))), "bad_signature");
}
