//! HubSpot: an array of events whose ids are numbers, and a signature over the method and the URL too.

use bytes::Bytes;
use hookgate_signature::{Delivery, Refusal};
use hookgate_webhook::{Provider, Reading, Sending, Unreadable};

use crate::{NOW_MS, URL, reading};

fn hubspot(body: &str) -> Result<Reading, Unreadable> {
    reading(Provider::Hubspot, "", &[], body.as_bytes())
}

fn reason(body: &str) -> &'static str {
    hubspot(body).map_or_else(|unreadable| unreadable.reason(), |_| "ok")
}

/// The key of the one event with these fields.
fn id(fields: &str) -> String {
    let mut events = hubspot(&format!("[{{{fields}}}]")).unwrap().events;
    events.remove(0).id.as_str().to_owned()
}

#[test]
fn an_event_is_told_apart_by_more_than_its_own_number() {
    let event = hubspot(
        r#"[{"eventId":100,"subscriptionId":25,"portalId":33,"occurredAt":1790000000000,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":9007199254740993}]"#,
    )
    .unwrap()
    .events
    .remove(0);
    assert_eq!(event.id.as_str(), "100:25:1790000000000");
    assert_eq!(event.given_id(), Some("100"));
    assert_eq!(event.event_type.unwrap().as_str(), "contact.creation");
    assert_eq!(event.object_id.unwrap().as_str(), "9007199254740993");
    assert_eq!(event.account.unwrap().as_str(), "33");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_000);
    assert!(!event.id_is_digest);
}

#[test]
fn the_same_number_of_another_subscription_or_time_is_another_event() {
    let one = id(r#""eventId":100,"subscriptionId":25,"occurredAt":1790000000000"#);
    for other in [
        r#""eventId":100,"subscriptionId":26,"occurredAt":1790000000000"#,
        r#""eventId":100,"subscriptionId":25,"occurredAt":1790000000001"#,
        r#""eventId":101,"subscriptionId":25,"occurredAt":1790000000000"#,
        r#""eventId":100,"occurredAt":1790000000000"#,
        r#""eventId":100,"subscriptionId":25"#,
        r#""eventId":100"#,
    ] {
        assert_ne!(id(other), one, "{other}");
    }
    assert_ne!(
        id(r#""eventId":1,"subscriptionId":2"#),
        id(r#""eventId":1,"occurredAt":2"#)
    );
}

#[test]
fn a_retry_is_the_same_event() {
    let attempt = |number: u32| {
        id(&format!(
            r#""eventId":100,"subscriptionId":25,"occurredAt":1,"attemptNumber":{number}"#
        ))
    };
    assert_eq!(attempt(0), attempt(9));
}

#[test]
fn an_id_is_a_whole_number_in_its_digits() {
    for (number, expected) in [
        ("123456789012345678901234567890", "ok"),
        ("0", "ok"),
        ("null", "missing_event_id"),
        ("1.0", "bad_event_id"),
        ("1e2", "bad_event_id"),
        ("-1", "bad_event_id"),
        ("\"100\"", "bad_event_id"),
        ("{}", "bad_event_id"),
        ("true", "bad_event_id"),
    ] {
        assert_eq!(
            reason(&format!(r#"[{{"eventId":{number}}}]"#)),
            expected,
            "{number}"
        );
    }
    assert_eq!(reason(r#"[{"subscriptionId":1}]"#), "missing_event_id");
    assert_eq!(
        reason(&format!(r#"[{{"eventId":{}}}]"#, "1".repeat(300))),
        "bad_event_id"
    );
    assert_eq!(
        reason(r#"[{"eventId":1,"subscriptionId":"a:b"}]"#),
        "bad_event_id"
    );
    assert_eq!(reason(r#"[{"eventId":1,"occurredAt":1.5}]"#), "bad_event_id");
}

#[test]
fn a_delivery_is_an_array_of_at_least_one_event() {
    for body in [
        "[]",
        "{}",
        r#"{"eventId":1}"#,
        "[1]",
        r#"[{"eventId":1},null]"#,
        r#"[{"eventId":1}"#,
    ] {
        assert_eq!(reason(body), "malformed_body", "{body}");
    }
    let events = hubspot("\r\n[ {\"eventId\":1} ,\n{\"eventId\":2}]\r\n")
        .unwrap()
        .events;
    assert_eq!(&events[1].body[..], b"{\"eventId\":2}");
    assert_eq!(events[1].batch.unwrap().index, 1);
}

fn verify(method: &str, url: Option<&str>, change: impl Fn(&str, &str) -> String) -> Result<(), Refusal> {
    let (provider, now) = (Provider::Hubspot, NOW_MS / 1000);
    let keys = provider.dev_keys();
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let signed = provider.sign(&keys, &sample, &Sending { url: URL, now });
    let headers: Vec<_> = signed
        .headers
        .iter()
        .map(|(name, value)| (*name, change(name, value)))
        .collect();
    let delivery = Delivery {
        method,
        url,
        headers: headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect(),
        body: Bytes::clone(&signed.body),
    };
    provider.verify(&keys, delivery, now).map(|_| ())
}

fn unchanged(_: &str, value: &str) -> String {
    value.to_owned()
}

#[test]
fn method_and_url_are_signed_character_by_character() {
    assert_eq!(verify("POST", Some(URL), unchanged), Ok(()));
    for (method, url) in [
        ("PUT", Some(URL)),
        ("POST", Some("https://gateway.example.com/webhooks/it/")),
        ("POST", Some("http://gateway.example.com/webhooks/it")),
        ("POST", None),
    ] {
        assert_eq!(verify(method, url, unchanged), Err(Refusal::BadSignature));
    }
}

#[test]
fn the_timestamp_is_digits_and_is_signed() {
    let changed = |to: &'static str| {
        let outcome = verify("POST", Some(URL), move |name, value| match name {
            "X-HubSpot-Request-Timestamp" => to.to_owned(),
            _ => value.to_owned(),
        });
        outcome.unwrap_err().reason()
    };
    assert_eq!(changed("1790000010001"), "bad_signature");
    assert_eq!(changed("soon"), "malformed_signature");
    assert_eq!(changed("-1"), "malformed_signature");
    assert_eq!(changed(""), "missing_signature");
}

#[test]
fn older_versions_of_the_signature_are_not_accepted() {
    let outcome = verify("POST", Some(URL), |name, value| match name {
        // What version 1 and 2 would write: 64 hex digits.
        "X-HubSpot-Signature-v3" => "a".repeat(64),
        _ => value.to_owned(),
    });
    assert_eq!(outcome.unwrap_err().reason(), "malformed_signature");
}
