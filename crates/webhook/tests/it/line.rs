//! LINE: any number of events in one delivery, also none.

use hookgate_webhook::{Dropped, Mode, Provider, Reading, Unreadable};
use sha2::{Digest, Sha256};

use crate::reading;

fn line(body: &str) -> Result<Reading, Unreadable> {
    reading(Provider::Line, "", &[], body.as_bytes())
}

fn reason(body: &str) -> &'static str {
    line(body).map_or_else(|unreadable| unreadable.reason(), |_| "ok")
}

#[test]
fn each_event_keeps_its_own_bytes_and_its_place() {
    let first = r#"{ "webhookEventId":"01A", "type":"message","message":{"id":"14353798921116"},"timestamp":1790000000123,"mode":"active" }"#;
    let second = r#"{"type":"follow","webhookEventId":"01B","timestamp":1790000000124,"mode":"standby"}"#;
    let body = format!("{{\"events\":[ {first}\r\n,{second}],\"destination\":\"U1\"}}");
    let events = line(&body).unwrap().events;
    assert_eq!(events.len(), 2);
    for (index, (event, own)) in events.iter().zip([first, second]).enumerate() {
        assert_eq!(&event.body[..], own.as_bytes());
        assert_eq!(event.body_sha256, <[u8; 32]>::from(Sha256::digest(own)));
        let batch = event.batch.unwrap();
        assert_eq!((batch.index, batch.count), (index, 2));
        assert_eq!(batch.sha256, <[u8; 32]>::from(Sha256::digest(&body)));
        assert_eq!(event.account.as_ref().unwrap().as_str(), "U1");
        assert_eq!(
            event.mode,
            Mode::Unknown,
            "`mode` says whether the bot may answer"
        );
    }
    assert_eq!(events[0].object_id.as_ref().unwrap().as_str(), "14353798921116");
    assert_eq!(
        events[0].provider_time.as_ref().unwrap().unix_ms,
        1_790_000_000_123
    );
    assert_eq!(events[1].id.as_str(), "01B");
    assert_eq!(events[1].event_type.as_ref().unwrap().as_str(), "follow");
}

#[test]
fn the_consoles_verification_holds_no_event() {
    let reading = line(r#"{"destination":"U1","events":[]}"#).unwrap();
    assert_eq!((reading.events, reading.handshake), (vec![], None));
}

#[test]
fn a_redelivery_is_the_same_event_in_other_bytes() {
    let event = |again: bool| {
        let body = format!(
            r#"{{"events":[{{"webhookEventId":"01A","deliveryContext":{{"isRedelivery":{again}}}}}]}}"#
        );
        line(&body).unwrap().events.remove(0)
    };
    assert_eq!(event(false).id, event(true).id);
    assert_ne!(event(false).body_sha256, event(true).body_sha256);
}

#[test]
fn one_event_that_cannot_be_read_makes_the_delivery_unreadable() {
    let with =
        |event: &str| format!(r#"{{"destination":"U1","events":[{{"webhookEventId":"01A"}},{event}]}}"#);
    for (event, expected) in [
        (r#"{"webhookEventId":"01B"}"#, "ok"),
        (r#"{"type":"message"}"#, "missing_event_id"),
        (r#"{"webhookEventId":null}"#, "missing_event_id"),
        (r#"{"webhookEventId":7}"#, "missing_event_id"),
        (r#"{"webhookEventId":"a\u0000"}"#, "bad_event_id"),
        (r#"{"webhookEventId":"a","webhookEventId":"b"}"#, "malformed_body"),
        ("null", "malformed_body"),
        ("[]", "malformed_body"),
        ("\"01B\"", "malformed_body"),
    ] {
        assert_eq!(reason(&with(event)), expected, "{event}");
    }
}

#[test]
fn events_are_a_list_and_occur_once() {
    for body in [
        "{}",
        r#"{"events":null}"#,
        r#"{"events":{}}"#,
        r#"{"events":"[]"}"#,
        r#"{"events":[],"events":[]}"#,
        r#"{"events":[],"\u0065vents":[]}"#,
        r#"{"events":[]}]"#,
        "[]",
    ] {
        assert_eq!(reason(body), "malformed_body", "{body}");
    }
}

#[test]
fn a_delivery_of_more_elements_than_are_read_is_malformed() {
    let body = |count: usize| {
        let events = vec![r#"{"webhookEventId":"a"}"#; count].join(",");
        format!(r#"{{"events":[{events}]}}"#)
    };
    assert_eq!(reason(&body(20_000)), "ok");
    assert_eq!(reason(&body(20_001)), "malformed_body");
}

#[test]
fn fields_that_do_not_fit_are_dropped() {
    let event = line(
        r#"{"destination":[],"events":[{"webhookEventId":"a","type":1,"message":{"id":{}},"timestamp":-1}]}"#,
    )
    .unwrap()
    .events
    .remove(0);
    let all = [Dropped::Type, Dropped::ObjectId, Dropped::Account, Dropped::Time];
    assert_eq!(event.dropped, all);
}
