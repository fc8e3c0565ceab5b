//! What a body may be made of.

use hookgate_webhook::Dropped;
use sha2::{Digest, Sha256};

use crate::{reason, stripe};

fn check(body: impl AsRef<[u8]>, expected: &str) {
    let body = body.as_ref();
    assert_eq!(
        reason(stripe(body)),
        expected,
        "{}",
        String::from_utf8_lossy(&body[..body.len().min(80)])
    );
}

#[test]
fn the_bytes_are_kept_as_they_came() {
    for body in [
        &b"{\"id\":\"evt_1\"}"[..],
        b"{\r\n  \"id\" : \"evt_1\"\r\n}\r\n",
        b"\n\t {\"id\":\"evt_1\"} \n\n",
        b"\xef\xbb\xbf{\"id\":\"evt_1\"}",
        br#"{"amount":0.1000,"a":1e2,"b":9007199254740993,"url":"https:\/\/x","amount":1,"id":"evt_1"}"#,
        "{\"id\":\"evt_1\",\"name\":\"Zoe\u{308} 👋 \u{202e}\"}".as_bytes(),
    ] {
        let event = stripe(body).unwrap();
        assert_eq!(event.id.as_str(), "evt_1");
        assert_eq!(&event.body[..], body);
        assert_eq!(event.body_sha256, <[u8; 32]>::from(Sha256::digest(body)));
    }
}

#[test]
fn what_is_not_utf8_or_not_one_json_object_is_malformed() {
    let utf16: Vec<u8> = "\u{feff}{\"id\":\"evt_1\"}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    check(utf16, "malformed_body");
    for body in [
        &b""[..],
        b" \r\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\xef\xbb\xbf{\"id\":\"evt_1\"}",
        b"{\"id\":\"evt_1\",\"name\":\"\x80\"}",
        b"{\"id\":\"evt_1\",\"name\":\"caf\xe9\"}",
        b"Hello, World!",
        b"null",
        b"[{\"id\":\"evt_1\"}]",
        b"\"evt_1\"",
        b"{\"id\":\"evt_1\"",
        b"{\"id\":\"evt_1\"}}",
        b"{\"id\":\"evt_1\"} {\"id\":\"evt_2\"}",
        b"{\"id\":\"evt_1\",}",
        b"{\"id\":\"evt_1\",\"n\":01}",
        b"{\"id\":\"evt_1\",\"n\":NaN}",
        b"{\"id\":\"evt_1\",\"n\":\"a\nb\"}",
        b"{\"id\":\"evt_1\",\"n\":\"\\x\"}",
        b"{id:\"evt_1\"}",
        b"{'id':'evt_1'}",
        b"{\"id\":\"evt_1\" /* */}",
    ] {
        check(body, "malformed_body");
    }
}

#[test]
fn a_field_on_the_way_to_the_event_occurs_once() {
    for body in [
        r#"{"id":"evt_1","id":"evt_2"}"#,
        r#"{"id":"evt_1","id":"evt_1"}"#,
        r#"{"id":"evt_1","\u0069d":"evt_2"}"#,
        r#"{"id":null,"id":"evt_2"}"#,
        r#"{"id":"evt_1","type":"a","type":"b"}"#,
        r#"{"id":"evt_1","livemode":true,"livemode":false}"#,
        r#"{"id":"evt_1","data":{"object":{"id":"a"}},"data":{}}"#,
        r#"{"id":"evt_1","data":{"object":{"id":"a"},"object":1}}"#,
        r#"{"id":"evt_1","data":{"object":{"id":"a","id":"b"}}}"#,
    ] {
        check(body, "malformed_body");
    }
    for body in [
        r#"{"id":"evt_1","amount":1,"amount":2}"#,
        r#"{"id":"evt_1","data":{"id":1,"id":2,"object":{}}}"#,
        r#"{"id":"evt_1","x":{"id":1,"id":2}}"#,
    ] {
        check(body, "ok");
    }
}

