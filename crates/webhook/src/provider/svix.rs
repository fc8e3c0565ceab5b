//! Svix and those who send through it (Clerk, Resend and others): Standard Webhooks under its own header names.
//!
//! Sources: svix/svix-webhooks (`go/webhook.go`, `rust/src/webhooks.rs`, `javascript/src/webhook.ts`), svix 1.99.1. The
//! schedule of retries is as one of its customers publishes it; Svix's own page was not read.

use std::time::Duration;

use hookgate_signature::{Headers, Scheme, StandardWebhooks, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "svix",
        title: "Svix",
        // Each header may come without the brand, as the libraries take it.
        scheme: Scheme::StandardWebhooks(StandardWebhooks {
            id: "svix-id",
            timestamp: "svix-timestamp",
            signature: "svix-signature",
            unbranded_too: true,
        }),
        tolerance: Tolerance::Both(Duration::from_secs(300)),
        url: UrlUse::Unused,
        places: Places {
            id: "header `svix-id`, else `webhook-id`",
            event_type: "body `type`",
            object: "body `data.id`",
            time: "body `timestamp`",
            account: "",
            mode: "",
        },
        // Unconfirmed.
        answer_budget: Duration::from_secs(15),
        answer_budget_is_published: false,
        success: Success::Ok,
        // 27 h 35 min, as one of its customers publishes it.
        automatic_retries: Some(Duration::from_hours(28)),
        // From the dashboard; for how long was not found. Assumed as for Stripe.
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "after 5 s, 5 min, 30 min, 2, 5, 10 and 10 h (unconfirmed)",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("data"),
        batches: false,
        handshake: "",
        // Without the brand they are the names of the gateway's own signature.
        forwarded_headers: &["svix-id", "svix-timestamp", "svix-signature"],
        dev_secrets: &["whsec_aG9va2dhdGUtZGV2LXN2aXgtd2ViaG9va3Mta2V5LTE="],
        sources: &[
            "svix/svix-webhooks: go/webhook.go, rust/src/webhooks.rs, javascript/src/webhook.ts; svix 1.99.1",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The id is the signed one. What the body holds is each customer's own: Clerk writes `timestamp` as milliseconds, Resend
/// has none and no `data.id`.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [event_type, object, timestamp] = fields::read(verified.body(), &["type", "data.id", "timestamp"])?;
    let id = signed_id(verified.headers()).event_id("the svix-id header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_time(&timestamp);
    Ok(event.into())
}

/// Of the two names the one that the signature covers.
fn signed_id<'a>(headers: &Headers<'a>) -> Value<'a> {
    match Value::from_header(headers, "svix-id") {
        Value::Absent => Value::from_header(headers, "webhook-id"),
        branded => branded,
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "user.created",
        body: include_str!("../../samples/svix/user.created.json"),
    },
    Template {
        event_type: "session.ended",
        body: include_str!("../../samples/svix/session.ended.json"),
    },
    Template {
        event_type: "email.delivered",
        body: include_str!("../../samples/svix/email.delivered.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let serial = format!("{serial:027x}");
    Sample {
        id: format!("msg_{serial}"),
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Svix-Webhooks/1.62".to_owned()),
        ],
        body: template.fill(&[
            ("serial", &serial),
            ("now_ms", &now_ms.to_string()),
            ("time", &rfc3339(now_ms)),
        ]),
    }
}
