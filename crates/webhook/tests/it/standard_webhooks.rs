//! Standard Webhooks: a signed id, and a body that may follow the recommendation.

use hookgate_webhook::{Dropped, Event, Provider};

use crate::read;

fn standard(body: &str) -> Event {
    read(Provider::StandardWebhooks, "msg_1", &[], body.as_bytes()).unwrap()
}

#[test]
fn the_signed_header_is_the_id_and_the_body_the_rest() {
    let event = standard(
        r#"{"id":"not this","type":"contact.created","timestamp":"2026-09-21T14:13:20.344522Z","data":{"id":7}}"#,
    );
    assert_eq!(event.id.as_str(), "msg_1");
    assert_eq!(event.event_type.unwrap().as_str(), "contact.created");
    assert_eq!(event.object_id.unwrap().as_str(), "7");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_344);
}

#[test]
fn a_body_that_follows_no_recommendation_is_an_event_too() {
    let event = standard(r#"{"email":"test@example.com"}"#);
    assert_eq!(
        (event.event_type, event.object_id, event.provider_time),
        (None, None, None)
    );
    assert_eq!(event.dropped, []);
}

#[test]
fn times_are_kept_as_text_and_understood_as_milliseconds() {
    for (timestamp, unix_ms) in [
        ("0", 0),
        ("1790000000", 1_790_000_000_000),
        ("99999999999", 99_999_999_999_000),
        ("100000000000", 100_000_000_000),
        ("1790000000123", 1_790_000_000_123),
        ("253402300799999", 253_402_300_799_999),
        ("\"1970-01-01T00:00:00Z\"", 0),
        ("\"2026-09-21T16:13:20.5+02:00\"", 1_790_000_000_500),
        ("\"9999-12-31T23:59:59.999999999Z\"", 253_402_300_799_999),
    ] {
        let time = standard(&format!(r#"{{"timestamp":{timestamp}}}"#))
            .provider_time
            .unwrap();
        assert_eq!(
            (&*time.text, time.unix_ms),
            (timestamp.trim_matches('"'), unix_ms)
        );
    }
}

#[test]
fn times_out_of_range_or_of_another_form_are_dropped() {
    let endless = format!("\"2026-09-21T14:13:20.{}Z\"", "0".repeat(300));
    for timestamp in [
        &*endless,
        "-1",
        "1.5",
        "1e9",
        "253402300800000",
        "99999999999999999999999",
        "\"1969-12-31T23:59:59.999Z\"",
        "\"10000-01-01T00:00:00Z\"",
        "\"9999-12-31T23:59:59-01:00\"",
        "\"1970-01-01T00:59:59+01:00\"",
        "\"1790000000\"",
        "\"\"",
        "false",
        "{}",
    ] {
        let event = standard(&format!(r#"{{"timestamp":{timestamp}}}"#));
        assert_eq!(
            (event.provider_time, &*event.dropped),
            (None, &[Dropped::Time][..]),
            "{timestamp}"
        );
    }
}
