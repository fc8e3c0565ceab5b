//! RevenueCat: one body, and two ways to prove it.

use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use crate::{NOW_MS, keys, read, reason, verify};

const BODY: &[u8] = br#"{"event": {"id": "12345678-1234", "type": "RENEWAL"}, "api_version": "1.0"}"#;

fn revenuecat(fields: &str) -> Result<Event, Unreadable> {
    let body = format!(r#"{{"api_version":"1.0","event":{{{fields}}}}}"#);
    read(Provider::Revenuecat, "", &[], body.as_bytes())
}

#[test]
fn both_ways_read_the_same_event() {
    let body = br#"{"event":{"event_timestamp_ms":1790000012345,"environment":"PRODUCTION","price":-4.990,"original_transaction_id":"1234","type":"CANCELLATION","id":"12345678-1234","app_id":"app7"},"id":"not this"}"#;
    for provider in [Provider::Revenuecat, Provider::RevenuecatHmac] {
        let event = read(provider, "", &[], body).unwrap();
        assert_eq!(event.id.as_str(), "12345678-1234");
        assert_eq!(event.event_type.unwrap().as_str(), "CANCELLATION");
        assert_eq!(event.object_id.unwrap().as_str(), "1234");
        assert_eq!(event.account.unwrap().as_str(), "app7");
        assert_eq!(event.mode, Mode::Live);
        let time = event.provider_time.unwrap();
        assert_eq!((&*time.text, time.unix_ms), ("1790000012345", 1_790_000_012_345));
    }
}

#[test]
fn an_event_without_a_transaction_or_of_a_new_type_is_an_event() {
    let event =
        revenuecat(r#""id":"a","type":"TRANSFER","transferred_from":["x"],"transferred_to":["y"]"#).unwrap();
    assert_eq!((event.object_id, &*event.dropped), (None, &[][..]));
    let event = revenuecat(r#""id":"a","type":"SOMETHING_NEW""#).unwrap();
    assert_eq!(event.event_type.unwrap().as_str(), "SOMETHING_NEW");
}

#[test]
fn every_event_has_an_id() {
    for fields in ["", r#""id":null"#, r#""id":"""#, r#""id":7"#, r#""id":{}"#] {
        assert_eq!(reason(revenuecat(fields)), "missing_event_id", "{fields}");
    }
    for body in [
        r#"{"id":"a"}"#,
        r#"{"event":"a"}"#,
        r#"{"event":null}"#,
        r#"{"event":[{"id":"a"}]}"#,
    ] {
        let outcome = read(Provider::Revenuecat, "", &[], body.as_bytes());
        assert_eq!(reason(outcome), "missing_event_id", "{body}");
    }
    assert_eq!(
        reason(revenuecat(&format!(r#""id":"{}""#, "x".repeat(256)))),
        "bad_event_id"
    );
    assert_eq!(reason(revenuecat(r#""id":"a","id":"b""#)), "malformed_body");
    assert_eq!(
        reason(read(
            Provider::Revenuecat,
            "",
            &[],
            br#"{"event":{"id":"a"},"event":{"id":"b"}}"#
        )),
        "malformed_body"
    );
}

#[test]
fn the_environment_is_the_mode() {
    for (environment, mode) in [
        ("\"PRODUCTION\"", Mode::Live),
        ("\"SANDBOX\"", Mode::Test),
        ("\"sandbox\"", Mode::Unknown),
        ("\"STAGING\"", Mode::Unknown),
        ("null", Mode::Unknown),
        ("true", Mode::Unknown),
    ] {
        let event = revenuecat(&format!(r#""id":"a","environment":{environment}"#)).unwrap();
        assert_eq!(event.mode, mode, "{environment}");
    }
}

#[test]
fn a_time_out_of_range_is_dropped() {
    for time in [
        "-1",
        "1790000012345.5",
        "1e12",
        "253402300800000",
        "\"1790000012345\"",
        "true",
    ] {
        let event = revenuecat(&format!(r#""id":"a","event_timestamp_ms":{time}"#)).unwrap();
        assert_eq!(
            (event.provider_time, &*event.dropped),
            (None, &[Dropped::Time][..]),
            "{time}"
        );
    }
}

#[test]
fn the_authorization_counts_with_its_bearer() {
    let keys = keys(Provider::Revenuecat, &["Bearer first", "second"]);
    let outcome = |value: &str| {
        verify(
            Provider::Revenuecat,
            &keys,
            None,
            &[("authorization", value)],
            BODY,
        )
        .map_or_else(|reason| reason, |_| "ok")
    };
    for right in ["Bearer first", "second"] {
        assert_eq!(outcome(right), "ok");
    }
    for wrong in [
        "first",
        "bearer first",
        "Bearer  first",
        "Bearer second",
        "Bearer firs",
        "Basic first",
    ] {
        assert_eq!(outcome(wrong), "bad_signature", "{wrong}");
    }
    assert_eq!(outcome(""), "missing_signature");
}

#[test]
fn a_source_with_signatures_takes_no_authorization() {
    let secret = "shown-once-secret";
    let signing = keys(Provider::RevenuecatHmac, &[secret]);
    let outcome = verify(
        Provider::RevenuecatHmac,
        &signing,
        None,
        &[("Authorization", secret)],
        BODY,
    );
    assert_eq!(outcome.unwrap_err(), "missing_signature");
}

#[test]
fn the_signature_lives_for_five_minutes_in_both_directions() {
    let signing = keys(Provider::RevenuecatHmac, &["new-secret", "old-secret"]);
    let old = keys(Provider::RevenuecatHmac, &["old-secret"]);
    let now = NOW_MS / 1000;
    for (signed_at, expected) in [
        (now, "ok"),
        (now - 300, "ok"),
        (now - 301, "stale_timestamp"),
        (now + 300, "ok"),
        (now + 301, "future_timestamp"),
    ] {
        for signer in [&signing, &old] {
            let (name, value) = signer.sign("", signed_at, BODY).remove(0);
            let outcome = verify(Provider::RevenuecatHmac, &signing, None, &[(name, &value)], BODY);
            assert_eq!(
                outcome.map_or_else(|reason| reason, |_| "ok"),
                expected,
                "{}",
                signed_at - now
            );
        }
    }
}
