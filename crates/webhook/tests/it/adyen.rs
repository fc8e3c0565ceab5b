//! Adyen: signatures inside the body, over eight fields of each item.

use bytes::Bytes;
use hookgate_webhook::{Dropped, Mode, Provider, Reading, Unreadable};

use crate::{deliver, open, word};

/// An item with these fields and a place for its signature.
fn item(fields: &str) -> String {
    format!(
        r#"{{"NotificationRequestItem":{{"additionalData":{{"hmacSignature":"not-signed-yet"}},{fields}}}}}"#
    )
}

fn body(live: &str, items: &[String]) -> String {
    format!(r#"{{"live":{live},"notificationItems":[{}]}}"#, items.join(","))
}

const PAID: &str = r#""pspReference":"7914","eventCode":"AUTHORISATION","success":"true","merchantAccountCode":"Shop","merchantReference":"order:1\\2 é","amount":{"value":1130,"currency":"EUR"},"eventDate":"2026-09-21T14:13:20+02:00""#;

fn adyen(body: &str) -> Result<Result<Reading, Unreadable>, &'static str> {
    deliver(Provider::Adyen, "", &[], body.as_bytes())
}

fn outcome(body: &str) -> &'static str {
    word(adyen(body))
}

/// As signed by Adyen, with the first of `from` replaced afterwards.
fn tampered(body: &str, from: &str, to: &str) -> &'static str {
    let provider = Provider::Adyen;
    let sample = hookgate_webhook::Sample {
        id: String::new(),
        event_type: "",
        headers: vec![],
        body: Bytes::copy_from_slice(body.as_bytes()),
    };
    let signed = provider.sign(&provider.dev_keys(), &sample, &crate::SENDING);
    let signed = String::from_utf8(signed.body.to_vec()).unwrap();
    assert!(signed.contains(from), "{from}");
    word(open(
        provider,
        crate::URL,
        &[],
        &Bytes::from(signed.replacen(from, to, 1)),
    ))
}

#[test]
fn an_item_is_told_apart_by_reference_code_and_success() {
    let body = body("\"true\"", &[item(PAID)]);
    let event = adyen(&body).unwrap().unwrap().events.remove(0);
    assert_eq!(event.id.as_str(), "7914:AUTHORISATION:true");
    assert_eq!(event.given_id(), Some("7914:AUTHORISATION:true"));
    assert_eq!(event.event_type.unwrap().as_str(), "AUTHORISATION");
    assert_eq!(event.object_id.unwrap().as_str(), "7914");
    assert_eq!(event.account.unwrap().as_str(), "Shop");
    assert_eq!(event.mode, Mode::Live);
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_992_800_000);
}

#[test]
fn an_authorisation_may_fail_and_succeed() {
    let failed = PAID.replace("\"true\"", "\"false\"");
    let body = body("\"false\"", &[item(PAID), item(&failed)]);
    let events = adyen(&body).unwrap().unwrap().events;
    assert_eq!(events.len(), 2);
    assert_ne!(events[0].id, events[1].id);
    assert_eq!((events[0].mode, events[1].mode), (Mode::Test, Mode::Test));
    assert!(events[1].body.starts_with(b"{\"NotificationRequestItem\""));
    assert_eq!(events[1].batch.unwrap().index, 1);
}

