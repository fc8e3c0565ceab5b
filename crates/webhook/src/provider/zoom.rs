//! Zoom: what happens to meetings, recordings and accounts.
//!
//! No official page and no SDK was read: all facts here are commonly known about Zoom and unconfirmed. Where they leave
//! a choice, the stricter reading is taken.

use std::time::Duration;

use hookgate_signature::{
    Algorithm, Challenge, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, Tolerance, Unit, Verified,
};
use serde_json::json;

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::value::Value;
use crate::{Answer, Event, EventId, Reading, Unreadable, fields};

/// The type of a handshake.
const VALIDATION: &str = "endpoint.url_validation";

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "zoom",
        title: "Zoom",
        // The colons keep what is signed apart from every challenge, which has none.
        scheme: Scheme::SignedText(SignedText {
            header: "x-zm-signature",
            prefix: "v0=",
            encoding: Encoding::Hex,
            algorithm: Algorithm::HmacSha256,
            key: KeyForm::Text,
            timestamp: Some(Timestamp {
                header: "x-zm-request-timestamp",
                unit: Unit::Seconds,
            }),
            parts: &[Part::Text("v0:"), Part::Timestamp, Part::Text(":"), Part::Body],
        }),
        // Assumed: no number is known, and this is what others use who sign the same way. That every try is signed
        // anew is assumed as well.
        tolerance: Tolerance::Both(Duration::from_secs(300)),
        url: UrlUse::Unused,
        places: Places {
            id: "none is documented: a digest of the body and `event`",
            event_type: "body `event`",
            object: "body `payload.object.id`, text or a number",
            time: "body `event_ts`, milliseconds",
            account: "body `payload.account_id`",
            mode: "",
        },
        // What is said of the handshake, and the safe side for events.
        answer_budget: Duration::from_secs(3),
        answer_budget_is_published: false,
        success: Success::Ok,
        // The last of three tries comes about two hours after the event; rounded up.
        automatic_retries: Some(Duration::from_hours(3)),
        manual_resend: None,
        retries_in_words: "after 5, 30 and 90 min (unconfirmed)",
        gives_up: "",
        // Only a 5xx or silence is said to be tried again.
        client_error_is_final: true,
        refusal_status: 400,
        body_bytes_max: None,
        // A digest covers signed bytes only.
        id_is_signed: true,
        content_path: None,
        batches: false,
        handshake: "`endpoint.url_validation`: its `plainToken` is sent back with its HMAC, if the request is signed and the token has 1 to 64 letters, digits, `_` and `-`",
        forwarded_headers: &["x-zm-signature", "x-zm-request-timestamp"],
        dev_secrets: &["hookgate_dev_zoom"],
        sources: &["none official: all of this is commonly known and unconfirmed"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// What a verified handshake wants signed: text of a kind that is never signed as a delivery. Anybody who knows the
/// secret may ask, and nobody else.
pub(super) fn challenge(verified: &Verified<'_>) -> Option<Challenge> {
    let [event_type, token] = fields::read(verified.body(), &["event", "payload.plainToken"]).ok()?;
    match token {
        Value::Text(token) if event_type.is(VALIDATION) => Challenge::parse(&token),
        _ => None,
    }
}

/// Everything stands in the signed body. No event has an id, so its bytes and its type identify it; `event_ts` tells
/// two of one kind apart, and a retry repeats the body.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [event_type, time, account, object, token] = fields::read(
        verified.body(),
        &[
            "event",
            "event_ts",
            "payload.account_id",
            "payload.object.id",
            "payload.plainToken",
        ],
    )?;
    let event = Event::without_id(&event_type, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_account(&account)
        .with_time(&time);
    match event_type.is(VALIDATION) {
        true => Ok(Reading::handshake(event, answer(&token, verified.proof())?)),
        false => Ok(event.into()),
    }
}

/// The token and its signature, which only a token that fits has.
fn answer(token: &Value<'_>, proof: Option<&str>) -> Result<Answer, Unreadable> {
    let (Value::Text(token), Some(proof)) = (token, proof) else {
        return Err(Unreadable::MalformedBody(
            "its `plainToken` is no text of 1 to 64 letters, digits, `_` and `-`, and no other is signed"
                .to_owned(),
        ));
    };
    Ok(Answer {
        status: 200,
        content_type: "application/json",
        body: json!({ "plainToken": token, "encryptedToken": proof }).to_string(),
    })
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "meeting.started",
        body: include_str!("../../samples/zoom/meeting.started.json"),
    },
    Template {
        event_type: "meeting.participant_joined",
        body: include_str!("../../samples/zoom/meeting.participant_joined.json"),
    },
    Template {
        event_type: "recording.completed",
        body: include_str!("../../samples/zoom/recording.completed.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let time = rfc3339(now_ms);
    let body = template.fill(&[
        ("uuid", &uuid(serial)),
        ("time", &time),
        ("unix_ms", &now_ms.to_string()),
    ]);
    Sample {
        id: EventId::digest(&body, template.event_type).as_str().to_owned(),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("User-Agent", "Zoom Marketplace/1.0a".to_owned()),
        ],
        body,
    }
}
