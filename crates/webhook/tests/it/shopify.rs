//! Shopify: two spellings of every header, none of them signed.

use hookgate_signature::{Delivery, Headers, Keys, Tolerance};
use hookgate_webhook::{Dropped, Mode, Provider};
use secrecy::SecretString;

use crate::read;

const HEADERS: [(&str, &[u8]); 5] = [
    ("X-Shopify-Webhook-Id", b"b54557e4"),
    ("X-Shopify-Event-Id", b"98880550"),
    ("X-Shopify-Topic", b"orders/create"),
    ("X-Shopify-Shop-Domain", b"fake-store.myshopify.com"),
    ("X-Shopify-Triggered-At", b"2026-09-21T15:06:40.123456789Z"),
];

#[test]
fn the_delivery_is_the_event_and_the_body_names_the_object() {
    let event = read(Provider::Shopify, "", &HEADERS, br#"{"id":820982911946154508}"#).unwrap();
    assert_eq!(event.id.as_str(), "b54557e4");
    assert_eq!(event.event_type.unwrap().as_str(), "orders/create");
    assert_eq!(event.object_id.unwrap().as_str(), "820982911946154508");
    assert_eq!(event.account.unwrap().as_str(), "fake-store.myshopify.com");
    let time = event.provider_time.unwrap();
    assert_eq!(
        (&*time.text, time.unix_ms),
        ("2026-09-21T15:06:40.123456789Z", 1_790_003_200_123)
    );
}

#[test]
fn an_unsigned_header_does_not_make_a_test() {
    let mut headers = HEADERS.to_vec();
    headers.push(("X-Shopify-Test", b"true"));
    let event = read(Provider::Shopify, "", &headers, b"{}").unwrap();
    assert_eq!(event.mode, Mode::Unknown);
}

#[test]
fn a_time_that_is_none_is_dropped() {
    for time in [
        &b"yesterday"[..],
        b"1969-12-31T23:59:59Z",
        b"2026-09-21",
        b"2026-13-01T00:00:00Z",
        b"\xff",
    ] {
        let mut headers = HEADERS.to_vec();
        headers[4].1 = time;
        let event = read(Provider::Shopify, "", &headers, b"{}").unwrap();
        assert_eq!(
            (event.provider_time, &*event.dropped),
            (None, &[Dropped::Time][..])
        );
    }
}

#[test]
fn the_two_spellings_of_the_headers_are_not_mixed() {
    let body = b"{}";
    let secret = SecretString::from("secret");
    let keys = Keys::new(Provider::Shopify.knowledge().scheme, &[secret], Tolerance::Off).unwrap();
    let digest = keys.sign("", 0, body).remove(0).1;
    let headers: [(&str, &[u8]); 4] = [
        ("Shopify-Hmac-Sha256", digest.as_bytes()),
        ("X-Shopify-Webhook-Id", b"forged"),
        ("Shopify-Webhook-Id", b"genuine"),
        ("X-Shopify-Topic", b"forged"),
    ];
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: Headers::from_iter(headers),
        body: bytes::Bytes::from_static(body),
    };
    let event = Provider::Shopify
        .read(&keys.verify(delivery, 0).unwrap())
        .unwrap()
        .events
        .remove(0);
    assert_eq!((event.id.as_str(), event.event_type), ("genuine", None));
}
