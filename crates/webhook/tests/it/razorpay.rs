//! Razorpay: the id in an unsigned header, and an object under a name that the body itself lists.

use hookgate_webhook::{Dropped, Event, Provider, Unreadable};

use crate::{read, reason};

fn razorpay(body: &str) -> Result<Event, Unreadable> {
    read(
        Provider::Razorpay,
        "",
        &[("X-Razorpay-Event-Id", b"evt1")],
        body.as_bytes(),
    )
}

fn object(fields: &str) -> Option<String> {
    let event = razorpay(&format!("{{{fields}}}")).unwrap();
    event.object_id.map(|id| id.as_str().to_owned())
}

#[test]
fn id_type_account_and_time_are_read() {
    let event =
        razorpay(r#"{"id":"not this","account_id":"acc_1","event":"order.paid","created_at":1790000000}"#)
            .unwrap();
    assert_eq!(event.id.as_str(), "evt1");
    assert_eq!(event.event_type.unwrap().as_str(), "order.paid");
    assert_eq!(event.account.unwrap().as_str(), "acc_1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_000);
    assert_eq!(
        reason(read(Provider::Razorpay, "", &[], b"{}")),
        "missing_event_id"
    );
}

#[test]
fn the_object_is_the_first_that_the_body_says_it_contains() {
    let payload = r#""payload":{"order":{"entity":{"id":"order_1"}},"payment":{"entity":{"id":"pay_1"}},"n":{"entity":{"id":9007199254740993}}}"#;
    for (contains, id) in [
        (r#"["payment"]"#, Some("pay_1")),
        (r#"["payment","order"]"#, Some("pay_1")),
        (r#"[ "order" , "payment" ]"#, Some("order_1")),
        (r#"["\u006frder"]"#, Some("order_1")),
        (r#"["n"]"#, Some("9007199254740993")),
        (r#"["refund"]"#, None),
        (r#"["payment.entity"]"#, None),
        (r#"[""]"#, None),
        ("[]", None),
        ("[1]", None),
        (r#"[{"a":1},"payment"]"#, None),
        (r#""payment""#, None),
        ("null", None),
        ("{}", None),
    ] {
        assert_eq!(
            object(&format!(r#""contains":{contains},{payload}"#)).as_deref(),
            id,
            "{contains}"
        );
    }
    assert_eq!(object(payload), None);
    assert_eq!(object(r#""contains":["payment"]"#), None);
    assert_eq!(
        object(r#""contains":["payment"],"payload":{"payment":{"entity":[]}}"#),
        None
    );
}

#[test]
fn what_is_on_the_way_to_the_object_occurs_once() {
    for body in [
        r#"{"contains":["a"],"contains":["b"]}"#,
        r#"{"contains":["a"],"payload":{},"payload":{"a":{"entity":{"id":"1"}}}}"#,
        r#"{"contains":["a"],"payload":{"a":{"entity":{"id":"1","id":"2"}}}}"#,
    ] {
        assert_eq!(reason(razorpay(body)), "malformed_body", "{body}");
    }
}

#[test]
fn a_list_of_any_length_and_depth_is_read_no_further_than_its_first_name() {
    let long = format!(r#"["payment"{}]"#, ",[]".repeat(100_000));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let payload = r#""payload":{"payment":{"entity":{"id":"pay_1"}}}"#;
    assert_eq!(
        object(&format!(r#""contains":{long},{payload}"#)).as_deref(),
        Some("pay_1")
    );
    assert_eq!(object(&format!(r#""contains":{deep},{payload}"#)), None);
}

#[test]
fn a_time_that_is_none_is_dropped() {
    let event = razorpay(r#"{"created_at":"1790000000"}"#).unwrap();
    assert_eq!(
        (event.provider_time, &*event.dropped),
        (None, &[Dropped::Time][..])
    );
}
