//! GitHub: everything stands in headers, and the body may be a form.

use hookgate_webhook::{Dropped, Event, Mode, Provider, Unreadable};

use crate::{read, reason};

const DELIVERY: (&str, &[u8]) = ("X-GitHub-Delivery", b"72d3162e-cc78-11e3-81ab-000000000001");

fn github(headers: &[(&str, &[u8])], body: &str) -> Result<Event, Unreadable> {
    let headers: Vec<_> = [DELIVERY].iter().chain(headers).copied().collect();
    read(Provider::Github, "", &headers, body.as_bytes())
}

#[test]
fn id_type_and_installation_come_from_headers() {
    let headers: [(&str, &[u8]); 3] = [
        ("x-github-event", b"push"),
        ("x-github-hook-installation-target-type", b"repository"),
        ("x-github-hook-installation-target-id", b"79929171"),
    ];
    let event = github(&headers, r#"{"id":"not this","action":"opened"}"#).unwrap();
    assert_eq!(event.id.as_str().as_bytes(), DELIVERY.1);
    assert_eq!(event.event_type.unwrap().as_str(), "push");
    assert_eq!(event.account.unwrap().as_str(), "repository:79929171");
    assert_eq!(
        (event.object_id, event.provider_time, event.mode),
        (None, None, Mode::Unknown)
    );
}

#[test]
fn half_an_installation_is_none_and_a_broken_one_is_counted() {
    let kind = ("X-GitHub-Hook-Installation-Target-Type", &b"repository"[..]);
    let id = "X-GitHub-Hook-Installation-Target-ID";
    let event = github(&[kind], "{}").unwrap();
    assert_eq!((event.account, &*event.dropped), (None, &[][..]));
    for broken in [&b"\xff"[..], &[b'1'; 250]] {
        let event = github(&[kind, (id, broken)], "{}").unwrap();
        assert_eq!((event.account, &*event.dropped), (None, &[Dropped::Account][..]));
    }
}

#[test]
fn a_repeated_type_is_dropped() {
    let event = github(&[("X-GitHub-Event", b"push"), ("X-GitHub-Event", b"ping")], "{}").unwrap();
    assert_eq!((event.event_type, &*event.dropped), (None, &[Dropped::Type][..]));
}

#[test]
fn a_form_holds_the_json_in_its_payload() {
    for form in [
        "payload=%7B%22a+b%22%3A%22c%2Bd%22%7D",
        "payload={}&x=%zz",
        "payload={%22a%22:1e%2B2}",
        "payload=%7b%7d",
    ] {
        let event = github(&[("Content-Type", b"application/x-www-form-urlencoded")], form).unwrap();
        assert_eq!(&event.body[..], form.as_bytes(), "the form is kept as it came");
    }
}

#[test]
fn a_form_without_one_json_payload_is_malformed() {
    for body in [
        "payload=",
        "payload=%7B",
        "payload=%FF",
        "payload=[]",
        "payload={%22a%22:1+2}",
        "payload={}&payload={}",
        "x=1&payload={}",
        "Payload={}",
        "%7B%7D",
    ] {
        assert_eq!(reason(github(&[], body)), "malformed_body", "{body}");
    }
}

#[test]
fn the_documented_example_is_genuine_and_no_event() {
    assert_eq!(
        reason(read(Provider::Github, "", &[], b"Hello, World!")),
        "malformed_body"
    );
}
