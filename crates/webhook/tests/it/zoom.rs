//! Zoom: events without ids, and a handshake that has a text signed, but never one that could be a delivery.

use std::collections::HashSet;

use bytes::Bytes;
use hookgate_signature::{Delivery, Keys, Tolerance};
use hookgate_webhook::{Dropped, Event, Mode, Provider, Reading, Unreadable};
use serde_json::{Value, json};

use crate::{NOW_MS, keys, read, reading};

const NOW: i64 = NOW_MS / 1000;
const TIME: &str = "x-zm-request-timestamp";
const SIGNATURE: &str = "x-zm-signature";
const BODY: &str = r#"{"event":"meeting.ended","event_ts":1789999999123,"payload":{"account_id":"acc1","object":{"id":"85746065432"}}}"#;

fn zoom(body: &str) -> Event {
    read(Provider::Zoom, "", &[], body.as_bytes()).unwrap()
}

/// Opens a delivery with these headers, as of now.
fn open(
    keys: &Keys,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Result<Reading, Unreadable>, &'static str> {
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    };
    let verified = Provider::Zoom.verify(keys, delivery, NOW);
    verified
        .map(|verified| Provider::Zoom.read(&verified))
        .map_err(|refusal| refusal.reason())
}

/// The same, signed with the first of these keys at that moment.
fn signed_at(keys: &Keys, at: i64, body: &str) -> Vec<(&'static str, String)> {
    keys.sign("", at, body.as_bytes())
}

fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, &**value)).collect()
}

