//! Adyen's standard notifications.
//!
//! Sources: @adyen/api-library 32.1.0 (`hmacValidator`), Adyen 16.0.0 for Python, and docs.adyen.com,
//! development-resources/webhooks. Webhooks of platforms and banking sign the whole body instead and are not these.
//!
//! Each item of the body carries a signature over eight of its fields, so the body has to be taken apart before
//! anything is verified. [`seals`] does that and no more: one pass without building the JSON, at most some thousand
//! items, and nothing but the signed text and the signature comes out of it.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Delivery, Detached, Encoding, KeyForm, Keys, Offered, Refusal, Scheme, Seal, Tolerance,
    Verified,
};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::{Definition, Sending, Signed};
use crate::sample::{Sample, Template, nineteen_digits, rfc3339};
use crate::value::Value;
use crate::{Event, EventId, Mode, Reading, Unreadable, fields};

const SIGNATURE: &str = "additionalData.hmacSignature";

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "adyen",
        title: "Adyen",
        scheme: Scheme::Detached(Detached {
            header: SIGNATURE,
            algorithms: &[Algorithm::HmacSha256],
            key: KeyForm::Hex,
            signs: "of each item `pspReference:originalReference:merchantAccountCode:merchantReference:amount.value:amount.currency:eventCode:success`",
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "`pspReference:eventCode:success` of each item",
            event_type: "its `eventCode`",
            object: "its `pspReference`",
            time: "its `eventDate`, which is not signed",
            account: "its `merchantAccountCode`",
            mode: "body `live`, which is not signed; live and test have keys of their own",
        },
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: true,
        // Any 2xx is enough today; accounts set up long ago may still look for the word.
        success: Success::OkAccepted,
        automatic_retries: Some(Duration::from_hours(30 * 24)),
        manual_resend: None,
        retries_in_words: "after 9, 18 and 27 s, then 2, 5, 10, 15, 30 min, 1, 2, 4 and 8 h, for up to 30 days",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: true,
        handshake: "",
        // The signatures stand in the body.
        forwarded_headers: &[],
        dev_secrets: &["686f6f6b676174652064657620616479656e2c20776f7274686c657373"],
        sources: &[
            "@adyen/api-library 32.1.0, Adyen 16.0.0 for Python",
            "docs.adyen.com/development-resources/webhooks: handle-webhook-events, troubleshoot, best-practices",
        ],
    },
    read,
    seals: Some(seals),
    signed_at: None,
    sign: Some(sign),
    samples: SAMPLES,
    sample,
};

/// The signed fields in their order, with colons between them. Nothing is escaped.
const SIGNED: [&str; 8] = [
    "NotificationRequestItem.pspReference",
    "NotificationRequestItem.originalReference",
    "NotificationRequestItem.merchantAccountCode",
    "NotificationRequestItem.merchantReference",
    "NotificationRequestItem.amount.value",
    "NotificationRequestItem.amount.currency",
    "NotificationRequestItem.eventCode",
    "NotificationRequestItem.success",
];

/// The one field that merchants fill and that may hold a colon.
const MERCHANT_REFERENCE: usize = 3;

/// What each item says is signed. One without a signature is refused with all the others.
fn seals(delivery: &Delivery<'_>) -> Result<Vec<Seal>, Refusal> {
    let items = items(&delivery.body).map_err(|_| malformed("the body is not the JSON that carries it"))?;
    items.into_iter().map(seal).collect()
}

fn seal(item: &str) -> Result<Seal, Refusal> {
    let [signature] = fields::read(
        item.as_bytes(),
        &["NotificationRequestItem.additionalData.hmacSignature"],
    )
    .map_err(|_| malformed("it, or something on the way to it, occurs twice in an item"))?;
    let offered = match &signature {
        Value::Absent => return Err(Refusal::MissingSignature(SIGNATURE)),
        Value::Text(text) if text.is_empty() => return Err(Refusal::MissingSignature(SIGNATURE)),
        Value::Text(text) => Offered::read(Algorithm::HmacSha256, Encoding::Base64, text.as_bytes()),
        _ => None,
    };
    Ok(Seal {
        texts: vec![signed_text(item)?],
        signatures: vec![offered.ok_or(malformed("it is not the base64 of 32 bytes"))?],
        signed_at: None,
    })
}

