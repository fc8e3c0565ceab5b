//! Stripe.
//!
//! Sources: Stripe's documentation (webhooks, process-undelivered-events, checkout/fulfillment) and its
//! SDKs (stripe-node 23.1.0, stripe-python 16.1.0, stripe-go v86).

use std::time::Duration;

use hookgate_signature::{Scheme, TimestampedList, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template};
use crate::value::Value;
use crate::{Event, Mode, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "stripe",
        title: "Stripe",
        // `v0` is a fake scheme that test mode adds. The key is the whole secret with its `whsec_`.
        scheme: Scheme::TimestampedList(TimestampedList {
            header: "Stripe-Signature",
            timestamp: "t",
            signature: "v1",
            separator: b',',
            joiner: b'.',
        }),
        // The SDKs' default. None of them refuses a timestamp from the future.
        tolerance: Tolerance::Past(Duration::from_secs(300)),
        url: UrlUse::Unused,
        places: Places {
            id: "body `id`",
            event_type: "body `type`",
            object: "body `data.object.id`; thin events `related_object.id`",
            time: "body `created`",
            account: "body `account` (Connect)",
            mode: "body `livemode`",
        },
        // Not published. Ten seconds is how long Checkout waits before it sends the buyer on.
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: false,
        success: Success::Ok,
        // Live mode; in a sandbox three times over a few hours (docs.stripe.com/webhooks).
        automatic_retries: Some(Duration::from_hours(3 * 24)),
        // By the CLI; from the Dashboard fifteen days (docs.stripe.com/webhooks/process-undelivered-events).
        manual_resend: Some(Duration::from_hours(30 * 24)),
        retries_in_words: "live: for three days with growing pauses; sandbox: three times over a few hours",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: Some("data"),
        batches: false,
        handshake: "",
        forwarded_headers: &["Stripe-Signature"],
        dev_secrets: &["whsec_hookgate_dev_stripe"],
        sources: &[
            "docs.stripe.com/webhooks",
            "docs.stripe.com/webhooks/process-undelivered-events",
            "docs.stripe.com/checkout/fulfillment",
            "stripe-node 23.1.0, stripe-python 16.1.0, stripe-go v86",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// Everything stands in the signed body. `data.object.id` is not always there: a Balance has no id, nor
/// had an upcoming invoice in older API versions. A thin event (`v2.core.event`) names the object it is
/// about in `related_object`. `account` is the connected account.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [
        id,
        object,
        event_type,
        created,
        account,
        livemode,
        snapshot,
        related,
    ] = fields::read(
        verified.body(),
        &[
            "id",
            "object",
            "type",
            "created",
            "account",
            "livemode",
            "data.object.id",
            "related_object.id",
        ],
    )?;
    let id = id.event_id("the body has no `id`; Stripe gives every event one, as text")?;
    let about = match object.is("v2.core.event") {
        true => related,
        false => snapshot,
    };
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&about)
        .with_account(&account)
        .with_mode(mode(&livemode))
        .with_time(&created);
    Ok(event.into())
}

fn mode(livemode: &Value<'_>) -> Mode {
    match livemode {
        Value::Bool(true) => Mode::Live,
        Value::Bool(false) => Mode::Test,
        _ => Mode::Unknown,
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "invoice.paid",
        body: include_str!("../../samples/stripe/invoice.paid.json"),
    },
    Template {
        event_type: "payment_intent.succeeded",
        body: include_str!("../../samples/stripe/payment_intent.succeeded.json"),
    },
    Template {
        event_type: "checkout.session.completed",
        body: include_str!("../../samples/stripe/checkout.session.completed.json"),
    },
    Template {
        event_type: "customer.subscription.updated",
        body: include_str!("../../samples/stripe/customer.subscription.updated.json"),
    },
    Template {
        event_type: "charge.refunded",
        body: include_str!("../../samples/stripe/charge.refunded.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let serial = format!("{serial:024x}");
    let id = format!("evt_{serial}");
    let unix = (now_ms / 1000).to_string();
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            (
                "User-Agent",
                "Stripe/1.0 (+https://stripe.com/docs/webhooks)".to_owned(),
            ),
        ],
        body: template.fill(&[("id", &id), ("serial", &serial), ("unix", &unix)]),
        id,
    }
}
