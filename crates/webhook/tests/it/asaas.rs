//! Asaas: a token, an id of which only the end tells events apart, and an object under a name that depends on the type.

use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use crate::{keys, read, reason, verify};

fn asaas(body: &str) -> Result<Event, Unreadable> {
    read(Provider::Asaas, "", &[], body.as_bytes())
}

fn with_time(json: &str) -> Event {
    asaas(&format!(r#"{{"id":"evt_1&1","dateCreated":{json}}}"#)).unwrap()
}

fn object(fields: &str) -> Option<String> {
    let event = asaas(&format!(r#"{{"id":"evt_1&1","event":"X"{fields}}}"#)).unwrap();
    event.object_id.map(|id| id.as_str().to_owned())
}

#[test]
fn the_id_counts_with_what_stands_behind_its_ampersand() {
    let id = |number: u32| {
        let body =
            format!(r#"{{"id":"evt_05b708f961d739ea7eba7e4db318f621&{number}","event":"PAYMENT_CREATED"}}"#);
        asaas(&body).unwrap().id
    };
    assert_eq!(
        id(12_900_592).as_str(),
        "evt_05b708f961d739ea7eba7e4db318f621&12900592"
    );
    assert_ne!(id(12_900_592), id(12_900_593));
    let escaped = asaas(r#"{"id":"evt_1\u002612900592"}"#).unwrap();
    assert_eq!(escaped.id.as_str(), "evt_1&12900592");
}

#[test]
fn without_an_id_the_bytes_and_the_event_are_the_identity() {
    let body = |event: &str, value: &str| {
        format!(r#"{{"event":"{event}","payment":{{"id":"pay_1","value":{value}}}}}"#)
    };
    let id = |body: &str| {
        let event = asaas(body).unwrap();
        assert!(event.id_is_digest);
        event.id
    };
    let received = body("PAYMENT_RECEIVED", "10.00");
    assert_eq!(id(&received), id(&received));
    assert_ne!(
        id(&received),
        id(&body("PAYMENT_RECEIVED", "10.0")),
        "one byte less"
    );
    assert_ne!(id(&received), id(&body("PAYMENT_CONFIRMED", "10.00")));
    for json in ["null", "\"\"", "5", "{}"] {
        assert!(
            asaas(&format!(r#"{{"id":{json}}}"#)).unwrap().id_is_digest,
            "{json}"
        );
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(300));
    assert_eq!(reason(asaas(&long)), "bad_event_id");
    assert_eq!(reason(asaas(r#"{"id":"a\u0000"}"#)), "bad_event_id");
    assert_eq!(reason(asaas(r#"{"id":"a","id":"b"}"#)), "malformed_body");
}

#[test]
fn the_object_is_the_one_beside_the_account() {
    for (fields, id) in [
        (r#","account":{"id":"a"},"payment":{"id":"pay_1"}"#, Some("pay_1")),
        (
            r#","transfer":{"object":"transfer","id":"t"},"account":{"id":"a"}"#,
            Some("t"),
        ),
        (
            r#","anythingNew":{"id":9007199254740993}"#,
            Some("9007199254740993"),
        ),
        (
            r#","checkout":{"id":"c","customer":{"id":"no"}},"list":[{"id":"no"}],"note":"{}""#,
            Some("c"),
        ),
        (r#","accou\u006et":{"id":"a"}"#, None),
        (r#","account":{"id":"a"}"#, None),
        (r#","payment":{"id":null}"#, None),
        (r#","payment":{}"#, None),
        (r#","payment":{"id":"p"},"transfer":{"id":"t"}"#, None),
        (r#","payment":"pay_1""#, None),
        ("", None),
    ] {
        assert_eq!(object(fields).as_deref(), id, "{fields}");
    }
}

#[test]
fn an_object_with_two_ids_is_malformed() {
    let body = r#"{"id":"evt_1&1","payment":{"id":"pay_1","id":"pay_2"}}"#;
    assert_eq!(reason(asaas(body)), "malformed_body");
}

#[test]
fn the_account_is_kept_and_there_is_no_mode() {
    let event = asaas(r#"{"id":"evt_1&1","account":{"id":"47ed","ownerId":null}}"#).unwrap();
    assert_eq!(
        (event.account.unwrap().as_str(), event.mode),
        ("47ed", Mode::Unknown)
    );
    assert_eq!(asaas(r#"{"id":"evt_1&1","account":null}"#).unwrap().account, None);
}

#[test]
fn times_are_those_of_brasilia() {
    for (json, unix_ms) in [
        ("\"2026-09-21 11:13:20\"", 1_790_000_000_000),
        ("\"1969-12-31 21:00:00\"", 0),
        ("\"9999-12-31 20:59:59\"", 253_402_300_799_000),
    ] {
        let time = with_time(json).provider_time.unwrap();
        assert_eq!((&*time.text, time.unix_ms), (json.trim_matches('"'), unix_ms));
    }
}

#[test]
fn times_out_of_range_or_of_another_form_are_dropped() {
    for json in [
        "\"1969-12-31 20:59:59\"",
        "\"9999-12-31 21:00:00\"",
        "\"2026-09-21\"",
        "\"2026-09-31 11:13:20\"",
        "\"2026-09-21 24:13:20\"",
        "\"2026-09-21 11:13:20Z\"",
        "\"21/09/2026 11:13:20\"",
        "\" 2026-09-21 11:13:20\"",
        "\"\"",
        "1790000000",
        "false",
    ] {
        let event = with_time(json);
        assert_eq!(
            (event.provider_time, &*event.dropped),
            (None, &[Dropped::Time][..]),
            "{json}"
        );
    }
    assert_eq!(with_time("null").dropped, []);
}

#[test]
fn a_byte_order_mark_and_line_ends_are_kept_and_read_over() {
    let body = "\u{feff}{\r\n  \"id\": \"evt_1&1\",\r\n  \"payment\": {\"id\": \"pay_1\"}\r\n}\r\n";
    let event = asaas(body).unwrap();
    assert_eq!(
        (&event.body[..], event.object_id.unwrap().as_str()),
        (body.as_bytes(), "pay_1")
    );
}

#[test]
fn depth_costs_no_stack_in_the_search_for_the_object() {
    let deep = format!("{}1{}", r#"{"id":"#.repeat(10_000), "}".repeat(10_000));
    assert_eq!(object(&format!(r#","payment":{deep}"#)), None);
    assert_eq!(
        object(&format!(r#","account":{deep},"payment":{{"id":"pay_1"}}"#)).as_deref(),
        Some("pay_1")
    );
}

#[test]
fn the_token_counts_whole_and_once() {
    let keys = keys(
        Provider::Asaas,
        &[
            "a-new-token-of-32-characters-0001",
            "an-old-token-of-32-characters-001",
        ],
    );
    let outcome = |headers: &[(&str, &str)]| {
        verify(Provider::Asaas, &keys, None, headers, br#"{"id":"evt_1&1"}"#)
            .map_or_else(|reason| reason, |_| "ok")
    };
    let token = "a-new-token-of-32-characters-0001";
    assert_eq!(outcome(&[("Asaas-Access-Token", token)]), "ok");
    assert_eq!(
        outcome(&[("asaas-access-token", "an-old-token-of-32-characters-001")]),
        "ok"
    );
    assert_eq!(outcome(&[]), "missing_signature");
    assert_eq!(outcome(&[("asaas-access-token", "")]), "missing_signature");
    for length in 1..token.len() {
        assert_eq!(
            outcome(&[("asaas-access-token", &token[..length])]),
            "bad_signature",
            "{length}"
        );
    }
    for wrong in [
        &*format!("{token}1"),
        &token.to_uppercase(),
        &format!(" {token}"),
        &format!("Bearer {token}"),
    ] {
        assert_eq!(
            outcome(&[("asaas-access-token", wrong)]),
            "bad_signature",
            "{wrong}"
        );
    }
    let twice = [("asaas-access-token", token), ("asaas-access-token", token)];
    assert_eq!(outcome(&twice), "malformed_signature");
}

#[test]
fn a_busy_source_answers_what_asaas_does_not_take_for_final() {
    let knowledge = Provider::Asaas.knowledge();
    assert!(
        knowledge.client_error_is_final,
        "a 4xx would pause the whole queue"
    );
    assert!(
        !knowledge.forwarded_headers.contains(&"asaas-access-token"),
        "it opens the source"
    );
}
