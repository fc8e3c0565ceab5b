//! SendGrid: an array of events, signed with a key pair.

use hookgate_signature::{Delivery, Tolerance};
use hookgate_webhook::{Dropped, Provider, Sending};
use secrecy::SecretString;
use std::time::Duration;

use crate::{NOW_MS, SENDING, URL, deliver, reading, word};

const SIGNATURE: &str = "X-Twilio-Email-Event-Webhook-Signature";
const TIMESTAMP: &str = "X-Twilio-Email-Event-Webhook-Timestamp";

fn outcome(body: &str) -> &'static str {
    word(deliver(Provider::Sendgrid, "", &[], body.as_bytes()))
}

#[test]
fn each_event_keeps_its_own_bytes() {
    let first = r#"{"sg_event_id":"a","event":"open","sg_message_id":"m1","timestamp":1789999999}"#;
    let second = r#"{"event":"click","sg_event_id":"b"}"#;
    let body = format!("[{first},\r\n{second}]\r\n");
    let events = reading(Provider::Sendgrid, "", &[], body.as_bytes())
        .unwrap()
        .events;
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&events[0].body[..], &events[1].body[..]),
        (first.as_bytes(), second.as_bytes())
    );
    assert_eq!(events[0].object_id.as_ref().unwrap().as_str(), "m1");
    assert_eq!(
        events[0].provider_time.as_ref().unwrap().unix_ms,
        1_789_999_999_000
    );
    assert_eq!(events[1].event_type.as_ref().unwrap().as_str(), "click");
    assert_eq!(events[1].batch.unwrap().index, 1);
}

#[test]
fn an_event_without_an_id_makes_the_delivery_unreadable() {
    for (id, expected) in [
        ("\"a\"", "ok"),
        ("null", "missing_event_id"),
        ("7", "missing_event_id"),
        ("\"\"", "missing_event_id"),
        (r#""a\n""#, "bad_event_id"),
    ] {
        let body = format!(r#"[{{"sg_event_id":"ok"}},{{"sg_event_id":{id}}}]"#);
        assert_eq!(outcome(&body), expected, "{id}");
    }
    assert_eq!(
        outcome(&format!(r#"[{{"sg_event_id":"{}"}}]"#, "x".repeat(300))),
        "bad_event_id"
    );
}

#[test]
fn a_delivery_is_an_array_of_at_least_one_event() {
    for body in [
        "[]\r\n",
        "{}",
        r#"[{"sg_event_id":"a"},1]"#,
        r#"[{"sg_event_id":"a","sg_event_id":"b"}]"#,
    ] {
        assert_eq!(outcome(body), "malformed_body", "{body}");
    }
}

#[test]
fn fields_that_do_not_fit_are_dropped() {
    let body = br#"[{"sg_event_id":"a","event":{},"sg_message_id":true,"timestamp":"soon"}]"#;
    let event = reading(Provider::Sendgrid, "", &[], body)
        .unwrap()
        .events
        .remove(0);
    assert_eq!(event.dropped, [Dropped::Type, Dropped::ObjectId, Dropped::Time]);
}

/// Judges a signed sample with one header changed.
fn changed(name: &str, to: &str) -> &'static str {
    let provider = Provider::Sendgrid;
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let signed = provider.sign(&provider.dev_keys(), &sample, &SENDING);
    let value = |own: &'static str, value: &str| {
        if own == name {
            to.to_owned()
        } else {
            value.to_owned()
        }
    };
    let headers: Vec<_> = signed
        .headers
        .iter()
        .map(|(own, old)| (*own, value(own, old)))
        .collect();
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()))
        .collect();
    word(crate::open(provider, crate::URL, &headers, &signed.body))
}

#[test]
fn the_signature_is_der_in_base64() {
    assert_eq!(changed("", ""), "ok");
    assert_eq!(changed(SIGNATURE, ""), "missing_signature");
    assert_eq!(changed(TIMESTAMP, ""), "missing_signature");
    assert_eq!(changed(TIMESTAMP, "1790000011"), "bad_signature");
    assert_eq!(changed(TIMESTAMP, "now"), "malformed_signature");
    // Hex digits can be base64, of something that is no signature.
    assert_eq!(changed(SIGNATURE, &"a".repeat(64)), "bad_signature");
    for wrong in ["=", "MEUCIQ", "not base64!", "____"] {
        assert_eq!(changed(SIGNATURE, wrong), "malformed_signature", "{wrong}");
    }
}

#[test]
fn a_public_key_verifies_what_its_private_half_signed_and_cannot_sign() {
    let public = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQ8nvfokL/uOgg1n1Yi1sqtJJ1hebnIqVIzXfLfWoEIaTMVocZL4ewBWWgehvjYA73fz5FGM5FQs5PnYPAmRGFg==";
    let provider = Provider::Sendgrid;
    let knowledge = provider.knowledge();
    let on_request = knowledge.tolerance.with_limit(Duration::from_secs(60));
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let sending = Sending {
        url: URL,
        now: NOW_MS / 1000,
    };
    let signed = provider.sign(&provider.dev_keys(), &sample, &sending);
    for (tolerance, later, expected) in [
        (Tolerance::OnRequest, 1_000_000, "ok"),
        (on_request, 60, "ok"),
        (on_request, 61, "stale_timestamp"),
        (on_request, -61, "future_timestamp"),
    ] {
        let keys = provider.keys(&[SecretString::from(public)], tolerance).unwrap();
        assert!(!keys.can_sign());
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: signed
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect(),
            body: signed.body.clone(),
        };
        let outcome = provider.verify(&keys, delivery, sending.now + later);
        assert_eq!(
            outcome.map_or_else(|refusal| refusal.reason(), |_| "ok"),
            expected,
            "{later}"
        );
    }
}
