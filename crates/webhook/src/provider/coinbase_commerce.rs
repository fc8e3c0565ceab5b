//! Coinbase Commerce.
//!
//! Sources: coinbase-commerce-node 1.0.4. How often it tries again, and how long it waits, is from general knowledge and
//! unconfirmed.

use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "coinbase_commerce",
        title: "Coinbase Commerce",
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["X-CC-Webhook-Signature"],
            prefix: "",
            encoding: Encoding::Hex,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "body `event.id`",
            event_type: "body `event.type`",
            object: "body `event.data.id`",
            time: "body `event.created_at`",
            account: "",
            mode: "",
        },
        // Not published; assumed.
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: false,
        success: Success::Ok,
        // Unconfirmed.
        automatic_retries: Some(Duration::from_hours(3 * 24)),
        // None was found.
        manual_resend: None,
        retries_in_words: "for about three days with growing pauses (unconfirmed)",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("event.data"),
        batches: false,
        handshake: "",
        forwarded_headers: &["X-CC-Webhook-Signature"],
        dev_secrets: &["hookgate-dev-coinbase-commerce"],
        sources: &["coinbase-commerce-node 1.0.4"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The event stands in an envelope. The envelope's own `id` and `attempt_number` belong to the delivery and change.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, object, created_at] = fields::read(
        verified.body(),
        &["event.id", "event.type", "event.data.id", "event.created_at"],
    )?;
    let id = id.event_id("the body has no `event.id`; Coinbase Commerce gives every event one, as text")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_time(&created_at);
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "charge:confirmed",
        body: include_str!("../../samples/coinbase_commerce/charge_confirmed.json"),
    },
    Template {
        event_type: "charge:created",
        body: include_str!("../../samples/coinbase_commerce/charge_created.json"),
    },
    Template {
        event_type: "charge:failed",
        body: include_str!("../../samples/coinbase_commerce/charge_failed.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "weipay-webhooks".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("delivery", &uuid(!serial)),
            ("object", &uuid(serial.rotate_left(64))),
            ("time", &rfc3339(now_ms)),
        ]),
        id,
    }
}
