//! PayPal: a label that is signed and never sent, a CRC in place of the body, and a certificate to be fetched.

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers, Keys};
use hookgate_webhook::{Dropped, Provider, Unreadable};
use secrecy::{ExposeSecret, SecretString};

use crate::{NOW_MS, SENDING, open, read, reason, word};

const CERTIFICATE: &str = "Paypal-Cert-Url";

#[test]
fn an_event_stands_in_its_body() {
    let event = read(Provider::Paypal, "", &[], br#"{"id":"WH-1","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"5O1"},"create_time":"2026-09-21T14:13:20.456Z"}"#).unwrap();
    assert_eq!(event.id.as_str(), "WH-1");
    assert_eq!(event.event_type.unwrap().as_str(), "PAYMENT.CAPTURE.COMPLETED");
    assert_eq!(event.object_id.unwrap().as_str(), "5O1");
    assert_eq!(event.provider_time.unwrap().unix_ms, 1_790_000_000_456);
}

#[test]
fn ids_and_fields_are_judged_as_everywhere() {
    let outcome = |body: &str| reason(read(Provider::Paypal, "", &[], body.as_bytes()));
    assert_eq!(outcome("{}"), "missing_event_id");
    assert_eq!(outcome(r#"{"id":7}"#), "missing_event_id");
    assert_eq!(outcome(r#"{"id":"a\u0000"}"#), "bad_event_id");
    assert_eq!(outcome(r#"{"id":"a","id":"a"}"#), "malformed_body");
    let event: Result<_, Unreadable> = read(
        Provider::Paypal,
        "",
        &[],
        br#"{"id":"a","event_type":[],"resource":{"id":{}},"create_time":"soon"}"#,
    );
    assert_eq!(
        event.unwrap().dropped,
        [Dropped::Type, Dropped::ObjectId, Dropped::Time]
    );
}

/// Judges a signed sample with one header changed; `None` leaves it out.
fn changed(name: &str, to: Option<&str>) -> &'static str {
    let provider = Provider::Paypal;
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let signed = provider.sign(&provider.dev_keys(), &sample, &SENDING);
    assert!(
        name.is_empty() || signed.headers.iter().any(|(own, _)| *own == name),
        "{name}"
    );
    let headers: Vec<_> = signed
        .headers
        .iter()
        .filter_map(|(own, value)| match (*own == name, to) {
            (true, to) => to.map(|to| (*own, to.as_bytes())),
            (false, _) => Some((*own, value.as_bytes())),
        })
        .collect();
    word(open(provider, crate::URL, &headers, &signed.body))
}

#[test]
fn transmission_id_and_time_are_signed() {
    assert_eq!(changed("", None), "ok");
    for name in ["Paypal-Transmission-Id", "Paypal-Transmission-Time"] {
        assert_eq!(changed(name, Some("other")), "bad_signature", "{name}");
        assert_eq!(changed(name, Some("")), "missing_signature", "{name}");
        assert_eq!(changed(name, None), "missing_signature", "{name}");
    }
}

#[test]
fn one_algorithm_is_accepted_and_has_to_be_named() {
    let name = "Paypal-Auth-Algo";
    assert_eq!(changed(name, None), "missing_signature");
    for other in [
        "SHA1withRSA",
        "SHA512withRSA",
        "sha256withrsa",
        "SHA256withRSA ",
        "none",
    ] {
        assert_eq!(changed(name, Some(other)), "malformed_signature", "{other}");
    }
}

#[test]
fn a_signature_is_base64() {
    let name = "Paypal-Transmission-Sig";
    assert_eq!(changed(name, None), "missing_signature");
    assert_eq!(changed(name, Some("AAAA")), "bad_signature");
    for wrong in ["=", "not base64", "AAA", "_-_-"] {
        assert_eq!(changed(name, Some(wrong)), "malformed_signature", "{wrong}");
    }
}

#[test]
fn any_configured_webhook_id_may_be_the_signed_one() {
    let provider = Provider::Paypal;
    let dev = provider.dev_secrets();
    let key = dev[1].expose_secret();
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let signed = provider.sign(&provider.dev_keys(), &sample, &SENDING);
    let outcome = |secrets: &[&str]| {
        let secrets: Vec<_> = secrets.iter().copied().map(SecretString::from).collect();
        let keys = provider.keys(&secrets, provider.knowledge().tolerance).unwrap();
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: signed
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect(),
            body: signed.body.clone(),
        };
        let verified = provider.verify(&keys, delivery, SENDING.now);
        verified
            .map(|verified| verified.slot())
            .map_err(|refusal| refusal.reason())
    };
    assert_eq!(outcome(&["other", "hookgate_dev_paypal", key]), Ok(1));
    assert_eq!(outcome(&[key, "hookgate_dev_paypal"]), Ok(1));
    assert_eq!(outcome(&["other", key]), Err("bad_signature"));
    assert_eq!(outcome(&[key]), Err("bad_signature"));
    assert_eq!(outcome(&["hookgate_dev_paypal"]), Err("bad_signature"));
}

#[test]
fn a_label_alone_needs_the_key_that_the_delivery_names() {
    let provider = Provider::Paypal;
    let label = [SecretString::from("hookgate_dev_paypal")];
    let keys = provider.keys(&label, provider.knowledge().tolerance).unwrap();
    assert!(keys.needs_a_named_key() && !keys.can_sign());
    assert!(!provider.dev_keys().needs_a_named_key());
    let spki = public_half();
    let named: Keys = keys.naming(&spki).unwrap();
    let sample = provider.sample(None, 1, NOW_MS).unwrap();
    let signed = provider.sign(&provider.dev_keys(), &sample, &SENDING);
    let verdict = |keys: &Keys, body: Bytes| {
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: signed
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect(),
            body,
        };
        provider
            .verify(keys, delivery, 0)
            .err()
            .map(|refusal| refusal.reason())
    };
    assert_eq!(verdict(&named, signed.body.clone()), None);
    assert_eq!(verdict(&keys, signed.body.clone()), Some("bad_signature"));
    assert_eq!(
        verdict(&named, Bytes::from_static(b"{\"id\":\"WH-2\"}")),
        Some("bad_signature")
    );
    assert!(keys.naming(b"no key").is_err());
}

/// The public half of the published key, as a certificate holds it.
fn public_half() -> Vec<u8> {
    use base64::Engine;
    let text = include_str!("../keys/paypal_dev.pub").trim_end();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[test]
fn a_certificate_is_fetched_from_paypal_alone() {
    let url = |value: &'static str| {
        let headers: Headers<'_> = [("paypal-cert-url", value.as_bytes())].into_iter().collect();
        Provider::Paypal.certificate_url(&headers)
    };
    for good in [
        "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-5edc0ebc",
        "https://api-m.paypal.com/v1/notifications/certs/CERT-1",
        "https://api.sandbox.paypal.com/v1/notifications/certs/CERT_1",
        "https://api-m.sandbox.paypal.com/v1/notifications/certs/a",
    ] {
        assert_eq!(url(good), Some(good));
    }
    for bad in [
        "",
        "https://",
        "https://api.paypal.com",
        "https://api.paypal.com/",
        "https://api.paypal.com/v1/notifications/certs/",
        "https://api.paypal.com/v1/notifications/certs/a/b",
        "https://api.paypal.com/v1/notifications/certs/..",
        "https://api.paypal.com/v1/notifications/certs/../../x",
        "https://api.paypal.com/v1/notifications/certs/a?x",
        "https://api.paypal.com/v1/notifications/certs/a#x",
        "https://api.paypal.com/v1/notifications/certs/a%2f",
        "https://api.paypal.com/v1/notifications/certs/a ",
        "https://api.paypal.com/files/v1/notifications/certs/a",
        "http://api.paypal.com/v1/notifications/certs/a",
        "HTTPS://api.paypal.com/v1/notifications/certs/a",
        "https://API.paypal.com/v1/notifications/certs/a",
        "https://api.paypal.com./v1/notifications/certs/a",
        "https://api.paypal.com:443/v1/notifications/certs/a",
        "https://x@api.paypal.com/v1/notifications/certs/a",
        "https://api.paypal.com@evil.example/v1/notifications/certs/a",
        "https://api.paypal.com.evil.example/v1/notifications/certs/a",
        "https://evil.example/api.paypal.com/v1/notifications/certs/a",
        "https://evil-api.paypal.com/v1/notifications/certs/a",
        "https://paypal.com/v1/notifications/certs/a",
        "https:///api.paypal.com/v1/notifications/certs/a",
        "https://api.paypal.com\\v1/notifications/certs/a",
        "//api.paypal.com/v1/notifications/certs/a",
        "file:///v1/notifications/certs/a",
    ] {
        assert_eq!(url(bad), None, "{bad}");
    }
    let long = format!(
        "https://api.paypal.com/v1/notifications/certs/{}",
        "a".repeat(129)
    );
    assert_eq!(url(long.leak()), None);
}

#[test]
fn a_certificate_is_named_once_and_by_paypal_only() {
    let good = b"https://api.paypal.com/v1/notifications/certs/a".as_slice();
    let twice: Headers<'_> = [(CERTIFICATE, good), (CERTIFICATE, good)].into_iter().collect();
    assert_eq!(Provider::Paypal.certificate_url(&twice), None);
    assert_eq!(Provider::Paypal.certificate_url(&Headers::default()), None);
    let once: Headers<'_> = [(CERTIFICATE, good)].into_iter().collect();
    for provider in Provider::ALL {
        let names = provider.certificate_url(&once).is_some();
        assert_eq!(names, provider == Provider::Paypal);
    }
}
