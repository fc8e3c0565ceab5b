//! What is read once the signature holds: the object from the query, the rest from a body that is not signed.

use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use super::{CASE, Case};
use crate::{read, reason};

fn body(body: &str) -> Result<Event, Unreadable> {
    read(Provider::MercadoPago, "", &[], body.as_bytes())
}

#[test]
fn the_signed_object_is_kept_and_another_in_the_body_is_counted() {
    let object = |body: &str| {
        let event = Case { body, ..CASE }.event().unwrap();
        (event.object_id.unwrap().as_str().to_owned(), event.dropped)
    };
    let counted = vec![Dropped::ObjectId];
    for (data, dropped) in [
        (r#"{"id":"134"}"#, vec![]),
        (r#"{"id":134}"#, vec![]),
        (r#"{"id":null}"#, vec![]),
        ("{}", vec![]),
        (r#"{"id":"135"}"#, counted.clone()),
        (r#"{"id":{}}"#, counted.clone()),
        (r#"{"id":""}"#, counted),
    ] {
        let body = format!(r#"{{"id":1,"action":"payment.created","data":{data}}}"#);
        assert_eq!(object(&body), ("134".to_owned(), dropped), "{data}");
    }
    let order = Case {
        url: Some("https://x.example/in?data.id=ord01"),
        manifest: "id:ord01;request-id:r1;ts:1790000010;",
        body: r#"{"id":1,"data":{"id":"ORD01"}}"#,
        ..CASE
    };
    assert_eq!(order.event().unwrap().dropped, [], "case does not count");
}

#[test]
fn without_a_signed_object_the_body_names_it() {
    let event = Case {
        url: Some("https://x.example/in"),
        manifest: "request-id:r1;ts:1790000010;",
        ..CASE
    }
    .event()
    .unwrap();
    assert_eq!(event.object_id.unwrap().as_str(), "134");
}

#[test]
fn a_signed_object_that_is_no_field_is_dropped() {
    let event = Case {
        url: Some("https://x.example/in?data.id=%0A"),
        manifest: "id:\n;request-id:r1;ts:1790000010;",
        ..CASE
    }
    .event()
    .unwrap();
    assert_eq!(
        (event.object_id, &*event.dropped),
        (None, &[Dropped::ObjectId][..])
    );
}

#[test]
fn an_id_is_a_whole_number_or_text() {
    for (json, id) in [
        ("12345678901", "12345678901"),
        ("9007199254740993", "9007199254740993"),
        (
            "340282366920938463463374607431768211456",
            "340282366920938463463374607431768211456",
        ),
        ("0", "0"),
        ("\"123456\"", "123456"),
        ("\"a:b\"", "a:b"),
    ] {
        assert_eq!(body(&format!(r#"{{"id":{json}}}"#)).unwrap().id.as_str(), id);
    }
    for json in ["null", "\"\"", "true", "{}", "[1]"] {
        assert_eq!(
            reason(body(&format!(r#"{{"id":{json}}}"#))),
            "missing_event_id",
            "{json}"
        );
    }
    assert_eq!(reason(body("{}")), "missing_event_id");
    let long = "1".repeat(256);
    for json in ["-1", "1.0", "1e3", &long, r#""a\n""#] {
        assert_eq!(
            reason(body(&format!(r#"{{"id":{json}}}"#))),
            "bad_event_id",
            "{json}"
        );
    }
    assert_eq!(reason(body(r#"{"id":1,"id":2}"#)), "malformed_body");
}

#[test]
fn the_type_is_the_action_or_else_the_topic() {
    let event_type = |fields: &str| {
        let event = body(&format!(r#"{{"id":1{fields}}}"#)).unwrap();
        event.event_type.map(|kind| kind.as_str().to_owned())
    };
    let both = event_type(r#","action":"updated","type":"subscription_preapproval""#);
    assert_eq!(both.as_deref(), Some("updated"));
    assert_eq!(event_type(r#","type":"payment""#).as_deref(), Some("payment"));
    assert_eq!(
        event_type(r#","action":null,"type":"payment""#).as_deref(),
        Some("payment")
    );
    assert_eq!(event_type(""), None);
}

#[test]
fn account_mode_and_time_stand_in_the_body() {
    let event = body(
        r#"{"id":1,"user_id":2025701502,"live_mode":false,"date_created":"2026-09-21T10:04:58.396-04:00"}"#,
    )
    .unwrap();
    assert_eq!(
        (event.account.unwrap().as_str(), event.mode),
        ("2025701502", Mode::Test)
    );
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_999_498_396);
    assert_eq!(body(r#"{"id":1,"live_mode":true}"#).unwrap().mode, Mode::Live);
    assert_eq!(
        body(r#"{"id":1,"live_mode":"true"}"#).unwrap().mode,
        Mode::Unknown
    );
    let event = body(r#"{"id":1,"date_created":"2026-09-21T10:04:58.396"}"#).unwrap();
    assert_eq!(
        (event.provider_time, &*event.dropped),
        (None, &[Dropped::Time][..])
    );
}
