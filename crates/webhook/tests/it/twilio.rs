//! Twilio: the URL and the decoded form are signed, or the URL with a digest of the body in it.

use bytes::Bytes;
use hookgate_signature::{Delivery, Encoding};
use hookgate_webhook::{Event, Provider};
use sha2::{Digest, Sha256};

use crate::{URL, read, reason};

const TOKEN: (&str, &[u8]) = ("I-Twilio-Idempotency-Token", b"aa000000");
const SETTINGS: &str = "X-Twilio-Webhooks-Signature-Settings";

/// Receives a delivery at `url` over which somebody with the key signed `text`.
fn received(url: &str, text: &str, body: &str, more: &[(&str, &[u8])]) -> Result<Event, &'static str> {
    let provider = Provider::Twilio;
    let keys = provider.dev_keys();
    let signature = keys.sign_text(Encoding::Base64, text.as_bytes()).unwrap();
    let own = [("X-Twilio-Signature", signature.as_bytes())];
    let delivery = Delivery {
        method: "POST",
        url: Some(url),
        headers: own.iter().chain(more).copied().collect(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    };
    let verified = provider
        .verify(&keys, delivery, 0)
        .map_err(|refusal| refusal.reason())?;
    match provider.read(&verified) {
        Ok(mut reading) => Ok(reading.events.remove(0)),
        Err(unreadable) => Err(unreadable.reason()),
    }
}

fn word(url: &str, text: &str, body: &str) -> &'static str {
    received(url, text, body, &[TOKEN]).err().unwrap_or("ok")
}

#[test]
fn the_token_is_the_id_and_the_form_names_message_and_account() {
    let form = b"MessageSid=SM1&MessageStatus=delivered&AccountSid=AC1";
    let event = read(Provider::Twilio, "", &[TOKEN], form).unwrap();
    assert_eq!((event.id.as_str(), event.id_is_digest), ("aa000000", false));
    assert_eq!(event.object_id.unwrap().as_str(), "SM1");
    assert_eq!(event.account.unwrap().as_str(), "AC1");
    assert_eq!((event.event_type, event.provider_time), (None, None));
}

#[test]
fn without_a_token_the_bytes_identify_the_event() {
    let id = |form: &str| read(Provider::Twilio, "", &[], form.as_bytes()).unwrap().id;
    assert!(
        id("MessageSid=SM1&MessageStatus=sent")
            .as_str()
            .starts_with("sha256-")
    );
    assert_eq!(
        id("MessageSid=SM1&MessageStatus=sent"),
        id("MessageSid=SM1&MessageStatus=sent")
    );
    assert_ne!(
        id("MessageSid=SM1&MessageStatus=sent"),
        id("MessageSid=SM1&MessageStatus=delivered")
    );
}

#[test]
fn a_token_that_is_none_is_refused() {
    let outcome = |headers: &[(&str, &[u8])]| reason(read(Provider::Twilio, "", headers, b"a=b"));
    assert_eq!(outcome(&[TOKEN, TOKEN]), "bad_event_id");
    assert_eq!(outcome(&[(TOKEN.0, &[b'x'; 300])]), "bad_event_id");
    assert_eq!(outcome(&[(TOKEN.0, b"a\x07")]), "bad_event_id");
}

#[test]
fn fields_are_signed_decoded_and_in_order() {
    for (form, tail) in [
        ("b=2&a=1", "a1b2"),
        ("a=&b=2", "ab2"),
        ("a=1+2%203", "a1 2 3"),
        ("a=%2B%26%3d", "a+&="),
        ("Body=Ol%C3%A1+%F0%9F%91%8B", "BodyOlá 👋"),
        ("a=2&a=1&a=2", "a1a2"),
        ("A=1&a=2&B=3", "A1B3a2"),
        ("a=1=2", "a1=2"),
        ("=", ""),
    ] {
        assert_eq!(word(URL, &format!("{URL}{tail}"), form), "ok", "{form}");
    }
    for (form, tail) in [
        ("a=1&b=2", "b2a1"),
        ("a=1", "a2"),
        ("a=2&a=1", "a2a1"),
        ("a=1+2", "a1+2"),
        ("a=", ""),
    ] {
        assert_eq!(
            word(URL, &format!("{URL}{tail}"), form),
            "bad_signature",
            "{form}"
        );
    }
}

