//! LINE's Messaging API.
//!
//! Source: @line/bot-sdk 11.0.0 (`validateSignature`). What it does not tell is commonly known about LINE and called
//! unconfirmed.

use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{BodyDigest, Encoding, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, nineteen_digits};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "line",
        title: "LINE",
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["x-line-signature"],
            prefix: "",
            encoding: Encoding::Base64,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "`webhookEventId` of each of `events`",
            event_type: "its `type`",
            object: "its `message.id`",
            time: "its `timestamp`",
            account: "body `destination`",
            mode: "",
        },
        // Unconfirmed: after two seconds the console tells of a timeout.
        answer_budget: Duration::from_secs(2),
        answer_budget_is_published: false,
        success: Success::Ok,
        // Only where a channel has redelivery switched on, and LINE keeps count and pauses to itself. A day is assumed.
        automatic_retries: Some(Duration::from_hours(24)),
        manual_resend: None,
        retries_in_words: "if redelivery is switched on; how often and how long is not published",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: true,
        handshake: "the console's verification: a delivery without events, answered like any other",
        // A row holds one event, and the signature covers all of them.
        forwarded_headers: &[],
        dev_secrets: &["hookgate_dev_line"],
        sources: &["@line/bot-sdk 11.0.0"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// Any number of events for one bot, also none. A redelivery keeps the id and says so in `deliveryContext`, which
/// changes the bytes and not the event. `mode` tells whether the bot may answer, not live from test.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    let [destination, events] = fields::raw(fields::object(body)?, &["destination", "events"])?;
    let events = events.ok_or_else(|| Unreadable::MalformedBody("it has no `events`".to_owned()))?;
    let bot = Value::from_json(destination);
    Reading::batch(body, &fields::array(events.get())?, |element| {
        event(element, &bot)
    })
}

fn event(element: Bytes, bot: &Value<'_>) -> Result<Event, Unreadable> {
    let [id, event_type, message, timestamp] =
        fields::read(&element, &["webhookEventId", "type", "message.id", "timestamp"])?;
    let id = id.event_id("an event has no `webhookEventId`; LINE gives every event one, as text")?;
    Ok(Event::new(id, element.clone())
        .with_type(&event_type)
        .with_object(&message)
        .with_account(bot)
        .with_time(&timestamp))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "message",
        body: include_str!("../../samples/line/message.json"),
    },
    Template {
        event_type: "follow",
        body: include_str!("../../samples/line/follow.json"),
    },
    Template {
        event_type: "postback",
        body: include_str!("../../samples/line/postback.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = format!("01{serial:024X}");
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("User-Agent", "LineBotWebhook/2.0".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("number", &nineteen_digits(serial)),
            ("time", &now_ms.to_string()),
        ]),
        id,
    }
}
