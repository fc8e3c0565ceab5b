//! Razorpay.
//!
//! Sources: razorpay 2.9.8 (Node), razorpay 2.0.1 (Python), razorpay.com/docs/webhooks (best-practices, faqs,
//! replay-events).

use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "razorpay",
        title: "Razorpay",
        // The webhook's own secret, not the one of the API. Retries of older events keep the secret of their time.
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["X-Razorpay-Signature"],
            prefix: "",
            encoding: Encoding::Hex,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "header `X-Razorpay-Event-Id`",
            event_type: "body `event`",
            object: "body `payload.<name>.entity.id`, with the first name of `contains`",
            time: "body `created_at`",
            account: "body `account_id`",
            mode: "",
        },
        answer_budget: Duration::from_secs(5),
        answer_budget_is_published: true,
        success: Success::Ok,
        automatic_retries: Some(Duration::from_hours(24)),
        // From the dashboard, signed with the secret of today (replay-events).
        manual_resend: Some(Duration::from_hours(7 * 24)),
        retries_in_words: "with growing pauses for 24 h after the event",
        gives_up: "24 h of failures disable the webhook",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: Some("payload"),
        batches: false,
        handshake: "",
        forwarded_headers: &["X-Razorpay-Signature", "X-Razorpay-Event-Id"],
        dev_secrets: &["hookgate_dev_razorpay"],
        sources: &[
            "razorpay 2.9.8 (Node), razorpay 2.0.1 (Python)",
            "razorpay.com/docs/webhooks: best-practices, faqs, replay-events",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The id stands in a header that is not signed, the same on every retry. One payment makes several events, in any
/// order.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let text = fields::object(verified.body())?;
    let [event_type, created_at, account, contains] =
        fields::raw(text, &["event", "created_at", "account_id", "contains"])?;
    let object = match contains.and_then(|list| first_name(list.get())) {
        Some(name) => object(text, &name)?,
        None => Value::Absent,
    };
    let id = Value::from_header(verified.headers(), "X-Razorpay-Event-Id")
        .event_id("the X-Razorpay-Event-Id header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&Value::from_json(event_type))
        .with_object(&object)
        .with_account(&Value::from_json(account))
        .with_time(&Value::from_json(created_at));
    Ok(event.into())
}

/// What the event is about comes first in `contains`: `["payment", "order"]`. The rest of the list is not looked at. A
/// name with a dot in it would be taken for two; Razorpay writes none.
fn first_name(list: &str) -> Option<String> {
    let mut rest = serde_json::Deserializer::from_str(list.strip_prefix('[')?).into_iter::<String>();
    rest.next()?.ok().filter(|name| !name.contains('.'))
}

fn object<'a>(text: &'a str, name: &str) -> Result<Value<'a>, Unreadable> {
    let path = format!("payload.{name}.entity.id");
    let [id] = fields::raw(text, &[&*path])?;
    Ok(Value::from_json(id))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "payment.captured",
        body: include_str!("../../samples/razorpay/payment.captured.json"),
    },
    Template {
        event_type: "order.paid",
        body: include_str!("../../samples/razorpay/order.paid.json"),
    },
    Template {
        event_type: "refund.processed",
        body: include_str!("../../samples/razorpay/refund.processed.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = format!("{serial:014x}");
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Razorpay-Webhook/v1".to_owned()),
            ("X-Razorpay-Event-Id", id.clone()),
        ],
        body: template.fill(&[("serial", &id), ("unix", &(now_ms / 1000).to_string())]),
        id,
    }
}