#[test]
fn the_url_counts_with_its_port_and_without() {
    let https = "https://gateway.example.com/in?a=b";
    let with = "https://gateway.example.com:443/in?a=b";
    for (registered, signed, expected) in [
        (https, https, "ok"),
        (https, with, "ok"),
        (with, https, "ok"),
        ("http://x/in", "http://x:80/in", "ok"),
        ("http://x", "http://x:80", "ok"),
        ("http://[::1]/in", "http://[::1]:80/in", "ok"),
        ("https://x:8443/in", "https://x/in", "ok"),
        (https, "https://gateway.example.com:80/in?a=b", "bad_signature"),
        (https, "https://gateway.example.com:8443/in?a=b", "bad_signature"),
        (https, "https://gateway.example.com/in", "bad_signature"),
        (https, "http://gateway.example.com/in?a=b", "bad_signature"),
        ("gateway", "gateway:443", "bad_signature"),
    ] {
        assert_eq!(
            word(registered, &format!("{signed}x1"), "x=1"),
            expected,
            "{registered} {signed}"
        );
    }
}

#[test]
fn a_json_body_is_signed_by_its_digest_in_the_url() {
    let json = r#"{"EventType":"onMessageAdded"}"#;
    let digest: String = Sha256::digest(json)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let url = format!("{URL}?bodySHA256={digest}");
    let event = received(&url, &url, json, &[]).unwrap();
    assert!(event.id_is_digest);
    assert_eq!((event.object_id, event.account), (None, None));
    assert_eq!(word(&url, &url, "{}"), "bad_signature");
    assert_eq!(word(&url, URL, json), "bad_signature");
    for other in ["", "0", &"0".repeat(64)] {
        let url = format!("{URL}?bodySHA256={other}");
        assert_eq!(word(&url, &url, json), "bad_signature");
    }
    let text = "[not json";
    let digest: String = Sha256::digest(text)
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let url = format!("{URL}?a=b&bodySHA256={digest}&c=d");
    assert_eq!(word(&url, &url, text), "malformed_body");
}

#[test]
fn the_settings_choose_among_known_algorithms() {
    let with = |settings: &[&str]| {
        let headers: Vec<_> = settings
            .iter()
            .map(|value| (SETTINGS, value.as_bytes()))
            .collect();
        received(URL, &format!("{URL}a1"), "a=1", &headers)
            .err()
            .unwrap_or("ok")
    };
    assert_eq!(with(&[]), "ok");
    assert_eq!(with(&[""]), "ok");
    assert_eq!(with(&["key=k,algorithm=HMAC_SHA1"]), "ok");
    // What is offered is a SHA-1, and too short for what is announced.
    assert_eq!(with(&["key=k,algorithm=HMAC_SHA256"]), "malformed_signature");
    for unknown in [
        "key=k",
        "algorithm=none",
        "algorithm=",
        "algorithm=HMAC_SHA512",
        "algorithm=hmac_sha1",
        "algorithm=HMAC_SHA1,algorithm=HMAC_SHA256",
    ] {
        assert_eq!(with(&[unknown]), "malformed_signature", "{unknown}");
    }
    assert_eq!(
        with(&["algorithm=HMAC_SHA1", "algorithm=HMAC_SHA1"]),
        "malformed_signature"
    );
}

#[test]
fn a_form_has_a_thousand_fields_at_most() {
    let form = |count: usize| vec!["a=1"; count].join("&");
    assert_eq!(word(URL, &format!("{URL}a1"), &form(1_000)), "ok");
    assert_eq!(
        word(URL, &format!("{URL}a1"), &form(1_001)),
        "malformed_signature"
    );
}

#[test]
fn a_field_that_identifies_the_event_occurs_once() {
    for form in ["MessageSid=a&MessageSid=b", "AccountSid=a&AccountSid=a", "Hello"] {
        assert_eq!(
            reason(read(Provider::Twilio, "", &[TOKEN], form.as_bytes())),
            "malformed_body",
            "{form}"
        );
    }
}
