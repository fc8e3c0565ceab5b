//! GitHub.
//!
//! Sources: GitHub's documentation (validating-webhook-deliveries, best-practices-for-using-webhooks,
//! handling-failed-webhook-deliveries, redelivering-webhooks) and @octokit/webhooks-methods 6.0.0.

use std::borrow::Cow;
use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Headers, Scheme, Tolerance, Verified};
use percent_encoding::percent_decode;

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, nineteen_digits, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "github",
        title: "GitHub",
        // The SHA-1 in `X-Hub-Signature` accompanies it and is not accepted.
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["X-Hub-Signature-256"],
            prefix: "sha256=",
            encoding: Encoding::Hex,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "header `X-GitHub-Delivery`",
            event_type: "header `X-GitHub-Event`",
            object: "",
            time: "",
            account: "headers `X-GitHub-Hook-Installation-Target-Type` and `-ID`",
            mode: "",
        },
        // Ten seconds on github.com; Enterprise Server waits thirty.
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: true,
        success: Success::Ok,
        // A failure stays failed until somebody redelivers it (handling-failed-webhook-deliveries).
        automatic_retries: None,
        // By hand or by the API while the delivery is kept, with its id (redelivering-webhooks): some days, fewer than
        // seven on github.com.
        manual_resend: Some(Duration::from_hours(7 * 24)),
        retries_in_words: "none: a failure stays failed until somebody redelivers it",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        // Larger events are not delivered at all.
        body_bytes_max: Some(25 * 1024 * 1024),
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[
            "X-Hub-Signature-256",
            "X-Hub-Signature",
            "X-GitHub-Delivery",
            "X-GitHub-Event",
            "X-GitHub-Hook-ID",
            "X-GitHub-Hook-Installation-Target-ID",
            "X-GitHub-Hook-Installation-Target-Type",
        ],
        dev_secrets: &["hookgate_dev_github"],
        sources: &[
            "docs.github.com: validating-webhook-deliveries, best-practices-for-using-webhooks, handling-failed-webhook-deliveries, redelivering-webhooks",
            "@octokit/webhooks-methods 6.0.0",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// Id and type stand in headers, which are not signed; of the signed body only the form is checked. The
/// redelivery of an event keeps the id. There is no event time, and test mode does not exist.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    fields::check(&json(verified.body())?)?;
    let header = |name| Value::from_header(verified.headers(), name);
    let id = header("X-GitHub-Delivery").event_id("the X-GitHub-Delivery header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&header("X-GitHub-Event"))
        .with_account(&account(verified.headers()));
    Ok(event.into())
}

/// The JSON of the body. A hook may be set to send a form with the JSON in `payload`; the MAC covers the
/// form as sent. The signed bytes tell which it is, since the content type is not signed and no JSON
/// object begins like the form.
fn json(body: &[u8]) -> Result<Cow<'_, [u8]>, Unreadable> {
    if !body.starts_with(b"payload=") {
        return Ok(Cow::Borrowed(body));
    }
    let mut payloads = body
        .split(|&b| b == b'&')
        .filter_map(|pair| pair.strip_prefix(b"payload="));
    match (payloads.next(), payloads.next()) {
        (Some(payload), None) => Ok(Cow::Owned(form_decode(payload))),
        _ => Err(Unreadable::MalformedBody("`payload` occurs twice".to_owned())),
    }
}

/// A form writes a space as `+`, and a plus as an escape.
fn form_decode(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    for (index, word) in value.split(|&b| b == b'+').enumerate() {
        if index > 0 {
            decoded.push(b' ');
        }
        decoded.extend(percent_decode(word));
    }
    decoded
}

/// Where the hook is installed, e.g. `repository:79929171`: one event sent to a repository's hook and to
/// its organisation's hook comes under two ids.
fn account<'a>(headers: &Headers<'a>) -> Value<'a> {
    let kind = Value::from_header(headers, "X-GitHub-Hook-Installation-Target-Type");
    let id = Value::from_header(headers, "X-GitHub-Hook-Installation-Target-ID");
    match (kind, id) {
        (Value::Text(kind), Value::Text(id)) => Value::Text(Cow::Owned(format!("{kind}:{id}"))),
        (broken @ Value::Broken(_), _) | (_, broken @ Value::Broken(_)) => broken,
        _ => Value::Absent,
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "push",
        body: include_str!("../../samples/github/push.json"),
    },
    Template {
        event_type: "ping",
        body: include_str!("../../samples/github/ping.json"),
    },
    Template {
        event_type: "pull_request",
        body: include_str!("../../samples/github/pull_request.json"),
    },
    Template {
        event_type: "issues",
        body: include_str!("../../samples/github/issues.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    let sha = format!("{serial:040x}");
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Accept", "*/*".to_owned()),
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "GitHub-Hookshot/044aadd".to_owned()),
            ("X-GitHub-Delivery", id.clone()),
            ("X-GitHub-Event", template.event_type.to_owned()),
            ("X-GitHub-Hook-ID", "292430182".to_owned()),
            ("X-GitHub-Hook-Installation-Target-ID", "79929171".to_owned()),
            ("X-GitHub-Hook-Installation-Target-Type", "repository".to_owned()),
        ],
        body: template.fill(&[
            ("sha", &sha),
            ("number", &nineteen_digits(serial)),
            ("time", &rfc3339(now_ms)),
        ]),
        id,
    }
}
