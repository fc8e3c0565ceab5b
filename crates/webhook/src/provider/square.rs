//! Square.
//!
//! Sources: square 46.0.0 (Node), squareup 46.0.0.20260916 (Python), developer.squareup.com/docs/webhooks.

use std::time::Duration;

use hookgate_signature::{Algorithm, Encoding, KeyForm, Part, Scheme, SignedText, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "square",
        title: "Square",
        // The older `x-square-signature` is SHA-1, retired, and not accepted.
        scheme: Scheme::SignedText(SignedText {
            header: "x-square-hmacsha256-signature",
            prefix: "",
            encoding: Encoding::Base64,
            algorithm: Algorithm::HmacSha256,
            key: KeyForm::Text,
            timestamp: None,
            parts: &[Part::Url, Part::Body],
        }),
        tolerance: Tolerance::Off,
        // As registered with Square, character by character: its scheme, its last slash, its query.
        url: UrlUse::Whole,
        places: Places {
            id: "body `event_id`",
            event_type: "body `type`",
            object: "body `data.id`",
            time: "body `created_at`",
            account: "body `merchant_id`",
            // `square-environment` says it and is not signed.
            mode: "",
        },
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: true,
        success: Success::Ok,
        // What is left after a day is discarded.
        automatic_retries: Some(Duration::from_hours(24)),
        // None was found.
        manual_resend: None,
        retries_in_words: "eleven tries in a day: after 1, 2, 4, 8, 16, 32 and 60 min, 2, 4, 8 and 8 h",
        gives_up: "24 h, after which the event is discarded",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("data"),
        batches: false,
        handshake: "",
        forwarded_headers: &[
            "x-square-hmacsha256-signature",
            "square-environment",
            "square-initial-delivery-timestamp",
            "square-retry-number",
            "square-retry-reason",
        ],
        dev_secrets: &["hookgate_dev_square"],
        sources: &[
            "square 46.0.0, squareup 46.0.0.20260916",
            "developer.squareup.com/docs/webhooks",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, object, merchant, created_at] = fields::read(
        verified.body(),
        &["event_id", "type", "data.id", "merchant_id", "created_at"],
    )?;
    let id = id.event_id("the body has no `event_id`; Square gives every event one, as text")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_account(&merchant)
        .with_time(&created_at);
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "payment.updated",
        body: include_str!("../../samples/square/payment.updated.json"),
    },
    Template {
        event_type: "refund.created",
        body: include_str!("../../samples/square/refund.created.json"),
    },
    Template {
        event_type: "invoice.payment_made",
        body: include_str!("../../samples/square/invoice.payment_made.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let (id, time) = (uuid(serial), rfc3339(now_ms));
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Square Connect v2".to_owned()),
            ("square-environment", "Sandbox".to_owned()),
            ("square-initial-delivery-timestamp", time.clone()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("serial", &format!("{serial:027X}")),
            ("time", &time),
        ]),
        id,
    }
}
