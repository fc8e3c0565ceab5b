//! Slack: events, the handshake, and forms without an id.

use hookgate_signature::{Delivery, Headers};
use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use crate::{NOW_MS, read, reading, reason};

fn slack(body: impl AsRef<[u8]>) -> Result<Event, Unreadable> {
    read(Provider::Slack, "", &[], body.as_ref())
}

#[test]
fn an_event_names_itself_its_team_and_its_time() {
    let event = slack(
        r#"{"type":"event_callback","event_id":"Ev9UQ52YNA","team_id":"T1","event_time":1789999999,"event":{"type":"app_mention","event_ts":"1.2"}}"#,
    )
    .unwrap();
    assert_eq!(event.id.as_str(), "Ev9UQ52YNA");
    assert_eq!(event.event_type.unwrap().as_str(), "app_mention");
    assert_eq!(event.account.unwrap().as_str(), "T1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_789_999_999_000);
    assert_eq!((event.object_id, event.mode), (None, Mode::Unknown));
}

#[test]
fn an_event_callback_has_an_id_and_other_envelopes_need_none() {
    for id in ["", r#","event_id":null"#, r#","event_id":"""#, r#","event_id":7"#] {
        let body = format!(r#"{{"type":"event_callback"{id},"event":{{"type":"message"}}}}"#);
        assert_eq!(reason(slack(body)), "missing_event_id", "{id}");
    }
    let long = "x".repeat(300);
    for id in ["a\\u0000", &long] {
        let body = format!(r#"{{"type":"event_callback","event_id":"{id}"}}"#);
        assert_eq!(reason(slack(body)), "bad_event_id");
    }
    let limited = slack(r#"{"type":"app_rate_limited","team_id":"T1","minute_rate_limited":1518467820}"#);
    let limited = limited.unwrap();
    assert!(limited.id_is_digest && limited.given_id().is_none());
    assert_eq!(limited.event_type.unwrap().as_str(), "app_rate_limited");
}

#[test]
fn an_envelope_without_id_is_told_apart_by_its_bytes() {
    let id = |minute: u64| {
        slack(format!(r#"{{"type":"app_rate_limited","minute":{minute}}}"#))
            .unwrap()
            .id
    };
    assert_eq!(id(1), id(1));
    assert_ne!(id(1), id(2));
}

#[test]
fn the_challenge_of_a_new_url_is_sent_back() {
    let body = br#"{"token":"x","challenge":"3eZ\"b\u00e9","type":"url_verification"}"#;
    let reading = reading(Provider::Slack, "", &[], body).unwrap();
    let answer = reading.handshake.unwrap();
    assert_eq!((answer.status, answer.content_type), (200, "application/json"));
    assert_eq!(answer.body, "{\"challenge\":\"3eZ\\\"bé\"}");
    assert_eq!(
        reading.events[0].event_type.as_ref().unwrap().as_str(),
        "url_verification"
    );
}

#[test]
fn a_challenge_that_is_no_short_text_is_not_repeated() {
    let long = format!("\"{}\"", "x".repeat(256));
    for challenge in ["null", "\"\"", "7", "{}", "[\"a\"]", r#""a\u0007""#, &long] {
        let body = format!(r#"{{"type":"url_verification","challenge":{challenge}}}"#);
        let outcome = reading(Provider::Slack, "", &[], body.as_bytes());
        assert_eq!(outcome.unwrap_err().reason(), "malformed_body", "{challenge}");
    }
}

#[test]
fn only_an_envelope_of_its_type_is_a_handshake() {
    let body = br#"{"type":"event_callback","event_id":"Ev1","challenge":"abc","event":{"type":"url_verification"}}"#;
    assert_eq!(reading(Provider::Slack, "", &[], body).unwrap().handshake, None);
}

#[test]
fn a_challenge_is_answered_only_to_slack() {
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: Headers::from_iter([
            ("X-Slack-Request-Timestamp", &b"1790000010"[..]),
            (
                "X-Slack-Signature",
                b"v0=0000000000000000000000000000000000000000000000000000000000000000",
            ),
        ]),
        body: bytes::Bytes::from_static(br#"{"type":"url_verification","challenge":"abc"}"#),
    };
    let keys = Provider::Slack.dev_keys();
    let refusal = Provider::Slack
        .verify(&keys, delivery, NOW_MS / 1000)
        .unwrap_err();
    assert_eq!(refusal.reason(), "bad_signature");
}

#[test]
fn a_command_is_a_form_without_id_and_type() {
    let form = "token=x&team_id=T0001&command=%2Fweather&text=94070+caf%C3%A9&trigger_id=1.2.3";
    let event = slack(form).unwrap();
    assert!(event.id_is_digest);
    assert_eq!(event.event_type, None);
    assert_eq!(event.account.as_ref().unwrap().as_str(), "T0001");
    assert_eq!(&event.body[..], form.as_bytes());
    assert_eq!(event.id, slack(form).unwrap().id);
    assert_ne!(event.id, slack(form.replace("1.2.3", "1.2.4")).unwrap().id);
}

#[test]
fn an_interaction_is_a_form_with_json_in_it() {
    let event =
        slack("payload=%7B%22type%22%3A%22block_actions%22%2C%22team%22%3A%7B%22id%22%3A%22T9%22%7D%7D")
            .unwrap();
    assert_eq!(event.account.unwrap().as_str(), "T9");
    assert_eq!((event.event_type, event.id_is_digest), (None, true));
}

#[test]
fn a_form_that_is_neither_is_malformed() {
    for body in [
        "",
        "a=b",
        "payload=",
        "payload=%7B",
        "payload=[]",
        "payload={}&payload={}",
        "command=a&command=b",
        "command=a&payload={}",
        "command=a&team_id=T1&team_id=T2",
        "payload={%22team%22:{%22id%22:1,%22id%22:2}}",
        "[]",
    ] {
        assert_eq!(reason(slack(body)), "malformed_body", "{body}");
    }
}

#[test]
fn fields_that_do_not_fit_are_dropped() {
    let event = slack(
        r#"{"type":"event_callback","event_id":"Ev1","team_id":{},"event_time":"soon","event":{"type":["a"]}}"#,
    )
    .unwrap();
    assert_eq!(event.dropped, [Dropped::Type, Dropped::Account, Dropped::Time]);
    let body = "\u{feff}\r\n {\"type\":\"event_callback\",\"event_id\":\"Ev1\"}";
    assert_eq!(slack(body).unwrap().id.as_str(), "Ev1");
}
