//! Coinbase Commerce: the event in an envelope that has an id of its own.

use hookgate_webhook::{Mode, Provider};

use crate::{read, reason};

#[test]
fn the_events_id_is_the_id_and_not_the_envelopes() {
    let body = |attempt: u32| {
        format!(
            r#"{{"attempt_number":{attempt},"event":{{"created_at":"2026-09-21T14:13:20Z","data":{{"code":"C","id":"o-1"}},"id":"e-1","type":"charge:confirmed"}},"id":"d-{attempt}"}}"#
        )
    };
    let event = |attempt| read(Provider::CoinbaseCommerce, "", &[], body(attempt).as_bytes()).unwrap();
    assert_eq!(event(1).id, event(2).id, "a retry");
    let event = event(1);
    assert_eq!(event.id.as_str(), "e-1");
    assert_eq!(event.event_type.unwrap().as_str(), "charge:confirmed");
    assert_eq!(event.object_id.unwrap().as_str(), "o-1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_000);
    assert_eq!((event.account, event.mode), (None, Mode::Unknown));
}

#[test]
fn an_envelope_without_an_event_has_no_id() {
    for body in [
        r#"{"id":"d-1"}"#,
        r#"{"id":"d-1","event":{}}"#,
        r#"{"event":{"id":7}}"#,
        r#"{"event":[]}"#,
    ] {
        let outcome = read(Provider::CoinbaseCommerce, "", &[], body.as_bytes());
        assert_eq!(reason(outcome), "missing_event_id", "{body}");
    }
    let twice = br#"{"event":{"id":"a"},"event":{"id":"b"}}"#;
    assert_eq!(
        reason(read(Provider::CoinbaseCommerce, "", &[], twice)),
        "malformed_body"
    );
}
