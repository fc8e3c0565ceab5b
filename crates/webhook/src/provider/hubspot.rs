//! HubSpot's webhook subscriptions.
//!
//! Source: @hubspot/api-client 13.5.0 (`Signature`, version 3). What it does not tell is commonly known about HubSpot
//! and called unconfirmed.

use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, Tolerance, Unit, Verified,
};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, nineteen_digits};
use crate::value::Value;
use crate::{Event, EventId, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "hubspot",
        title: "HubSpot",
        // Versions 1 and 2 are plain digests of secret and data and are not accepted.
        scheme: Scheme::SignedText(SignedText {
            header: "X-HubSpot-Signature-v3",
            prefix: "",
            encoding: Encoding::Base64,
            algorithm: Algorithm::HmacSha256,
            key: KeyForm::Text,
            timestamp: Some(Timestamp {
                header: "X-HubSpot-Request-Timestamp",
                unit: Unit::Milliseconds,
            }),
            parts: &[Part::Method, Part::Url, Part::Body, Part::Timestamp],
        }),
        // The SDK refuses the past alone.
        tolerance: Tolerance::Past(Duration::from_secs(300)),
        url: UrlUse::Whole,
        places: Places {
            id: "`eventId` of each element, kept as `eventId:subscriptionId:occurredAt`",
            event_type: "its `subscriptionType`",
            object: "its `objectId`",
            time: "its `occurredAt`",
            account: "its `portalId`",
            mode: "",
        },
        // Five seconds, and tries for a day: both unconfirmed.
        answer_budget: Duration::from_secs(5),
        answer_budget_is_published: false,
        success: Success::Ok,
        automatic_retries: Some(Duration::from_hours(24)),
        manual_resend: None,
        retries_in_words: "up to ten times within 24 h (unconfirmed)",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: true,
        handshake: "",
        // A row holds one event, and the signature covers all of them.
        forwarded_headers: &[],
        dev_secrets: &["hookgate_dev_hubspot"],
        sources: &["@hubspot/api-client 13.5.0"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// An array of events, at least one.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    match &*fields::elements(body)? {
        [] => Err(Unreadable::MalformedBody("it holds no event".to_owned())),
        elements => Reading::batch(body, elements, event),
    }
}

fn event(element: Bytes) -> Result<Event, Unreadable> {
    let [id, subscription, occurred, event_type, object, portal] = fields::read(
        &element,
        &[
            "eventId",
            "subscriptionId",
            "occurredAt",
            "subscriptionType",
            "objectId",
            "portalId",
        ],
    )?;
    Ok(Event::new(key(&id, &subscription, &occurred)?, element.clone())
        .given_as(&id)
        .with_type(&event_type)
        .with_object(&object)
        .with_account(&portal)
        .with_time(&occurred))
}

/// `eventId` is not unique by itself (unconfirmed), and taking two events for one would lose the second. What
/// subscription it belongs to and when it happened tells them apart, and a retry changes neither: it only counts up
/// `attemptNumber`. All three are whole numbers, so the text has one spelling and no two triples share it.
fn key(id: &Value<'_>, subscription: &Value<'_>, occurred: &Value<'_>) -> Result<EventId, Unreadable> {
    if matches!(id, Value::Absent) {
        return Err(Unreadable::MissingEventId(
            "an event has no `eventId`; HubSpot gives every event one, as a number",
        ));
    }
    let [id, subscription, occurred] = [digits(id)?, digits(subscription)?, digits(occurred)?];
    EventId::parse(&format!("{id}:{subscription}:{occurred}")).map_err(|bad| Unreadable::BadEventId(bad.0))
}

fn digits<'a>(value: &Value<'a>) -> Result<&'a str, Unreadable> {
    match value {
        Value::Absent => Ok(""),
        Value::Number(number) if number.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(Unreadable::BadEventId(
            "`eventId`, `subscriptionId` and `occurredAt` have to be whole numbers",
        )),
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "contact.creation",
        body: include_str!("../../samples/hubspot/contact.creation.json"),
    },
    Template {
        event_type: "deal.propertyChange",
        body: include_str!("../../samples/hubspot/deal.propertyChange.json"),
    },
    Template {
        event_type: "contact.deletion",
        body: include_str!("../../samples/hubspot/contact.deletion.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let number = nineteen_digits(serial);
    // Numbers without a sign are the only ones that HubSpot writes.
    let time = now_ms.max(0).to_string();
    let body = template.fill(&[("number", &number), ("time", &time)]);
    let subscription = match template.event_type {
        "contact.creation" => 25,
        "deal.propertyChange" => 26,
        _ => 27,
    };
    Sample {
        id: format!("{number}:{subscription}:{time}"),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            (
                "User-Agent",
                "HubSpot Connect 2.0 (http://dev.hubspot.com/) - WebhooksExecutor".to_owned(),
            ),
        ],
        body,
    }
}
