//! Discord: webhook events without an id, and the two PINGs.

use hookgate_signature::{Delivery, Keys, Tolerance};
use hookgate_webhook::{Answer, Dropped, Event, Provider, Reading, Success, Unreadable};
use secrecy::SecretString;

use crate::{NOW_MS, read, reading, reason};

fn discord(body: &str) -> Result<Event, Unreadable> {
    read(Provider::Discord, "", &[], body.as_bytes())
}

fn whole(body: &str) -> Reading {
    reading(Provider::Discord, "", &[], body.as_bytes()).unwrap()
}

#[test]
fn a_webhook_event_is_told_apart_by_its_bytes_and_its_type() {
    let body = r#"{"version":1,"application_id":"1234560123453231555","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-09-21T14:13:20.123456","data":{"id":"1019653849998299136"}}}"#;
    let event = discord(body).unwrap();
    assert!(event.id_is_digest && event.id.as_str().starts_with("sha256-"));
    assert_eq!(event.event_type.as_ref().unwrap().as_str(), "ENTITLEMENT_CREATE");
    assert_eq!(event.object_id.as_ref().unwrap().as_str(), "1019653849998299136");
    assert_eq!(event.account.as_ref().unwrap().as_str(), "1234560123453231555");
    assert_eq!(event.id, discord(body).unwrap().id);
    assert_ne!(event.id, discord(&body.replace("136", "137")).unwrap().id);
}

#[test]
fn a_time_without_a_zone_is_utc() {
    let time = |text: &str| {
        let body = format!(r#"{{"type":1,"event":{{"type":"A","timestamp":"{text}"}}}}"#);
        discord(&body).unwrap()
    };
    for text in [
        "2026-09-21T14:13:20.123456",
        "2026-09-21T14:13:20.123456Z",
        "2026-09-21T16:13:20.123+02:00",
    ] {
        let time = time(text).provider_time.unwrap();
        assert_eq!((&*time.text, time.unix_ms), (text, 1_790_000_000_123));
    }
    for text in [
        "yesterday",
        "2026-13-21T14:13:20",
        "1969-12-31T23:59:59.9",
        "2026-09-21",
    ] {
        let event = time(text);
        assert_eq!(
            (event.provider_time, &*event.dropped),
            (None, &[Dropped::Time][..])
        );
    }
}

#[test]
fn a_ping_of_webhook_events_wants_an_empty_204() {
    let reading = whole(r#"{"version":1,"application_id":"1","type":0}"#);
    let answer = Answer {
        status: 204,
        content_type: "application/json",
        body: String::new(),
    };
    assert_eq!(reading.handshake, Some(answer));
    assert_eq!(reading.events[0].event_type.as_ref().unwrap().as_str(), "0");
    assert_eq!(Provider::Discord.knowledge().success, Success::NoContent);
}

#[test]
fn a_ping_of_interactions_wants_its_own_type() {
    let reading = whole(r#"{"application_id":"1","id":"1234567890123456789","type":1,"version":1}"#);
    let answer = Answer {
        status: 200,
        content_type: "application/json",
        body: r#"{"type":1}"#.to_owned(),
    };
    assert_eq!(reading.handshake, Some(answer));
    assert_eq!(reading.events[0].id.as_str(), "1234567890123456789");
}

#[test]
fn nothing_else_is_a_handshake() {
    for body in [
        r#"{"type":1,"event":{"type":"A"}}"#,
        r#"{"type":2,"id":"1"}"#,
        r#"{"type":0,"id":"1"}"#,
        r#"{"type":"0"}"#,
        r#"{"type":0.0}"#,
        "{}",
    ] {
        assert_eq!(whole(body).handshake, None, "{body}");
    }
}

#[test]
fn an_interaction_has_an_id() {
    let event = discord(r#"{"type":2,"id":"9","application_id":7}"#).unwrap();
    assert_eq!((event.id.as_str(), event.id_is_digest), ("9", false));
    assert_eq!(event.event_type.unwrap().as_str(), "2");
    for id in ["9", "\"\"", "true", "{}"] {
        assert_eq!(
            reason(discord(&format!(r#"{{"type":2,"id":{id}}}"#))),
            "missing_event_id",
            "{id}"
        );
    }
    assert_eq!(reason(discord(r#"{"type":2,"id":"a\u0000"}"#)), "bad_event_id");
    assert_eq!(
        reason(discord(r#"{"type":2,"id":"1","id":"2"}"#)),
        "malformed_body"
    );
}

/// Deliveries that an application's public key has to judge.
fn judged(signature: &[u8], timestamp: &[u8]) -> &'static str {
    let public = "333290b863e828a0f04377030deb75dd9edb21a04ed11bb4ca36d7a7bc332145";
    let scheme = Provider::Discord.knowledge().scheme;
    let keys = Keys::new(scheme, &[SecretString::from(public)], Tolerance::Off).unwrap();
    assert!(!keys.can_sign());
    let headers = [
        ("X-Signature-Ed25519", signature),
        ("X-Signature-Timestamp", timestamp),
    ];
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: headers.into_iter().collect(),
        body: bytes::Bytes::from_static(br#"{"version":1,"application_id":"1234560123453231555","type":0}"#),
    };
    let outcome = Provider::Discord.verify(&keys, delivery, NOW_MS / 1000);
    outcome.map_or_else(|refusal| refusal.reason(), |_| "ok")
}

#[test]
fn a_signature_is_128_lower_case_digits() {
    let good = "348bc3a83db6ff30f291efb70a3f1c259d200a4972daa83a7b78036d7a1db7d51201d1d1b909d7602eb27be0c50c935fb28a1e5dfdf8c3cc07ed2aa73894b40c";
    let at = b"1790000000";
    assert_eq!(judged(good.as_bytes(), at), "ok");
    assert_eq!(judged(good.as_bytes(), b"1790000001"), "bad_signature");
    assert_eq!(judged(good.as_bytes(), b""), "missing_signature");
    assert_eq!(judged(good.as_bytes(), b"now"), "malformed_signature");
    assert_eq!(judged(b"", at), "missing_signature");
    assert_eq!(judged(&[b'0'; 128], at), "bad_signature");
    let longer = format!("{good}0");
    for wrong in [
        &good[..127],
        &good[..64],
        &longer,
        &good.to_uppercase(),
        &"g".repeat(128),
    ] {
        assert_eq!(judged(wrong.as_bytes(), at), "malformed_signature", "{wrong}");
    }
    assert_eq!(Provider::Discord.knowledge().refusal_status, 401);
}
