//! Any sender that follows Standard Webhooks 1.0.0.
//!
//! Sources: standard-webhooks/standard-webhooks, `spec/standard-webhooks.md` and its libraries.

use std::time::Duration;

use hookgate_signature::{Scheme, StandardWebhooks, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "standard_webhooks",
        title: "Standard Webhooks",
        scheme: Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED),
        tolerance: Tolerance::Both(Duration::from_secs(300)),
        url: UrlUse::Unused,
        places: Places {
            id: "header `webhook-id`",
            event_type: "body `type`",
            object: "body `data.id`",
            time: "body `timestamp`",
            account: "",
            mode: "",
        },
        // Recommended to senders are fifteen to thirty seconds.
        answer_budget: Duration::from_secs(15),
        answer_budget_is_published: false,
        success: Success::Ok,
        // The recommended schedule ends 75 h 35 min after the first try; binding is nothing.
        automatic_retries: Some(Duration::from_hours(76)),
        // The sender's choice, and the specification names no time. Assumed as for Stripe.
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "the sender's choice; recommended after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h",
        gives_up: "an answer 410",
        client_error_is_final: false,
        refusal_status: 400,
        // Recommended are 20 kB, binding is nothing.
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("data"),
        batches: false,
        handshake: "",
        // The gateway's own signature takes these very names, and its `Webhook-Id` names the source too; the
        // sender's signature would cover an id that the target does not see.
        forwarded_headers: &[],
        dev_secrets: &["whsec_aG9va2dhdGUtZGV2LXN0YW5kYXJkLXdlYmhvb2tz"],
        sources: &["standard-webhooks/standard-webhooks: spec/standard-webhooks.md and its libraries"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The id is a signed header, the same on every retry. The body follows a recommendation only, so type,
/// object and time may be absent; a few senders write the time as a number of milliseconds.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [event_type, object_id, timestamp] =
        fields::read(verified.body(), &["type", "data.id", "timestamp"])?;
    let id =
        Value::from_header(verified.headers(), "webhook-id").event_id("the webhook-id header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object_id)
        .with_time(&timestamp);
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "contact.created",
        body: include_str!("../../samples/standard_webhooks/contact.created.json"),
    },
    Template {
        event_type: "invoice.paid",
        body: include_str!("../../samples/standard_webhooks/invoice.paid.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    Sample {
        id: format!("msg_{serial:027x}"),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Hookgate-Sample/1.0".to_owned()),
        ],
        body: template.fill(&[("uuid", &uuid(serial)), ("time", &rfc3339(now_ms))]),
    }
}
