//! Discord: webhook events, and interactions sent to a URL.
//!
//! Sources: discord-interactions 4.4.0 and discord/discord-api-docs, `docs/events/webhook-events.mdx`.
//!
//! An interaction wants its real response within three seconds, in the answer itself. An inbox cannot give one, so
//! only the PING among them is answered here; the others are kept like events, and Discord shows a failure to its
//! user.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, Tolerance, Unit, Verified,
};
use time::UtcOffset;

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, nineteen_digits, rfc3339};
use crate::value::Value;
use crate::{Answer, Event, EventId, ProviderTime, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "discord",
        title: "Discord",
        // The key is the application's public key. Timestamp and body are joined without a separator.
        scheme: Scheme::SignedText(SignedText {
            header: "X-Signature-Ed25519",
            prefix: "",
            encoding: Encoding::Hex,
            algorithm: Algorithm::Ed25519,
            key: KeyForm::KeyPair,
            timestamp: Some(Timestamp {
                header: "X-Signature-Timestamp",
                unit: Unit::Seconds,
            }),
            parts: &[Part::Timestamp, Part::Body],
        }),
        // The SDK checks none, and whether a retry is signed anew is not told.
        tolerance: Tolerance::OnRequest,
        url: UrlUse::Unused,
        places: Places {
            id: "interactions: body `id`; webhook events have none",
            event_type: "body `event.type`, else the number in `type`",
            object: "body `event.data.id`",
            time: "body `event.timestamp`, UTC",
            account: "body `application_id`",
            mode: "",
        },
        answer_budget: Duration::from_secs(3),
        answer_budget_is_published: true,
        success: Success::NoContent,
        automatic_retries: Some(Duration::from_mins(10)),
        manual_resend: None,
        retries_in_words: "webhook events for up to ten minutes with growing pauses; interactions never",
        gives_up: "a bad signature, which Discord sends on purpose, that is not answered with 401: it removes the URL",
        client_error_is_final: false,
        refusal_status: 401,
        body_bytes_max: None,
        // Of interactions. A digest covers signed bytes only.
        id_is_signed: true,
        content_path: None,
        batches: false,
        handshake: "PINGs: an interaction of type 1 is answered with its own type, a webhook event of type 0 with 204",
        forwarded_headers: &["X-Signature-Ed25519", "X-Signature-Timestamp"],
        // A private key, so that samples can be signed; a real endpoint has the public half in hexadecimal.
        dev_secrets: &["whsk_aG9va2dhdGUgZGV2IGRpc2NvcmQsIHdvcnRobGVzcyE="],
        sources: &[
            "discord-interactions 4.4.0",
            "discord/discord-api-docs: docs/events/webhook-events.mdx",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// Everything stands in the signed body. What has an id is an interaction; a webhook event has none, so its bytes and
/// its type identify it.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, kind, application, inner, time, object] = fields::read(
        verified.body(),
        &[
            "id",
            "type",
            "application_id",
            "event.type",
            "event.timestamp",
            "event.data.id",
        ],
    )?;
    let name = match &inner {
        Value::Absent => number_as_text(&kind),
        named => named.clone(),
    };
    let body: Bytes = verified.body().clone();
    let (event, ping) = match (&id, &kind) {
        (Value::Absent, Value::Number("0")) => (Event::without_id(&name, body), Some(&WEBHOOK_PONG)),
        (Value::Absent, _) => (Event::without_id(&name, body), None),
        (id, kind) => {
            let id =
                id.event_id("the interaction has no `id`; Discord gives every interaction one, as text")?;
            let ping = matches!(kind, Value::Number("1")).then_some(&INTERACTION_PONG);
            (Event::new(id, body), ping)
        }
    };
    let event = event
        .with_type(&name)
        .with_object(&object)
        .with_account(&application)
        .with_time_read(&time, moment(&time));
    Ok(match ping {
        Some(pong) => Reading::handshake(event, pong.answer()),
        None => event.into(),
    })
}

/// What a PING is answered with. A 204 carries a content type too, which Discord checks.
struct Pong {
    status: u16,
    body: &'static str,
}

const INTERACTION_PONG: Pong = Pong {
    status: 200,
    body: r#"{"type":1}"#,
};
const WEBHOOK_PONG: Pong = Pong {
    status: 204,
    body: "",
};

impl Pong {
    fn answer(&self) -> Answer {
        Answer {
            status: self.status,
            content_type: "application/json",
            body: self.body.to_owned(),
        }
    }
}

fn number_as_text<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Number(digits) => Value::Text(Cow::Borrowed(digits)),
        other => other.clone(),
    }
}

/// Written without a zone, and meant as UTC.
fn moment(time: &Value<'_>) -> Option<ProviderTime> {
    ProviderTime::read(time).or_else(|| ProviderTime::read_local(time, UtcOffset::UTC))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "ENTITLEMENT_CREATE",
        body: include_str!("../../samples/discord/ENTITLEMENT_CREATE.json"),
    },
    Template {
        event_type: "APPLICATION_AUTHORIZED",
        body: include_str!("../../samples/discord/APPLICATION_AUTHORIZED.json"),
    },
    Template {
        event_type: "APPLICATION_DEAUTHORIZED",
        body: include_str!("../../samples/discord/APPLICATION_DEAUTHORIZED.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let time = rfc3339(now_ms);
    let body = template.fill(&[
        ("number", &nineteen_digits(serial)),
        ("time", time.trim_end_matches('Z')),
    ]);
    Sample {
        id: EventId::digest(&body, template.event_type).as_str().to_owned(),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            (
                "User-Agent",
                "Discord-Webhook/1.0 (+https://discord.com)".to_owned(),
            ),
        ],
        body,
    }
}
