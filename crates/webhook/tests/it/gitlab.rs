//! GitLab: a token or a signature, and an id that older versions do not send.

use hookgate_webhook::{Event, Mode, Provider};

use crate::{NOW_MS, keys, read, reason, verify};

const MERGE: &[u8] =
    br#"{"object_kind":"merge_request","object_attributes":{"id":9007199254740993,"iid":1}}"#;

fn gitlab(headers: &[(&str, &[u8])], body: &[u8]) -> Event {
    read(Provider::Gitlab, "", headers, body).unwrap()
}

#[test]
fn id_type_and_instance_come_from_headers_and_the_object_from_the_body() {
    let headers: [(&str, &[u8]); 5] = [
        ("idempotency-key", b"key-1"),
        ("X-Gitlab-Event", b"Merge Request Hook"),
        ("X-Gitlab-Instance", b"https://gitlab.example.com"),
        ("X-Gitlab-Event-UUID", b"shared"),
        ("X-Gitlab-Webhook-UUID", b"random"),
    ];
    let event = gitlab(&headers, MERGE);
    assert_eq!((event.id.as_str(), event.id_is_digest), ("key-1", false));
    assert_eq!(event.event_type.unwrap().as_str(), "Merge Request Hook");
    assert_eq!(event.object_id.unwrap().as_str(), "9007199254740993");
    assert_eq!(event.account.unwrap().as_str(), "https://gitlab.example.com");
    assert_eq!((event.provider_time, event.mode), (None, Mode::Unknown));
    assert_eq!(gitlab(&headers, br#"{"object_kind":"push"}"#).object_id, None);
}

#[test]
fn without_a_key_the_bytes_and_the_event_are_the_identity() {
    let id = |event: &[u8], uuid: &[u8], body: &[u8]| {
        let event = gitlab(
            &[("X-Gitlab-Event", event), ("X-Gitlab-Webhook-UUID", uuid)],
            body,
        );
        assert!(event.id_is_digest);
        event.id
    };
    let first = id(b"Issue Hook", b"1", MERGE);
    assert_eq!(first, id(b"Issue Hook", b"2", MERGE), "another attempt");
    assert_ne!(first, id(b"Confidential Issue Hook", b"1", MERGE));
    assert_ne!(first, id(b"Issue Hook", b"1", b"{}"));
    assert!(gitlab(&[("Idempotency-Key", b"")], MERGE).id_is_digest);
    let twice: [(&str, &[u8]); 2] = [("Idempotency-Key", b"a"), ("Idempotency-Key", b"b")];
    assert_eq!(reason(read(Provider::Gitlab, "", &twice, MERGE)), "bad_event_id");
    let long: [(&str, &[u8]); 1] = [("Idempotency-Key", &[b'x'; 300])];
    assert_eq!(reason(read(Provider::Gitlab, "", &long, MERGE)), "bad_event_id");
    let broken: [(&str, &[u8]); 1] = [("Idempotency-Key", b"\xff")];
    assert_eq!(reason(read(Provider::Gitlab, "", &broken, MERGE)), "bad_event_id");
}

#[test]
fn a_signed_delivery_is_named_by_what_is_signed() {
    let headers: [(&str, &[u8]); 2] = [("Idempotency-Key", b"forged"), ("X-Gitlab-Event", b"Push Hook")];
    let event = read(Provider::GitlabSigned, "key-1", &headers, MERGE).unwrap();
    assert_eq!(event.id.as_str(), "key-1");
    assert_eq!(event.event_type.unwrap().as_str(), "Push Hook");
    assert_eq!(event.object_id.unwrap().as_str(), "9007199254740993");
}

#[test]
fn a_source_with_signatures_takes_no_token() {
    let token = "whsec_aG9va2dhdGUtZGV2LWdpdGxhYi1zaWduaW5nLWtleSE=";
    let keys = keys(Provider::GitlabSigned, &[token]);
    let headers = [("X-Gitlab-Token", token), ("Idempotency-Key", "key-1")];
    let outcome = verify(Provider::GitlabSigned, &keys, None, &headers, MERGE);
    assert_eq!(outcome.unwrap_err(), "missing_signature");
    let signed = keys.sign("key-1", NOW_MS / 1000, b"{}");
    let mut headers: Vec<_> = signed.iter().map(|(name, value)| (*name, &**value)).collect();
    headers.push(("X-Gitlab-Token", token));
    let outcome = verify(Provider::GitlabSigned, &keys, None, &headers, MERGE);
    assert_eq!(
        outcome.unwrap_err(),
        "bad_signature",
        "a token does not mend a signature"
    );
}

#[test]
fn the_token_counts_whole() {
    let keys = keys(Provider::Gitlab, &["new-token", "old-token"]);
    let outcome = |value: &str| {
        let headers = [("x-gitlab-token", value)];
        verify(Provider::Gitlab, &keys, None, &headers, MERGE).map_or_else(|reason| reason, |_| "ok")
    };
    for right in ["new-token", "old-token"] {
        assert_eq!(outcome(right), "ok");
    }
    for wrong in ["new-toke", "new-token1", "NEW-TOKEN", " new-token"] {
        assert_eq!(outcome(wrong), "bad_signature", "{wrong}");
    }
    assert_eq!(outcome(""), "missing_signature");
}

#[test]
fn no_token_and_no_name_of_the_gateways_own_headers_is_passed_on() {
    for provider in [Provider::Gitlab, Provider::GitlabSigned] {
        for name in provider.knowledge().forwarded_headers {
            assert!(
                name.starts_with("X-Gitlab-") && *name != "X-Gitlab-Token",
                "{name}"
            );
        }
    }
}
