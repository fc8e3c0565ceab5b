//! Paddle: a short tolerance, several signatures, and two ids of which one is the event's.

use hookgate_webhook::{Dropped, Mode, Provider};

use crate::{NOW_MS, keys, read, reason, verify};

const BODY: &[u8] = br#"{"event_id":"evt_1","event_type":"transaction.paid","occurred_at":"2026-09-21T14:13:19.837932Z","notification_id":"ntf_1","data":{"id":"txn_1"}}"#;

fn header(header: &str) -> &'static str {
    let keys = keys(Provider::Paddle, &["pdl_ntfset_new", "pdl_ntfset_old"]);
    let headers = [("Paddle-Signature", header)];
    verify(Provider::Paddle, &keys, None, &headers, BODY).map_or_else(|reason| reason, |_| "ok")
}

/// What Paddle would send at this time with this secret.
fn signed(secret: &str, at: i64) -> String {
    let sent = keys(Provider::Paddle, &[secret]).sign("", at, BODY).remove(0);
    assert_eq!(sent.0, "Paddle-Signature");
    sent.1
}

#[test]
fn the_event_id_is_the_id_and_not_the_notifications() {
    let event = read(Provider::Paddle, "", &[], BODY).unwrap();
    assert_eq!(event.id.as_str(), "evt_1");
    assert_eq!(event.event_type.unwrap().as_str(), "transaction.paid");
    assert_eq!(event.object_id.unwrap().as_str(), "txn_1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_999_999_837);
    assert_eq!((event.account, event.mode), (None, Mode::Unknown));
    let without = br#"{"notification_id":"ntf_1","data":{"id":"txn_1"}}"#;
    assert_eq!(
        reason(read(Provider::Paddle, "", &[], without)),
        "missing_event_id"
    );
    let twice = br#"{"event_id":"a","event_id":"b"}"#;
    assert_eq!(reason(read(Provider::Paddle, "", &[], twice)), "malformed_body");
}

#[test]
fn five_seconds_are_allowed_and_the_future_is_not_refused() {
    let now = NOW_MS / 1000;
    for (age, expected) in [(0, "ok"), (5, "ok"), (6, "stale_timestamp"), (-60, "ok")] {
        assert_eq!(header(&signed("pdl_ntfset_new", now - age)), expected, "{age}");
    }
}

#[test]
fn any_signature_may_match_and_unknown_keys_are_ignored() {
    let now = NOW_MS / 1000;
    let wrong = "0".repeat(64);
    for secret in ["pdl_ntfset_new", "pdl_ntfset_old"] {
        let sent = signed(secret, now);
        let (ts, h1) = sent.split_once(';').unwrap();
        for good in [
            format!("{ts};h1={wrong};{h1}"),
            format!("{ts};{h1};h1={wrong}"),
            format!("{h1};{ts}"),
            format!("{ts};{h1};h2=abc;x"),
        ] {
            assert_eq!(header(&good), "ok", "{good}");
        }
        for bad in [
            h1.to_owned(),
            ts.to_owned(),
            format!("{ts},{h1}"),
            format!("{ts};{ts};{h1}"),
            format!("{ts};h2={}", &h1[3..]),
            format!("ts=abc;{h1}"),
            format!("{ts};{}", &h1[..66]),
            format!("{ts};{h1}0"),
        ] {
            assert_eq!(header(&bad), "malformed_signature", "{bad}");
        }
        assert_eq!(header(&format!("{ts};h1={wrong}")), "bad_signature");
    }
    assert_eq!(header(""), "missing_signature");
}

#[test]
fn a_time_that_is_none_is_dropped() {
    let body = br#"{"event_id":"evt_1","occurred_at":"2026-09-21"}"#;
    let event = read(Provider::Paddle, "", &[], body).unwrap();
    assert_eq!(
        (event.provider_time, &*event.dropped),
        (None, &[Dropped::Time][..])
    );
}
