//! Mercado Pago: what is signed is a text of the query and two headers, and the body may be anybody's.

mod body;

use hookgate_signature::Encoding;
use hookgate_webhook::{Event, Provider};

use crate::{NOW_MS, keys, verify};

const SECRET: &str = "a-secret-of-your-integrations";
const BODY: &str =
    r#"{"action":"payment.created","data":{"id":"134"},"id":12345678901,"live_mode":true,"type":"payment"}"#;

/// A delivery whose manifest is signed as given.
struct Case<'a> {
    url: Option<&'a str>,
    request_id: Option<&'a str>,
    manifest: &'a str,
    /// The header, in which `*` stands for the digest.
    header: &'a str,
    body: &'a str,
}

const CASE: Case<'static> = Case {
    url: Some("https://x.example/in?data.id=134&type=payment"),
    request_id: Some("r1"),
    manifest: "id:134;request-id:r1;ts:1790000010;",
    header: "ts=1790000010,v1=*",
    body: BODY,
};

impl Case<'_> {
    fn event(&self) -> Result<Event, &'static str> {
        let keys = keys(Provider::MercadoPago, &["another-secret", SECRET]);
        let signing = crate::keys(Provider::MercadoPago, &[SECRET]);
        let digest = signing
            .sign_text(Encoding::Hex, self.manifest.as_bytes())
            .unwrap();
        let header = self.header.replace('*', &digest);
        let mut headers = vec![("X-Signature", &*header)];
        headers.extend(self.request_id.map(|id| ("X-Request-Id", id)));
        verify(
            Provider::MercadoPago,
            &keys,
            self.url,
            &headers,
            self.body.as_bytes(),
        )
    }

    fn outcome(&self) -> &'static str {
        self.event().map_or_else(|reason| reason, |_| "ok")
    }
}

fn header(header: &str) -> &'static str {
    Case { header, ..CASE }.outcome()
}

fn signed(url: &str, manifest: &str) -> &'static str {
    Case {
        url: Some(url),
        manifest,
        ..CASE
    }
    .outcome()
}

#[test]
fn items_come_in_any_order_with_spaces_and_in_any_case() {
    for good in [
        "ts=1790000010,v1=*",
        "v1=*,ts=1790000010",
        " ts = 1790000010 , v1 = * ",
        "TS=1790000010,V1=*",
        "ts=1790000010,v1=*,v2=abc,x,=,",
        "ts=1790000010,v1=short,v1=*",
    ] {
        assert_eq!(header(good), "ok", "{good}");
    }
}

#[test]
fn a_header_without_one_time_and_a_signature_is_malformed() {
    let upper = "A".repeat(64);
    for bad in [
        "this-is-garbage",
        "ts=1790000010",
        "v1=*",
        "ts=1790000010,v2=*",
        "ts=,v1=*",
        "ts=abc,v1=*",
        "ts=+1790000010,v1=*",
        "ts=-1,v1=*",
        "ts=1790000010.5,v1=*",
        "ts=99999999999999999999,v1=*",
        "ts=1790000010,ts=1790000010,v1=*",
        "ts=1790000010,v1=",
        "ts=1790000010,v1=*0",
        "ts=1790000010,v1=sha256=*",
        "ts=1790000010;v1=*",
        "ts=1790000010,v1=GnCdQ0Ge2gXd4yOTykP2fGfO4hmbJFMkVJlyLsyZfko=",
        &format!("ts=1790000010,v1={upper}"),
        &format!("ts=1790000010{}", ",v1=*".repeat(21)),
    ] {
        assert_eq!(header(bad), "malformed_signature", "{bad}");
    }
    for length in 1..64 {
        assert_eq!(
            header(&format!("ts=1790000010,v1={}", "a".repeat(length))),
            "malformed_signature"
        );
    }
    assert_eq!(header(""), "missing_signature");
    assert_eq!(header(&format!("ts=1790000010{}", ",v1=*".repeat(20))), "ok");
}

#[test]
fn a_time_of_more_than_eleven_digits_is_in_milliseconds() {
    let at = |ts: &str, tolerance: u64| {
        let manifest = format!("id:134;request-id:r1;ts:{ts};");
        let signing = keys(Provider::MercadoPago, &[SECRET]);
        let digest = signing.sign_text(Encoding::Hex, manifest.as_bytes()).unwrap();
        let limit = Provider::MercadoPago
            .knowledge()
            .tolerance
            .with_limit(std::time::Duration::from_secs(tolerance));
        let checked = Provider::MercadoPago.keys(&[SECRET.into()], limit).unwrap();
        let header = format!("ts={ts},v1={digest}");
        let headers = [("x-signature", &*header), ("x-request-id", "r1")];
        verify(
            Provider::MercadoPago,
            &checked,
            CASE.url,
            &headers,
            BODY.as_bytes(),
        )
        .map_or_else(|reason| reason, |_| "ok")
    };
    let now = NOW_MS / 1000;
    assert_eq!(at(&now.to_string(), 0), "ok");
    assert_eq!(at(&NOW_MS.to_string(), 0), "ok");
    assert_eq!(at(&(now - 301).to_string(), 300), "stale_timestamp");
    assert_eq!(at(&(NOW_MS - 301_000).to_string(), 300), "stale_timestamp");
    assert_eq!(at(&(NOW_MS + 302_000).to_string(), 300), "future_timestamp");
    assert_eq!(
        at("99999999999", 300),
        "future_timestamp",
        "eleven digits are seconds"
    );
    assert_eq!(
        at("100000000000", 300),
        "stale_timestamp",
        "twelve digits are milliseconds"
    );
    assert_eq!(header("ts=1790000010,v1=*"), "ok", "and nobody asked for a check");
}