#[test]
fn an_escaped_name_is_the_same_name() {
    let event = stripe(r#"{"\u0069\u0064":"evt_\u0031","typ\u0065":"a\/b"}"#).unwrap();
    assert_eq!(event.id.as_str(), "evt_1");
    assert_eq!(event.event_type.unwrap().as_str(), "a/b");
}

#[test]
fn what_is_not_wanted_may_be_anything_that_json_can_write() {
    for value in [
        "1e400",
        "-0.0e-999999",
        "123456789012345678901234567890",
        r#""\ud800""#,
        r#""\u0000""#,
        r#""\\u0000""#,
        r#"{"\ud800":1,"\u0000":2,"":3}"#,
    ] {
        check(
            format!(r#"{{"id":"evt_1","x":{value},"data":{{"x":{value}}}}}"#),
            "ok",
        );
        check(format!(r#"{{"id":"evt_1","data":[{value}]}}"#), "ok");
    }
    check(r#"{"id":"evt_1","\ud800":1,"":2,"a.b":3}"#, "ok");
    check(format!(r#"{{"id":"evt_1","x":"{}"}}"#, "a".repeat(5 << 20)), "ok");
}

#[test]
fn an_object_on_the_way_may_be_missing_or_of_another_shape() {
    for data in [
        "null",
        "true",
        "1",
        "-1",
        "1.5",
        r#""text""#,
        "[]",
        r#"[{"object":{"id":"x"}}, 2, null]"#,
        "{}",
    ] {
        for body in [
            format!(r#"{{"id":"evt_1","data":{data}}}"#),
            format!(r#"{{"id":"evt_1","data":{{"object":{data}}}}}"#),
        ] {
            let event = stripe(&body).unwrap();
            assert_eq!((event.object_id, &*event.dropped), (None, &[][..]), "{body}");
        }
    }
}

#[test]
fn a_thing_on_the_way_that_no_reader_can_represent_is_malformed() {
    check(r#"{"id":"evt_1","data":1e400}"#, "malformed_body");
    check(r#"{"id":"evt_1","data":{"object":"\ud800"}}"#, "malformed_body");
}

#[test]
fn depth_costs_no_stack() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
    for value in [
        deep("[", "]"),
        deep(r#"{"a":"#, "}"),
        deep(r#"{"data":"#, "}"),
        deep(r#"[{"object":"#, "}]"),
    ] {
        check(format!(r#"{{"id":"evt_1","x":{value}}}"#), "ok");
        check(format!(r#"{{"id":"evt_1","data":{value}}}"#), "ok");
        check(
            format!(r#"{{"id":"evt_1","data":{{"object":{{"id":{value}}}}}}}"#),
            "ok",
        );
    }
    check("[".repeat(1_000_000), "malformed_body");
    check(r#"{"data":"#.repeat(1_000_000), "malformed_body");
}

#[test]
fn numbers_keep_their_digits() {
    for digits in [
        "9223372036854775807",
        "820982911946154508",
        "0.1000",
        "1e400",
        "-0",
        "1E+2",
    ] {
        let event = stripe(format!(
            r#"{{"id":"evt_1","data":{{"object":{{"id": {digits} }}}}}}"#
        ))
        .unwrap();
        assert_eq!(event.object_id.unwrap().as_str(), digits);
    }
}

#[test]
fn descriptive_fields_that_do_not_fit_are_dropped_and_counted() {
    let too_long = format!("\"{}\"", "x".repeat(256));
    for value in [
        &*too_long,
        r#""a\u0000b""#,
        r#""a\r\nb""#,
        r#""\u0085""#,
        r#""\ud800""#,
        r#""""#,
        "{}",
        "[1]",
        "true",
    ] {
        let body = format!(
            r#"{{"id":"evt_1","type":{value},"created":{value},"account":{value},"data":{{"object":{{"id":{value}}}}}}}"#
        );
        let event = stripe(&body).unwrap();
        assert_eq!(
            (event.event_type, event.object_id, event.account),
            (None, None, None),
            "{value}"
        );
        assert_eq!(event.provider_time, None);
        let all = [Dropped::Type, Dropped::ObjectId, Dropped::Account, Dropped::Time];
        assert_eq!(event.dropped, all, "{value}");
    }
}

#[test]
fn absent_and_null_fields_are_not_counted() {
    for body in [
        r#"{"id":"evt_1"}"#,
        r#"{"id":"evt_1","type":null,"created":null,"account":null,"data":{"object":{"id":null}}}"#,
    ] {
        assert_eq!(stripe(body).unwrap().dropped, []);
    }
}

#[test]
fn no_message_quotes_the_body() {
    for body in [
        r#""canary""#,
        r#"{"id":"evt_1","data":"canary"canary}"#,
        r#"{"canary":1,"id":"evt_1","id":"canary"}"#,
        r#"{"id":"canary\u0000"}"#,
        r#"{"id":{"canary":1}}"#,
        r#"{"data":canary}"#,
    ] {
        let message = stripe(body).unwrap_err().to_string();
        assert!(!message.contains("canary"), "{message}");
    }
}
