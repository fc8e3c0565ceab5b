//! Lemon Squeezy.
//!
//! Sources: docs.lemonsqueezy.com (help/webhooks/webhook-requests, signing-requests); captured deliveries in public
//! repositories.

use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339_micros, uuid};
use crate::value::Value;
use crate::{Event, Mode, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "lemon_squeezy",
        title: "Lemon Squeezy",
        // The digest and nothing else: no prefix, no time, never two.
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["X-Signature"],
            prefix: "",
            encoding: Encoding::Hex,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "body `meta.webhook_id`; without it a digest of the body and `meta.event_name`",
            event_type: "body `meta.event_name`",
            object: "body `data.id`",
            time: "body `data.attributes.updated_at`, the object's time",
            account: "body `data.attributes.store_id`",
            mode: "body `meta.test_mode`",
        },
        // Not published; assumed.
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: false,
        // Every other 2xx is a failure.
        success: Success::Ok,
        // Three more tries; 5, 25 and 125 s is the documented example (webhook-requests).
        automatic_retries: Some(Duration::from_secs(155)),
        // The dashboard has a "Resend"; for how long it works is not published. Assumed as for Stripe. That it keeps
        // `meta.webhook_id` is reported by integrators and unconfirmed.
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "three times, after 5, 25 and 125 s: a longer outage loses events, so compare by its API",
        gives_up: "three retries of one event",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &["X-Signature", "X-Event-Name"],
        dev_secrets: &["hookgate_dev_lemon_squeezy"],
        sources: &[
            "docs.lemonsqueezy.com: help/webhooks/webhook-requests, help/webhooks/signing-requests",
            "captured deliveries in public repositories",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// No id is documented. Real deliveries carry `meta.webhook_id`, which differs from event to event. Where it is absent
/// the bytes are the identity, and nothing coarser: one subscription is updated many times, and the success of a
/// payment shares its invoice with the recovery of it. `X-Event-Name` repeats the type and is not signed, so it is not
/// read.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, test_mode, object, store, updated_at] = fields::read(
        verified.body(),
        &[
            "meta.webhook_id",
            "meta.event_name",
            "meta.test_mode",
            "data.id",
            "data.attributes.store_id",
            "data.attributes.updated_at",
        ],
    )?;
    let event = Event::identified(&id, &event_type, verified.body().clone())?
        .with_type(&event_type)
        .with_object(&object)
        .with_account(&store)
        .with_mode(mode(&test_mode))
        .with_time(&updated_at);
    Ok(event.into())
}

fn mode(test_mode: &Value<'_>) -> Mode {
    match test_mode {
        Value::Bool(true) => Mode::Test,
        Value::Bool(false) => Mode::Live,
        _ => Mode::Unknown,
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "order_created",
        body: include_str!("../../samples/lemon_squeezy/order_created.json"),
    },
    Template {
        event_type: "order_refunded",
        body: include_str!("../../samples/lemon_squeezy/order_refunded.json"),
    },
    Template {
        event_type: "subscription_created",
        body: include_str!("../../samples/lemon_squeezy/subscription_created.json"),
    },
    Template {
        event_type: "subscription_updated",
        body: include_str!("../../samples/lemon_squeezy/subscription_updated.json"),
    },
    Template {
        event_type: "subscription_payment_success",
        body: include_str!("../../samples/lemon_squeezy/subscription_payment_success.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    let number = (1_000_000 + serial % 9_000_000).to_string();
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "LemonSqueezy-Hookshot".to_owned()),
            ("X-Event-Name", template.event_type.to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("number", &number),
            ("time", &rfc3339_micros(now_ms)),
        ]),
        id,
    }
}
