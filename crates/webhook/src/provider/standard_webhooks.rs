//! Any sender that follows Standard Webhooks 1.0.0.
//!
//! Sources: standard-webhooks/standard-webhooks, `spec/standard-webhooks.md` and its libraries.

use std::time::Duration;

use hookgate_signature::{Scheme, StandardWebhooks, Tolerance, Verified};

use crate::provider::Knowledge;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Unreadable, fields};

pub(super) const KNOWLEDGE: Knowledge = Knowledge {
    name: "standard_webhooks",
    scheme: Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED),
    tolerance: Tolerance::Both(Duration::from_secs(300)),
    // Recommended to senders are fifteen to thirty seconds.
    answer_budget: Duration::from_secs(15),
    // The recommended schedule ends 75 h 35 min after the first try; binding is nothing.
    automatic_retries: Some(Duration::from_hours(76)),
    // The sender's choice, and the specification names no time. Assumed as for Stripe.
    manual_resend: Some(Duration::from_hours(30 * 24)),
    client_error_is_final: false,
    refusal_status: 400,
    // Recommended are 20 kB, binding is nothing.
    body_bytes_max: None,
    id_is_signed: true,
    batches: false,
    // The gateway's own signature takes these very names, and its `Webhook-Id` names the source too; the
    // sender's signature would cover an id that the target does not see.
    forwarded_headers: &[],
    dev_secret: "whsec_aG9va2dhdGUtZGV2LXN0YW5kYXJkLXdlYmhvb2tz",
};

/// The id is a signed header, the same on every retry. The body follows a recommendation only, so type,
/// object and time may be absent; a few senders write the time as a number of milliseconds.
pub(super) fn read(verified: &Verified<'_>) -> Result<Vec<Event>, Unreadable> {
    let [event_type, object_id, timestamp] =
        fields::read(verified.body(), &["type", "data.id", "timestamp"])?;
    let id =
        Value::from_header(verified.headers(), "webhook-id").event_id("the webhook-id header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object_id)
        .with_time(&timestamp);
    Ok(vec![event])
}

pub(super) const SAMPLES: &[Template] = &[
    Template {
        event_type: "contact.created",
        body: include_str!("../../samples/standard_webhooks/contact.created.json"),
    },
    Template {
        event_type: "invoice.paid",
        body: include_str!("../../samples/standard_webhooks/invoice.paid.json"),
    },
];

pub(super) fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
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