#[test]
fn an_event_says_its_type_its_object_its_account_and_its_time() {
    let event = zoom(BODY);
    assert!(event.id_is_digest && event.given_id().is_none());
    assert_eq!(event.event_type.unwrap().as_str(), "meeting.ended");
    assert_eq!(event.object_id.unwrap().as_str(), "85746065432");
    assert_eq!(event.account.unwrap().as_str(), "acc1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_999_999_123);
    assert_eq!((event.mode, event.dropped), (Mode::Unknown, Vec::new()));
}

#[test]
fn an_object_may_have_a_number_as_its_id_which_keeps_its_digits() {
    let event = zoom(r#"{"event":"recording.completed","payload":{"object":{"id":99999999999999999999}}}"#);
    assert_eq!(event.object_id.unwrap().as_str(), "99999999999999999999");
    assert_eq!(zoom(r#"{"event":"account.created"}"#).object_id, None);
}

#[test]
fn bytes_tell_events_apart() {
    let later = BODY.replace("9123", "9124");
    let other = BODY.replace("meeting.ended", "meeting.ender");
    assert_eq!(zoom(BODY).id, zoom(BODY).id);
    let ids: HashSet<_> = [BODY, &later, &other, &format!("{BODY} ")]
        .map(|body| zoom(body).id)
        .into();
    assert_eq!(ids.len(), 4);
}

#[test]
fn fields_that_do_not_fit_are_dropped() {
    let event = zoom(r#"{"event":["a"],"event_ts":"soon","payload":{"account_id":{},"object":{"id":true}}}"#);
    assert_eq!(
        event.dropped,
        [Dropped::Type, Dropped::ObjectId, Dropped::Account, Dropped::Time]
    );
    for time in ["-1", "253402300800000", "1e12", "\"\""] {
        let event = zoom(&format!(r#"{{"event":"a","event_ts":{time}}}"#));
        assert_eq!(
            (event.provider_time, event.dropped),
            (None, vec![Dropped::Time]),
            "{time}"
        );
    }
    assert_eq!(
        zoom("\u{feff}{\"event\":\"a\"}\r\n").event_type.unwrap().as_str(),
        "a"
    );
}

#[test]
fn a_signature_is_sixty_four_small_hex_digits_behind_its_version() {
    let keys = Provider::Zoom.dev_keys();
    let signed = signed_at(&keys, NOW, BODY);
    let mut headers = borrowed(&signed);
    assert!(open(&keys, &headers, BODY).is_ok());
    let at = headers.iter().position(|(name, _)| *name == SIGNATURE).unwrap();
    let good = headers[at].1;
    let digits = good.strip_prefix("v0=").unwrap();
    let zeros = format!("v0={}", "0".repeat(64));
    let (short, long) = (&good[..good.len() - 1], format!("{good}0"));
    let (upper, version) = (good.to_uppercase().replace("V0", "v0"), format!("v1={digits}"));
    for (bad, reason) in [
        ("", "missing_signature"),
        ("v0=", "malformed_signature"),
        (digits, "malformed_signature"),
        (short, "malformed_signature"),
        (&*long, "malformed_signature"),
        (&*upper, "malformed_signature"),
        (&*version, "malformed_signature"),
        ("v0=bXlz", "malformed_signature"),
        (&*zeros, "bad_signature"),
    ] {
        headers[at].1 = bad;
        assert_eq!(open(&keys, &headers, BODY).unwrap_err(), reason, "{bad}");
    }
    headers[at].1 = good;
    headers.push((SIGNATURE, good));
    assert!(open(&keys, &headers, BODY).is_err(), "it occurs twice");
}

#[test]
fn the_time_is_signed_and_lies_within_five_minutes_both_ways() {
    let keys = Provider::Zoom.dev_keys();
    for (offset, expected) in [
        (-300, "ok"),
        (300, "ok"),
        (-301, "stale_timestamp"),
        (301, "future_timestamp"),
    ] {
        let signed = signed_at(&keys, NOW + offset, BODY);
        let outcome = open(&keys, &borrowed(&signed), BODY);
        assert_eq!(
            outcome.map_or_else(|reason| reason, |_| "ok"),
            expected,
            "{offset}"
        );
    }
    let signed = signed_at(&keys, NOW, BODY);
    for (time, reason) in [
        ("", "missing_signature"),
        ("soon", "malformed_signature"),
        ("1790000011", "bad_signature"),
    ] {
        let mut headers = borrowed(&signed);
        headers
            .iter_mut()
            .filter(|(name, _)| *name == TIME)
            .for_each(|header| header.1 = time);
        assert_eq!(open(&keys, &headers, BODY).unwrap_err(), reason, "{time}");
    }
}

/// A handshake that wants this signed; the token as JSON.
fn validation(token: &str) -> String {
    format!(
        r#"{{"payload":{{"plainToken":{token}}},"event_ts":1790000010000,"event":"endpoint.url_validation"}}"#
    )
}

#[test]
fn the_token_of_a_new_url_is_sent_back_with_its_signature() {
    let body = validation("\"qgg8vlvZRS6UYooatFL8Aw\"");
    let reading = reading(Provider::Zoom, "", &[], body.as_bytes()).unwrap();
    let answer = reading.handshake.unwrap();
    assert_eq!((answer.status, answer.content_type), (200, "application/json"));
    // HMAC-SHA256 of the token, by another implementation.
    assert_eq!(
        serde_json::from_str::<Value>(&answer.body).unwrap(),
        json!({
            "plainToken": "qgg8vlvZRS6UYooatFL8Aw",
            "encryptedToken": "6d76b85556b0fdf9607d63da1980b1e209804b3417d739157f9f4d74fe4a8e50",
        })
    );
    let told = reading.events[0].event_type.as_ref().unwrap();
    assert_eq!(told.as_str(), "endpoint.url_validation");
}

#[test]
fn of_two_secrets_the_one_that_signed_the_request_signs_the_answer() {
    let both = keys(Provider::Zoom, &["new", "old"]);
    for (secret, expected) in [
        (
            "old",
            "05406d26879cac397e741249a82d04a12569fb63c2c7b0b33cf77b9d227f9c7e",
        ),
        (
            "new",
            "54a818bc60e785d356919b452b6aae5260e5b8744ec48ab82034e834ff6def9d",
        ),
    ] {
        let body = validation("\"\\u0061bc\"");
        let signed = signed_at(&keys(Provider::Zoom, &[secret]), NOW, &body);
        let reading = open(&both, &borrowed(&signed), &body).unwrap().unwrap();
        let answer = reading.handshake.unwrap().body;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            answer,
            json!({"plainToken": "abc", "encryptedToken": expected}),
            "{secret}"
        );
    }
}

#[test]
fn no_text_is_signed_that_could_be_a_delivery() {
    let longest = format!("\"{}\"", "x".repeat(64));
    for token in ["\"a\"", "\"AZaz09_-\"", &longest] {
        let outcome = reading(Provider::Zoom, "", &[], validation(token).as_bytes());
        assert!(outcome.unwrap().handshake.is_some(), "{token}");
    }
    let longer = format!("\"{}\"", "x".repeat(65));
    let delivery = format!("\"v0:{NOW}:{{}}\"");
    for token in [
        "\"\"",
        "\":\"",
        "\"a:b\"",
        "\"a\\u003ab\"",
        &longer,
        &delivery,
        "\"a b\"",
        "\"a.b\"",
        "\"a+/=\"",
        "\"a\\n\"",
        "\"a\\u0000\"",
        "\"é\"",
        "\"\\ud800\"",
        "7",
        "null",
        "true",
        "{}",
        "[\"a\"]",
        "\"a\",\"plainToken\":\"b\"",
    ] {
        let outcome = reading(Provider::Zoom, "", &[], validation(token).as_bytes());
        assert_eq!(outcome.unwrap_err().reason(), "malformed_body", "{token}");
    }
    let without = br#"{"event":"endpoint.url_validation","payload":{}}"#;
    let outcome = reading(Provider::Zoom, "", &[], without);
    assert_eq!(outcome.unwrap_err().reason(), "malformed_body");
}

#[test]
fn nothing_is_signed_for_a_stranger() {
    let ours = Provider::Zoom.dev_keys();
    let body = validation("\"abc\"");
    let foreign = signed_at(&keys(Provider::Zoom, &["a stranger's"]), NOW, &body);
    assert_eq!(
        open(&ours, &borrowed(&foreign), &body).unwrap_err(),
        "bad_signature"
    );
    assert_eq!(open(&ours, &[], &body).unwrap_err(), "missing_signature");
    let of_another = signed_at(&ours, NOW, &validation("\"abd\""));
    assert_eq!(
        open(&ours, &borrowed(&of_another), &body).unwrap_err(),
        "bad_signature"
    );
    let old = signed_at(&ours, NOW - 301, &body);
    assert_eq!(
        open(&ours, &borrowed(&old), &body).unwrap_err(),
        "stale_timestamp"
    );
}

#[test]
fn the_answer_to_a_token_verifies_no_delivery() {
    let ours = Provider::Zoom.dev_keys();
    let body = validation("\"abc\"");
    let handshake = reading(Provider::Zoom, "", &[], body.as_bytes())
        .unwrap()
        .handshake;
    let answer: Value = serde_json::from_str(&handshake.unwrap().body).unwrap();
    let signature = format!("v0={}", answer["encryptedToken"].as_str().unwrap());
    let unchecked = Provider::Zoom
        .keys(&Provider::Zoom.dev_secrets(), Tolerance::Off)
        .unwrap();
    for keys in [&ours, &unchecked] {
        for sent in ["abc", "", "{}", &body] {
            let headers = [(TIME, "1790000010"), (SIGNATURE, &*signature)];
            assert_eq!(open(keys, &headers, sent).unwrap_err(), "bad_signature", "{sent}");
        }
    }
}

#[test]
fn only_an_event_of_its_type_is_a_handshake() {
    for event in [
        "meeting.started",
        "endpoint.url_validation2",
        "ENDPOINT.URL_VALIDATION",
    ] {
        let body = format!(r#"{{"event":"{event}","payload":{{"plainToken":"abc"}}}}"#);
        let reading = reading(Provider::Zoom, "", &[], body.as_bytes()).unwrap();
        assert_eq!(reading.handshake, None, "{event}");
        let signed = signed_at(&Provider::Zoom.dev_keys(), NOW, &body);
        let headers = borrowed(&signed);
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect(),
            body: body.into(),
        };
        let verified = Provider::Zoom
            .verify(&Provider::Zoom.dev_keys(), delivery, NOW)
            .unwrap();
        assert_eq!(verified.proof(), None, "nothing was signed");
    }
}