/// Colons are not escaped, so two different items could share a text: one colon more in a merchant's reference, and
/// the fields before it move. Only that one field may hold colons here; then each text has one reading, and nobody
/// turns a delivery that he saw into another event.
fn signed_text(item: &str) -> Result<Vec<u8>, Refusal> {
    let values = fields::read(item.as_bytes(), &SIGNED)
        .map_err(|_| malformed("a field that it covers, or something on the way to one, occurs twice"))?;
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        let field = printed(value).ok_or(malformed("a field that it covers is no text and no number"))?;
        if index != MERCHANT_REFERENCE && field.contains(':') {
            return Err(malformed("a field that it covers holds a colon"));
        }
        if index > 0 {
            text.push(':');
        }
        text.push_str(&field);
    }
    Ok(text.into_bytes())
}

/// A field as it is signed; empty where it is absent.
fn printed<'a>(value: &'a Value<'_>) -> Option<Cow<'a, str>> {
    match value {
        Value::Absent => Some(Cow::Borrowed("")),
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Number(digits) => Some(Cow::Borrowed(digits)),
        Value::Bool(yes) => Some(Cow::Owned(yes.to_string())),
        Value::Compound | Value::Broken(_) => None,
    }
}

fn malformed(problem: &'static str) -> Refusal {
    Refusal::MalformedSignature {
        header: SIGNATURE,
        problem,
    }
}

fn items(body: &[u8]) -> Result<Vec<&str>, Unreadable> {
    let [items] = fields::raw(fields::object(body)?, &["notificationItems"])?;
    let none = || Unreadable::MalformedBody("it has no `notificationItems`".to_owned());
    fields::array(items.ok_or_else(none)?.get())
}

/// Identity comes from signed fields alone.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    let [live] = fields::read(body, &["live"])?;
    let mode = match &live {
        live if live.is("true") || *live == Value::Bool(true) => Mode::Live,
        live if live.is("false") || *live == Value::Bool(false) => Mode::Test,
        _ => Mode::Unknown,
    };
    Reading::batch(body, &items(body)?, |item| {
        event(item).map(|event| event.with_mode(mode))
    })
}

fn event(item: Bytes) -> Result<Event, Unreadable> {
    let [reference, code, success, account, date] = fields::read(
        &item,
        &[
            SIGNED[0],
            SIGNED[6],
            SIGNED[7],
            SIGNED[2],
            "NotificationRequestItem.eventDate",
        ],
    )?;
    Ok(Event::new(key(&reference, &code, &success)?, item.clone())
        .with_type(&code)
        .with_object(&reference)
        .with_account(&account)
        .with_time(&date))
}

/// Copies share reference and code; an authorisation may come twice, once for each `success`, and both count.
fn key(reference: &Value<'_>, code: &Value<'_>, success: &Value<'_>) -> Result<EventId, Unreadable> {
    let missing = Unreadable::MissingEventId(
        "an item has no `pspReference` or no `eventCode`; Adyen gives every item both, as text",
    );
    let (Value::Text(reference), Value::Text(code)) = (reference, code) else {
        return Err(missing);
    };
    if reference.is_empty() || code.is_empty() {
        return Err(missing);
    }
    let success = printed(success).unwrap_or_default();
    EventId::parse(&format!("{reference}:{code}:{success}")).map_err(|bad| Unreadable::BadEventId(bad.0))
}

/// Stands in a sample where its signature goes.
const UNSIGNED: &str = "not-signed-yet";

fn sign(keys: &Keys, sample: &Sample, sending: &Sending<'_>) -> Signed {
    let signed = signed(keys, &sample.body).unwrap_or_else(|| sample.body.clone());
    Signed {
        url: sending.url.to_owned(),
        headers: sample.headers.clone(),
        body: signed,
    }
}

fn signed(keys: &Keys, body: &Bytes) -> Option<Bytes> {
    let mut signed = String::from_utf8(body.to_vec()).ok()?;
    for item in items(body).ok()? {
        let signature = keys.sign_text(Encoding::Base64, &signed_text(item).ok()?)?;
        signed = signed.replacen(UNSIGNED, &signature, 1);
    }
    Some(Bytes::from(signed))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "AUTHORISATION",
        body: include_str!("../../samples/adyen/AUTHORISATION.json"),
    },
    Template {
        event_type: "CAPTURE",
        body: include_str!("../../samples/adyen/CAPTURE.json"),
    },
    Template {
        event_type: "REFUND",
        body: include_str!("../../samples/adyen/REFUND.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let reference = nineteen_digits(serial);
    let time = rfc3339(now_ms.div_euclid(1000).saturating_mul(1000)).replace('Z', "+00:00");
    Sample {
        id: format!("{reference}:{}:true", template.event_type),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("User-Agent", "Adyen HttpClient 1.0".to_owned()),
        ],
        body: template.fill(&[("reference", &reference), ("time", &time)]),
    }
}
