//! RevenueCat, in the two ways that its dashboard offers: a static `Authorization`, and HMAC signatures. What is sent is
//! the same. A source configured for signatures never falls back to the static value.
//!
//! Sources: RevenueCat/docs (integrations/webhooks, webhooks/event-types-and-fields); for the signatures about ten
//! public integrations that agree with each other, since no page of RevenueCat's own was found.

use std::time::Duration;

use hookgate_signature::{Scheme, TimestampedList, Token, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, uuid};
use crate::value::Value;
use crate::{Event, Mode, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: KNOWLEDGE,
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

pub(super) const HMAC_DEFINITION: Definition = Definition {
    knowledge: HMAC_KNOWLEDGE,
    ..DEFINITION
};

const KNOWLEDGE: Knowledge = Knowledge {
    name: "revenuecat",
    title: "RevenueCat",
    // Nothing is signed. The value is sent as it was typed into the dashboard, a `Bearer ` before it included.
    scheme: Scheme::Token(Token {
        header: "Authorization",
    }),
    tolerance: Tolerance::Off,
    url: UrlUse::Unused,
    places: Places {
        id: "body `event.id`",
        event_type: "body `event.type`",
        object: "body `event.original_transaction_id`",
        time: "body `event.event_timestamp_ms`",
        account: "body `event.app_id`",
        mode: "body `event.environment`",
    },
    // It hangs up then (integrations/webhooks).
    answer_budget: Duration::from_secs(60),
    answer_budget_is_published: true,
    success: Success::Ok,
    // 5 + 10 + 20 + 40 + 80 min.
    automatic_retries: Some(Duration::from_mins(155)),
    // The dashboard has a retry; for how long is not published. Assumed as for Stripe.
    manual_resend: Some(Duration::from_hours(30 * 24)),
    retries_in_words: "five times, after 5, 10, 20, 40 and 80 min",
    gives_up: "five retries of one event",
    client_error_is_final: false,
    refusal_status: 400,
    body_bytes_max: None,
    id_is_signed: false,
    content_path: None,
    batches: false,
    // Its TEST event is an event like any other.
    handshake: "",
    // The value opens the source, so it is neither kept nor passed on.
    forwarded_headers: &[],
    dev_secrets: &["Bearer hookgate_dev_revenuecat"],
    sources: &["RevenueCat/docs: integrations/webhooks, integrations/webhooks/event-types-and-fields"],
};

const HMAC_KNOWLEDGE: Knowledge = Knowledge {
    name: "revenuecat_hmac",
    title: "RevenueCat (HMAC)",
    // Some texts of RevenueCat call the header `X-RevenueCat-Signature`; no integration that was found reads it.
    scheme: Scheme::TimestampedList(TimestampedList {
        header: "X-RevenueCat-Webhook-Signature",
        timestamp: "t",
        signature: "v1",
        separator: b',',
        joiner: b'.',
    }),
    // What integrations use; RevenueCat's own number is unconfirmed. Each retry is signed anew.
    tolerance: Tolerance::Both(Duration::from_secs(300)),
    id_is_signed: true,
    forwarded_headers: &["X-RevenueCat-Webhook-Signature"],
    dev_secrets: &["hookgate_dev_revenuecat_hmac"],
    sources: &[
        "RevenueCat/docs: integrations/webhooks, integrations/webhooks/event-types-and-fields",
        "about ten public integrations, for the signature; unconfirmed by RevenueCat",
    ],
    ..KNOWLEDGE
};

/// The id is the same on every retry. A TRANSFER names two customers and no transaction, so it has no object. New types
/// come without notice and are events too.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, event_type, transaction, time, app, environment] = fields::read(
        verified.body(),
        &[
            "event.id",
            "event.type",
            "event.original_transaction_id",
            "event.event_timestamp_ms",
            "event.app_id",
            "event.environment",
        ],
    )?;
    let id = id.event_id("the body has no `event.id`; RevenueCat gives every event one, as text")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&transaction)
        .with_account(&app)
        .with_mode(mode(&environment))
        .with_time(&time);
    Ok(event.into())
}

fn mode(environment: &Value<'_>) -> Mode {
    if environment.is("PRODUCTION") {
        Mode::Live
    } else if environment.is("SANDBOX") {
        Mode::Test
    } else {
        Mode::Unknown
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "INITIAL_PURCHASE",
        body: include_str!("../../samples/revenuecat/initial_purchase.json"),
    },
    Template {
        event_type: "RENEWAL",
        body: include_str!("../../samples/revenuecat/renewal.json"),
    },
    Template {
        event_type: "CANCELLATION",
        body: include_str!("../../samples/revenuecat/cancellation.json"),
    },
    Template {
        event_type: "TRANSFER",
        body: include_str!("../../samples/revenuecat/transfer.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial).to_uppercase();
    let number = (100_000_000_000_000 + serial % 900_000_000_000_000).to_string();
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "RevenueCat".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("number", &number),
            ("now_ms", &now_ms.to_string()),
            ("bought_ms", &now_ms.saturating_sub(4_679).to_string()),
            ("ends_ms", &now_ms.saturating_add(604_800_000).to_string()),
        ]),
        id,
    }
}