#[test]
fn parts_that_are_absent_are_left_out() {
    let none = Case {
        request_id: None,
        ..CASE
    };
    assert_eq!(
        Case {
            manifest: "id:134;ts:1790000010;",
            ..none
        }
        .outcome(),
        "ok"
    );
    let empty = Case {
        request_id: Some(""),
        ..CASE
    };
    assert_eq!(
        Case {
            manifest: "id:134;ts:1790000010;",
            ..empty
        }
        .outcome(),
        "ok"
    );
    let without = "request-id:r1;ts:1790000010;";
    for url in [
        None,
        Some("https://x.example/in"),
        Some("https://x.example/in?type=payment&data.id="),
    ] {
        assert_eq!(
            Case {
                url,
                manifest: without,
                ..CASE
            }
            .outcome(),
            "ok",
            "{url:?}"
        );
        assert_eq!(Case { url, ..CASE }.outcome(), "bad_signature", "{url:?}");
    }
    assert_eq!(
        Case {
            manifest: without,
            ..CASE
        }
        .outcome(),
        "bad_signature"
    );
    assert_eq!(
        Case {
            manifest: "id:134;request-id:r1;ts:1790000010",
            ..CASE
        }
        .outcome(),
        "bad_signature"
    );
}

#[test]
fn the_querys_id_is_decoded_and_may_be_signed_in_lower_case() {
    let ts = ";request-id:r1;ts:1790000010;";
    for (query, id) in [
        ("data.id=134", "134"),
        ("type=payment&data.id=134", "134"),
        ("data%2Eid=134", "134"),
        ("data.id=1%334", "134"),
        ("data.id=a%20b%2Bc", "a b+c"),
        ("data.id=a+b", "a+b"),
        ("data.id=ORD01JQ", "ORD01JQ"),
        ("data.id=ORD01JQ", "ord01jq"),
        ("data.id=%C3%89A", "Éa"),
        ("xdata.id=9&data.id=134&data_id=8", "134"),
    ] {
        let url = format!("https://x.example/in?{query}");
        assert_eq!(signed(&url, &format!("id:{id}{ts}")), "ok", "{query}");
    }
    for (query, id) in [
        ("data.id=ord01jq", "ORD01JQ"),
        ("data.id=ORD01JQ", "Ord01jq"),
        ("data.ID=134", "134"),
        ("id=134", "134"),
    ] {
        let url = format!("https://x.example/in?{query}");
        assert_eq!(signed(&url, &format!("id:{id}{ts}")), "bad_signature", "{query}");
    }
}

#[test]
fn an_id_that_two_readers_would_read_differently_is_refused() {
    for query in [
        "data.id=134&data.id=134",
        "data.id=134&data.id=135",
        "data.id=134&data%2eid=9",
    ] {
        let url = format!("https://x.example/in?{query}");
        assert_eq!(signed(&url, CASE.manifest), "malformed_signature", "{query}");
    }
    let moved = Case {
        url: Some("https://x.example/in?data.id=134%3Brequest-id:r1"),
        request_id: None,
        ..CASE
    };
    assert_eq!(
        moved.outcome(),
        "malformed_signature",
        "the same text, and another object"
    );
}

#[test]
fn a_repeated_request_id_is_refused() {
    let signing = keys(Provider::MercadoPago, &[SECRET]);
    let digest = signing
        .sign_text(Encoding::Hex, CASE.manifest.as_bytes())
        .unwrap();
    let header = format!("ts=1790000010,v1={digest}");
    let headers = [
        ("x-signature", &*header),
        ("x-request-id", "r1"),
        ("x-request-id", "r1"),
    ];
    let outcome = verify(
        Provider::MercadoPago,
        &signing,
        CASE.url,
        &headers,
        BODY.as_bytes(),
    );
    assert_eq!(outcome.unwrap_err(), "malformed_signature");
}

#[test]
fn an_old_ipn_call_has_no_signature_and_is_refused() {
    let signing = keys(Provider::MercadoPago, &[SECRET]);
    let url = Some("https://x.example/in?topic=payment&id=134");
    let outcome = verify(
        Provider::MercadoPago,
        &signing,
        url,
        &[],
        br#"{"resource":"134","topic":"payment"}"#,
    );
    assert_eq!(outcome.unwrap_err(), "missing_signature");
}
