//! Paddle Billing. Classic Paddle, which signs PHP-serialised fields, is another scheme and is not understood.
//!
//! Sources: @paddle/paddle-node-sdk 3.10.0, paddle-python-sdk 1.16.1, developer.paddle.com (webhooks/respond-to-webhooks,
//! webhooks/about/signature-verification).

use std::time::Duration;

use hookgate_signature::{Scheme, TimestampedList, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339_micros};
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "paddle",
        title: "Paddle",
        // During a rotation each active secret signs. The Node SDK looks at the last `h1` alone, the Python SDK at all
        // of them, and so do we.
        scheme: Scheme::TimestampedList(TimestampedList {
            header: "Paddle-Signature",
            timestamp: "ts",
            signature: "h1",
            separator: b';',
            joiner: b':',
        }),
        // The SDKs' default and the documentation's: a receiver's clock has to be right. The Node SDK does not refuse
        // the future, and a time ahead of ours is a time that Paddle signed.
        tolerance: Tolerance::Past(Duration::from_secs(5)),
        url: UrlUse::Unused,
        places: Places {
            id: "body `event_id`",
            event_type: "body `event_type`",
            object: "body `data.id`",
            time: "body `occurred_at`",
            account: "",
            mode: "",
        },
        answer_budget: Duration::from_secs(5),
        answer_budget_is_published: true,
        // Every other 2xx is a failure.
        success: Success::Ok,
        // Live; in the sandbox three times in fifteen minutes (respond-to-webhooks).
        automatic_retries: Some(Duration::from_hours(3 * 24)),
        // A notification can be replayed; for how long was not found. Assumed as for Stripe.
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "live: sixty times in three days, 20 of them in the first hour and 47 in the first day; sandbox: three times in 15 min",
        gives_up: "the last retry",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("data"),
        batches: false,
        handshake: "",
        forwarded_headers: &["Paddle-Signature"],
        dev_secrets: &["pdl_ntfset_hookgate_dev_paddle"],
        sources: &[
            "@paddle/paddle-node-sdk 3.10.0, paddle-python-sdk 1.16.1",
            "developer.paddle.com: webhooks/respond-to-webhooks, webhooks/about/signature-verification",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The event has one id at every destination; `notification_id` names what one destination gets and is not it.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, object, occurred_at] = fields::read(
        verified.body(),
        &["event_id", "event_type", "data.id", "occurred_at"],
    )?;
    let id = id.event_id("the body has no `event_id`; Paddle gives every event one, as text")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_time(&occurred_at);
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "transaction.completed",
        body: include_str!("../../samples/paddle/transaction.completed.json"),
    },
    Template {
        event_type: "subscription.created",
        body: include_str!("../../samples/paddle/subscription.created.json"),
    },
    Template {
        event_type: "subscription.updated",
        body: include_str!("../../samples/paddle/subscription.updated.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let serial = format!("{serial:026x}");
    let id = format!("evt_{serial}");
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Paddle".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("serial", &serial),
            ("time", &rfc3339_micros(now_ms)),
        ]),
        id,
    }
}
