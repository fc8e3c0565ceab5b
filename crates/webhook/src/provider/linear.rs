//! Linear.
//!
//! Sources: @linear/sdk 98.0.0 (`webhooks`), and linear.app/developers/webhooks as public repositories quote it.

use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Refusal, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

/// Where the signed time stands. The header `Linear-Timestamp` says the same and is not signed.
const SIGNED_AT: &str = "webhookTimestamp";

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "linear",
        title: "Linear",
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["Linear-Signature"],
            prefix: "",
            encoding: Encoding::Hex,
        }),
        // As in the SDK. Whether a retry is stamped anew is unconfirmed; if it is not, only a tolerance of seven hours
        // lets the last one pass.
        tolerance: Tolerance::Both(Duration::from_secs(60)),
        url: UrlUse::Unused,
        places: Places {
            id: "header `Linear-Delivery`",
            event_type: "body `type`",
            object: "body `data.id`",
            time: "body `createdAt`",
            account: "body `organizationId`",
            mode: "",
        },
        answer_budget: Duration::from_secs(5),
        answer_budget_is_published: true,
        success: Success::Ok,
        automatic_retries: Some(Duration::from_hours(8)),
        manual_resend: None,
        retries_in_words: "after 1 min, 1 h and 6 h",
        gives_up: "failures that go on: the webhook may be disabled",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[
            "Linear-Signature",
            "Linear-Delivery",
            "Linear-Event",
            "Linear-Timestamp",
        ],
        dev_secrets: &["lin_wh_hookgate_dev_linear"],
        sources: &["@linear/sdk 98.0.0", "linear.app/developers/webhooks, as quoted"],
    },
    read,
    seals: None,
    signed_at: Some(signed_at),
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The id is a header, the same on every retry and not signed: within the tolerance, who has seen a delivery can send
/// it under another. The type is read from the signed body and not from `Linear-Event`.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [event_type, object, created, organization] = fields::read(
        verified.body(),
        &["type", "data.id", "createdAt", "organizationId"],
    )?;
    let id = Value::from_header(verified.headers(), "Linear-Delivery")
        .event_id("the Linear-Delivery header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(&object)
        .with_account(&organization)
        .with_time(&created);
    Ok(event.into())
}

/// Milliseconds, as a whole number. A body without a time is as good as unsigned: it could be sent again for ever.
fn signed_at(verified: &Verified<'_>) -> Result<i64, Refusal> {
    let malformed = |problem| Refusal::MalformedSignature {
        header: SIGNED_AT,
        problem,
    };
    let [at] = fields::read(verified.body(), &[SIGNED_AT])
        .map_err(|_| malformed("the body is not a JSON object that holds it once"))?;
    match at {
        Value::Absent => Err(Refusal::MissingSignature(SIGNED_AT)),
        Value::Number(digits) => digits
            .parse::<i64>()
            .map(|unix_ms| unix_ms.div_euclid(1000))
            .map_err(|_| malformed("it is not a whole number of milliseconds")),
        _ => Err(malformed("it is not a whole number of milliseconds")),
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "Issue",
        body: include_str!("../../samples/linear/Issue.json"),
    },
    Template {
        event_type: "Comment",
        body: include_str!("../../samples/linear/Comment.json"),
    },
    Template {
        event_type: "Project",
        body: include_str!("../../samples/linear/Project.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json; charset=utf-8".to_owned()),
            ("User-Agent", "Linear-Webhook".to_owned()),
            ("Linear-Delivery", id.clone()),
            ("Linear-Event", template.event_type.to_owned()),
            ("Linear-Timestamp", now_ms.to_string()),
        ],
        body: template.fill(&[
            ("uuid", &id),
            ("time", &rfc3339(now_ms)),
            ("unix_ms", &now_ms.to_string()),
        ]),
        id,
    }
}
