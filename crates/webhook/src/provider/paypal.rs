//! PayPal.
//!
//! Sources: developer.paypal.com/api/rest/webhooks/rest and the definitions of /api/webhooks/v1. No current official
//! SDK has a verifier.
//!
//! The signature is checked here, without asking PayPal. That takes the webhook's id, which is configured and never
//! sent, and the public key of a certificate to which each delivery points. An address that comes with a request is a
//! stranger's, so only PayPal's own hosts are ever asked; who fetches also checks the certificate. A configured public
//! key takes the certificate's place.

use std::time::Duration;

use hookgate_signature::{
    Algorithm, Encoding, Headers, KeyForm, Keys, Part, Scheme, SignedText, Tolerance, Unsigned, Verified,
};
use sha2::{Digest, Sha256};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::{Definition, Sending, Signed};
use crate::sample::{Sample, Template, nineteen_digits, rfc3339, uuid};
use crate::{Event, Reading, Unreadable, fields};

/// Where certificates may be fetched from: PayPal's two API hosts and their sandbox twins, as public integrations list
/// them. Compared character by character.
const CERTIFICATE_HOSTS: [&str; 4] = [
    "api.paypal.com",
    "api-m.paypal.com",
    "api.sandbox.paypal.com",
    "api-m.sandbox.paypal.com",
];

/// The certificates that public integrations show are for names below this one; which name is not published.
pub(super) const CERTIFICATE_DOMAIN: &str = "paypal.com";

/// The one place on these hosts where PayPal's documentation shows certificates, so that nothing else on them, such
/// as a redirect or a file of a merchant, can pass for one.
const CERTIFICATE_PATH: &str = "/v1/notifications/certs/";

/// Longest name of a certificate in bytes; the documented ones have 36.
const CERTIFICATE_NAME_BYTES_MAX: usize = 128;

const ALGORITHM: (&str, &str) = ("Paypal-Auth-Algo", "SHA256withRSA");
const CERTIFICATE: &str = "Paypal-Cert-Url";
const TRANSMISSION_ID: &str = "Paypal-Transmission-Id";
const TRANSMISSION_TIME: &str = "Paypal-Transmission-Time";

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "paypal",
        title: "PayPal",
        scheme: Scheme::SignedText(SignedText {
            header: "Paypal-Transmission-Sig",
            prefix: "",
            encoding: Encoding::Base64,
            algorithm: Algorithm::RsaPkcs1Sha256,
            key: KeyForm::LabelOrKeyPair,
            timestamp: None,
            parts: &[
                Part::Demand(ALGORITHM.0, ALGORITHM.1),
                Part::Header(TRANSMISSION_ID),
                Part::Text("|"),
                Part::Header(TRANSMISSION_TIME),
                Part::Text("|"),
                Part::Label,
                Part::Text("|"),
                Part::BodyCrc32,
            ],
        }),
        // No tolerance is defined, and whether a retry is signed anew is not told.
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "body `id`",
            event_type: "body `event_type`",
            object: "body `resource.id`",
            time: "body `create_time`",
            account: "",
            mode: "",
        },
        // Not published.
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: false,
        success: Success::Ok,
        // That a retry keeps the body's `id` is unconfirmed; the resend API works on the event's id, which implies it.
        automatic_retries: Some(Duration::from_hours(3 * 24)),
        // By API or from the dashboard; for how long is not told, so a month is assumed.
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "up to 25 times over three days",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        // What is signed is a CRC-32 of the body. That finds an accident and stops nobody: who holds one delivery can
        // write another body of the same CRC. What is about money has to be asked of PayPal's API.
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[
            "Paypal-Transmission-Sig",
            TRANSMISSION_ID,
            TRANSMISSION_TIME,
            CERTIFICATE,
            ALGORITHM.0,
        ],
        // A webhook's id, and a private key so that samples can be signed.
        dev_secrets: &[
            "hookgate_dev_paypal",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDoyJ1UDkit17BwEXT/hnm03zxn6AwcjbqRKPqJG9LsCxG1EgRFe5mBCtxwfsTel+Xl+paJfCdMndjbRf8DUW2t7x+1FlVjZC69TBZ517/XOsFQUtT2CsZ6JvHxJbZOf5hF6jLCOLLa7D373YVUobUPq6GYzzV1ng/zz4A5UfLLyYZ5QEXnDKdGc4O9RvwyY8kXKaIghtmxI1+3S7F8HpolLPFLf2t7XxXx8yh4MKTLzKZXYAtzKMir/l3ZlwhURZzkM2luPJz5Ni4ZupyXhmJiNeKzbsb9QIwh++Oj0IldtMAZDcBUnE8jOtj9CckDhiISaC/bNHrIL+QiRXut49GTAgMBAAECggEAJZkQJDKXFZECpo8t7P7yKxRqrsOsKnPPyutUpTmRFIk90mz3CKahJquzlW3m6/xFEyNUFh+vP0Y4GkPQyl89Y6b9jDjvu2PD0tT2b7aOUzviW6VipTIcrZUbEHPNYW9lZQF3MlHdvX4DuD78GS0ceqFM3Uq2cT6sMpkfYOK2Cv48/WWltqmI/dYaoDimSh2WwgAv9ilKLf52xBLqeKcIzkLKrR871CdrrEY7ZChQqxyChQTIm6e2z9mdn4GAt0/0DvMQLHi6gIxoFQnh10EV36ip64XGqG24TvaJpHJR4y0NIIXIZYCHuHGPdpzuyiJFdYABnv1vbOnsYfbyHK3zWQKBgQD9dAMtk3lXjVMoQJII2W0h3PcaxgzybeVF3SBXIr89KuQfbtHIWD5JwIxVLc77NWIjxRNx5hF7z6QKt+ah9gdsWQ/osQTR/ZTq9cLbC0Dh2jYxyNEy0LBNbGvEIA4xOoLDGxrPS5T12gP9PrcqOCo6sgXsFRNYrPszF5/6ILo82QKBgQDrH252KPSxGB4ugO2xHXa7Gd0XxLrhMH/7bD22TVMGo486LFAZiVv3QujjGyXMFsS6bPFIdgXlY3yxJJq0bMtGUwLLRIrQ3X91+3aSZ4plvJVr1QeoL6JD0/RzfiIRUgv1WhIuo52YbM/AuIdp/DsfhNnvqtsOSl2kLpjpeG0uSwKBgBvy/iK5f4kLGZ93t2LobyNr1YgLTQQy4DSbFOTm/QXGxA8/Tjz0ljHV3OPLwGZtVZwyMFnAEC+CD0nrS7CSi/EDxUBYvPpXJ2PdpBY5oHcHdDB7P66F2ts+2IdxLX96P086nvM7F3shBo2Xq+Uo+mcsmICXNmHx+WWB9m9DyqXJAoGBAIACp+BbIgW9LMmC1mZktTzesvn62Qg7oKJhZyP262ok6JjygVW17EUtv5/OKwD3sHoTUDZ0U3d1d/D2DeiHhxCtp0rF8ZIP1hKFKyRAjSAg0XVZEYcnEAA/yMqMdL3bXrlhJZ8Q43+WVnIFxWwVsJbTfNg4vHUGVf9Kg2QxdbgLAoGAQpHggY0YVHFZ8GIL6yVgeE4Em9jc+qt9zLwffvHMo7YhAPQDAnB4piWkWnZDj/U8UqlG7GIRQOtRl2foqQJ5sglUen6GhUlz8Q2PMKomKzO9uGsJnk2X2s878Vci7FMqQ6qZ3R/EsC4h8/JNw8xUHj2fp/L/f0vosuwUrrxSSB8=",
        ],
        sources: &[
            "developer.paypal.com/api/rest/webhooks/rest",
            "developer.paypal.com/api/webhooks/v1",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: Some(sign),
    samples: SAMPLES,
    sample,
};

