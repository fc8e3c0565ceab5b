//! Stripe: everything stands in the body, in two shapes.

use hookgate_webhook::Mode;

use crate::stripe;

#[test]
fn everything_that_identifies_an_event_is_read() {
    let event = stripe(
        r#"{"id":"evt_1","object":"event","account":"acct_1","created":1790000010,"livemode":true,
            "data":{"object":{"id":"in_1"}},"type":"invoice.paid"}"#,
    )
    .unwrap();
    assert_eq!(event.event_type.unwrap().as_str(), "invoice.paid");
    assert_eq!(event.object_id.unwrap().as_str(), "in_1");
    assert_eq!(event.account.unwrap().as_str(), "acct_1");
    assert_eq!(event.mode, Mode::Live);
    let time = event.provider_time.unwrap();
    assert_eq!((&*time.text, time.unix_ms), ("1790000010", 1_790_000_010_000));
}

#[test]
fn a_thin_event_names_its_object_elsewhere() {
    let thin = r#"{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered",
        "created":"2026-09-21T14:13:30.123Z","livemode":false,"data":{"object":{"id":"no"}},"related_object":{"id":"mtr_1"}}"#;
    let event = stripe(thin).unwrap();
    assert_eq!(event.object_id.unwrap().as_str(), "mtr_1");
    let time = event.provider_time.unwrap();
    assert_eq!(
        (&*time.text, time.unix_ms),
        ("2026-09-21T14:13:30.123Z", 1_790_000_010_123)
    );
    let snapshot = thin.replace("v2.core.event", "event");
    assert_eq!(stripe(snapshot).unwrap().object_id.unwrap().as_str(), "no");
}

#[test]
fn the_mode_is_what_livemode_says() {
    for (livemode, mode) in [
        ("true", Mode::Live),
        ("false", Mode::Test),
        ("null", Mode::Unknown),
        ("\"true\"", Mode::Unknown),
        ("1", Mode::Unknown),
    ] {
        let event = stripe(format!(r#"{{"id":"evt_1","livemode":{livemode}}}"#)).unwrap();
        assert_eq!(event.mode, mode, "{livemode}");
    }
    assert_eq!(stripe(r#"{"id":"evt_1"}"#).unwrap().mode, Mode::Unknown);
}

#[test]
fn an_object_without_id_is_no_fault() {
    let event = stripe(r#"{"id":"evt_1","data":{"object":{"object":"balance"}}}"#).unwrap();
    assert_eq!((event.object_id, &*event.dropped), (None, &[][..]));
}