#[test]
fn every_item_has_to_be_signed() {
    let unsigned = r#"{"NotificationRequestItem":{"additionalData":{},"pspReference":"1","eventCode":"A","success":"true"}}"#;
    for bad in [
        unsigned,
        r#"{"NotificationRequestItem":{"pspReference":"1","eventCode":"A"}}"#,
        "{}",
    ] {
        assert_eq!(
            outcome(&body("\"false\"", &[item(PAID), bad.to_owned()])),
            "missing_signature"
        );
        assert_eq!(
            outcome(&body("\"false\"", &[bad.to_owned(), item(PAID)])),
            "missing_signature"
        );
    }
    let foreign = unsigned.replace(
        "{}",
        r#"{"hmacSignature":"qrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrvMqrs="}"#,
    );
    assert_eq!(
        outcome(&body("\"false\"", &[item(PAID), foreign])),
        "bad_signature"
    );
    assert_eq!(
        outcome(r#"{"live":"false","notificationItems":[]}"#),
        "missing_signature"
    );
}

#[test]
fn a_signature_is_the_base64_of_32_bytes() {
    for (signature, expected) in [
        ("null", "missing_signature"),
        ("\"\"", "missing_signature"),
        ("7", "malformed_signature"),
        ("{}", "malformed_signature"),
        ("\"AAAA\"", "malformed_signature"),
        ("\"====\"", "malformed_signature"),
    ] {
        let item = item(PAID).replace("\"not-signed-yet\"", signature);
        assert_eq!(outcome(&body("\"false\"", &[item])), expected, "{signature}");
    }
    let hex = format!("\"{}\"", "a".repeat(64));
    let item = item(PAID).replace("\"not-signed-yet\"", &hex);
    assert_eq!(outcome(&body("\"false\"", &[item])), "malformed_signature");
}

#[test]
fn each_of_the_eight_fields_counts() {
    let fields = format!(r#"{PAID},"originalReference":"7913""#);
    let whole = body("\"false\"", &[item(&fields)]);
    assert_eq!(tampered(&whole, "Shop", "Shop"), "ok");
    for (from, to) in [
        ("7914", "7915"),
        ("7913", "7912"),
        ("Shop", "Shap"),
        ("order:1", "order:2"),
        ("1130", "9999"),
        ("EUR", "USD"),
        ("AUTHORISATION", "REFUND"),
        (r#""success":"true""#, r#""success":"false""#),
        (r#""success":"true""#, r#""success":null"#),
    ] {
        assert_eq!(tampered(&whole, from, to), "bad_signature", "{from}");
    }
}

#[test]
fn an_absent_field_is_signed_as_nothing() {
    let absent = body("\"false\"", &[item(PAID)]);
    let spelled = |reference: &str| format!("\"originalReference\":{reference},\"pspReference\"");
    for reference in ["\"\"", "null"] {
        assert_eq!(tampered(&absent, "\"pspReference\"", &spelled(reference)), "ok");
    }
    assert_eq!(
        tampered(&absent, "\"pspReference\"", &spelled("\"1\"")),
        "bad_signature"
    );
}

#[test]
fn fields_do_not_move_over_a_colon() {
    // Both items have the signed text `7914::Shop:order:1:1130:EUR:CAPTURE:true` and more than one reading of it.
    let genuine = r#""pspReference":"7914","merchantAccountCode":"Shop","merchantReference":"order:1","amount":{"value":1130,"currency":"EUR"},"eventCode":"CAPTURE","success":"true""#;
    let whole = body("\"false\"", &[item(genuine)]);
    let moved = r#""pspReference":"7914:","originalReference":"Shop","merchantAccountCode":"order","merchantReference":"1","amount""#;
    let fields =
        r#""pspReference":"7914","merchantAccountCode":"Shop","merchantReference":"order:1","amount""#;
    assert_eq!(tampered(&whole, fields, moved), "malformed_signature");
    assert_eq!(tampered(&whole, fields, fields), "ok");
}

#[test]
fn what_is_not_signed_changes_no_identity() {
    let whole = body("\"false\"", &[item(PAID)]);
    assert_eq!(tampered(&whole, "2026-09-21", "2025-01-01"), "ok");
    assert_eq!(tampered(&whole, "\"live\":\"false\"", "\"live\":\"true\""), "ok");
    assert_eq!(tampered(&whole, "\"live\"", "\"id\":\"1\",\"live\""), "ok");
}

#[test]
fn what_occurs_twice_is_refused() {
    let whole = body("\"false\"", &[item(PAID)]);
    for (from, to) in [
        ("\"pspReference\"", "\"pspReference\":\"1\",\"pspReference\""),
        ("\"success\"", "\"succes\\u0073\":\"true\",\"success\""),
        ("\"additionalData\"", "\"additionalData\":{},\"additionalData\""),
        (
            "\"notificationItems\"",
            "\"notificationItems\":[],\"notificationItems\"",
        ),
        ("\"amount\"", "\"amount\":{},\"amount\""),
    ] {
        assert_eq!(tampered(&whole, from, to), "malformed_signature", "{to}");
    }
}

#[test]
fn a_body_that_is_not_of_this_form_has_no_signature() {
    for body in [
        "",
        "[]",
        "{}",
        "null",
        r#"{"notificationItems":{}}"#,
        r#"{"notificationItems":[1]}"#,
        r#"{"notificationItems":[{}]"#,
    ] {
        assert_eq!(outcome(body), "malformed_signature", "{body}");
    }
    let many = vec!["{}".to_owned(); 20_001];
    assert_eq!(outcome(&body("\"false\"", &many)), "malformed_signature");
    let compound = PAID.replace("\"Shop\"", "{}");
    assert_eq!(
        outcome(&body("\"false\"", &[item(&compound)])),
        "malformed_signature"
    );
}

#[test]
fn an_item_has_a_reference_and_a_code() {
    for (from, to) in [
        ("\"7914\"", "\"\""),
        ("\"7914\"", "null"),
        ("\"7914\"", "7914"),
        ("\"AUTHORISATION\"", "null"),
    ] {
        let fields = PAID.replace(from, to);
        assert_eq!(
            outcome(&body("\"false\"", &[item(&fields)])),
            "missing_event_id",
            "{to}"
        );
    }
    for reference in ["x".repeat(300), "a\\u0000".to_owned()] {
        let fields = PAID.replace("7914", &reference);
        assert_eq!(outcome(&body("\"false\"", &[item(&fields)])), "bad_event_id");
    }
}

#[test]
fn a_side_that_is_not_named_is_unknown_and_a_time_that_is_none_is_dropped() {
    for live in ["\"maybe\"", "null", "1"] {
        let fields = PAID.replace("2026-09-21T14:13:20+02:00", "soon");
        let event = adyen(&body(live, &[item(&fields)]))
            .unwrap()
            .unwrap()
            .events
            .remove(0);
        assert_eq!(
            (event.mode, &*event.dropped),
            (Mode::Unknown, &[Dropped::Time][..])
        );
    }
}