/// Where the certificate of a delivery is to be fetched, if that is a place of PayPal's. The grammar is closed: the
/// scheme, a host from the list, the path and a plain name, so that no port, user, query or detour finds a place in it.
pub(super) fn certificate_url<'a>(headers: &Headers<'a>) -> Option<&'a str> {
    let url = std::str::from_utf8(headers.sole(CERTIFICATE).ok()??).ok()?;
    let address = url.strip_prefix("https://")?;
    let (host, path) = address.split_at(address.find('/')?);
    let name = path.strip_prefix(CERTIFICATE_PATH)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let named = (1..=CERTIFICATE_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain);
    (CERTIFICATE_HOSTS.contains(&host) && named).then_some(url)
}

/// Everything stands in the body.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, object, created] = fields::read(
        verified.body(),
        &["id", "event_type", "resource.id", "create_time"],
    )?;
    let id = id.event_id("the body has no `id`; PayPal gives every event one, as text")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_time(&created);
    Ok(event.into())
}

/// A transmission has an id and a time of its own, and both are signed.
fn sign(keys: &Keys, sample: &Sample, sending: &Sending<'_>) -> Signed {
    let digest = Sha256::digest(&sample.id);
    let (transmission, _) = digest.split_at(16);
    let serial = transmission
        .iter()
        .fold(0, |serial, byte| serial << 8 | u128::from(*byte));
    let mut headers = sample.headers.clone();
    headers.extend([
        (ALGORITHM.0, ALGORITHM.1.to_owned()),
        (
            CERTIFICATE,
            "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-hookgate".to_owned(),
        ),
        (TRANSMISSION_ID, uuid(serial)),
        (TRANSMISSION_TIME, rfc3339(sending.now.saturating_mul(1000))),
    ]);
    let own: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    let signature = keys.sign_request(&Unsigned {
        id: &sample.id,
        now: sending.now,
        method: "POST",
        url: Some(sending.url),
        headers: &own,
        body: &sample.body,
    });
    headers.extend(signature);
    Signed {
        url: sending.url.to_owned(),
        headers,
        body: sample.body.clone(),
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "PAYMENT.CAPTURE.COMPLETED",
        body: include_str!("../../samples/paypal/PAYMENT.CAPTURE.COMPLETED.json"),
    },
    Template {
        event_type: "PAYMENT.CAPTURE.REFUNDED",
        body: include_str!("../../samples/paypal/PAYMENT.CAPTURE.REFUNDED.json"),
    },
    Template {
        event_type: "BILLING.SUBSCRIPTION.ACTIVATED",
        body: include_str!("../../samples/paypal/BILLING.SUBSCRIPTION.ACTIVATED.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = format!("WH-{serial:017X}-{}", nineteen_digits(serial));
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "PayPal/AUHD-214.0-56833264".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("serial", &format!("{serial:017X}")),
            ("time", &rfc3339(now_ms)),
        ]),
        id,
    }
}
