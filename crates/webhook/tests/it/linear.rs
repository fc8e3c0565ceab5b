//! Linear: a signed time in the body, and an id in a header that is not signed.

use hookgate_signature::{Delivery, Tolerance};
use hookgate_webhook::{Dropped, Provider};

use crate::{NOW_MS, deliver, read, word};

const DELIVERY: (&str, &[u8]) = ("Linear-Delivery", b"234d1a4e");

/// A body with this as its time.
fn stamped(at: &str) -> String {
    format!(
        r#"{{"type":"Issue","data":{{"id":"i1"}},"createdAt":"2026-09-21T14:13:19.000Z","organizationId":"o1","webhookTimestamp":{at}}}"#
    )
}

fn outcome(body: &str) -> &'static str {
    word(deliver(Provider::Linear, "", &[DELIVERY], body.as_bytes()))
}

#[test]
fn the_header_is_the_id_and_the_body_tells_the_rest() {
    let headers: [(&str, &[u8]); 3] = [DELIVERY, ("Linear-Event", b"Forged"), ("Linear-Timestamp", b"1")];
    let event = read(
        Provider::Linear,
        "",
        &headers,
        stamped(&NOW_MS.to_string()).as_bytes(),
    )
    .unwrap();
    assert_eq!(event.id.as_str(), "234d1a4e");
    assert_eq!(event.event_type.unwrap().as_str(), "Issue");
    assert_eq!(event.object_id.unwrap().as_str(), "i1");
    assert_eq!(event.account.unwrap().as_str(), "o1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_999_999_000);
}

#[test]
fn a_delivery_is_fresh_for_a_minute_in_both_directions() {
    let at = |offset_ms: i64| outcome(&stamped(&(NOW_MS - 123 + offset_ms).to_string()));
    assert_eq!(at(0), "ok");
    assert_eq!(at(-60_000), "ok");
    assert_eq!(at(-60_001), "stale_timestamp");
    assert_eq!(at(60_999), "ok", "parts of a second ahead do not count");
    assert_eq!(at(61_000), "future_timestamp");
}

#[test]
fn a_body_without_a_time_is_refused() {
    assert_eq!(outcome(r#"{"type":"Issue"}"#), "missing_signature");
    assert_eq!(outcome(&stamped("null")), "missing_signature");
    for at in [
        "\"1790000010123\"",
        "1790000010123.0",
        "1.79e12",
        "true",
        "{}",
        "99999999999999999999",
    ] {
        assert_eq!(outcome(&stamped(at)), "malformed_signature", "{at}");
    }
    let twice = format!(r#"{{"webhookTimestamp":{NOW_MS},"webhookTimestamp":{NOW_MS}}}"#);
    assert_eq!(outcome(&twice), "malformed_signature");
}

#[test]
fn the_time_is_asked_for_only_where_there_is_a_tolerance() {
    let provider = Provider::Linear;
    for (tolerance, body, expected) in [
        (Tolerance::Off, stamped("1"), "ok"),
        (Tolerance::Off, "{}".to_owned(), "ok"),
        (provider.knowledge().tolerance, stamped("1"), "stale_timestamp"),
    ] {
        let keys = provider.keys(&provider.dev_secrets(), tolerance).unwrap();
        let signature = keys.sign("", 0, body.as_bytes()).remove(0).1;
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: [("Linear-Signature", signature.as_bytes())].into_iter().collect(),
            body: body.clone().into(),
        };
        let outcome = provider.verify(&keys, delivery, NOW_MS / 1000);
        assert_eq!(
            outcome.map_or_else(|refusal| refusal.reason(), |_| "ok"),
            expected
        );
    }
}

#[test]
fn an_unsigned_time_refreshes_nothing() {
    let now = NOW_MS.to_string();
    let headers = [DELIVERY, ("Linear-Timestamp", now.as_bytes())];
    let old = deliver(
        Provider::Linear,
        "",
        &headers,
        stamped("1790000000123").as_bytes(),
    );
    assert_eq!(word(old), "ok");
    let older = deliver(
        Provider::Linear,
        "",
        &headers,
        stamped("1789999900123").as_bytes(),
    );
    assert_eq!(word(older), "stale_timestamp");
}

#[test]
fn an_id_is_a_header_that_occurs_once() {
    let now = stamped(&NOW_MS.to_string());
    let outcome = |headers: &[(&str, &[u8])]| word(deliver(Provider::Linear, "", headers, now.as_bytes()));
    let long = [b'x'; 300];
    assert_eq!(outcome(&[]), "missing_event_id");
    assert_eq!(outcome(&[("Linear-Delivery", b"")]), "missing_event_id");
    assert_eq!(outcome(&[DELIVERY, DELIVERY]), "bad_event_id");
    assert_eq!(outcome(&[("Linear-Delivery", &long)]), "bad_event_id");
}

#[test]
fn fields_that_do_not_fit_are_dropped() {
    let body = format!(
        r#"{{"type":1,"data":{{"id":[]}},"createdAt":"soon","organizationId":{{}},"webhookTimestamp":{NOW_MS}}}"#
    );
    let event = read(Provider::Linear, "", &[DELIVERY], body.as_bytes()).unwrap();
    let all = [Dropped::Type, Dropped::ObjectId, Dropped::Account, Dropped::Time];
    assert_eq!(event.dropped, all);
}
