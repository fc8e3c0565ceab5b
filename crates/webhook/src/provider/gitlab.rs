//! GitLab, in its two ways: a secret token, and since 19.0 a signing token, which is Standard Webhooks. A source
//! configured for signatures never falls back to the token.
//!
//! Sources: gitlabhq/gitlabhq (`app/services/web_hook_service.rb`), its merge request 230944; public integrations for
//! the form of signing tokens.

use std::time::Duration;

use hookgate_signature::{Scheme, StandardWebhooks, Token, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: KNOWLEDGE,
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

pub(super) const SIGNED_DEFINITION: Definition = Definition {
    knowledge: SIGNED_KNOWLEDGE,
    read: read_signed,
    ..DEFINITION
};

const KNOWLEDGE: Knowledge = Knowledge {
    name: "gitlab",
    title: "GitLab",
    // Nothing is signed.
    scheme: Scheme::Token(Token {
        header: "X-Gitlab-Token",
    }),
    tolerance: Tolerance::Off,
    url: UrlUse::Unused,
    places: Places {
        id: "header `Idempotency-Key`; without it a digest of the body and `X-Gitlab-Event`",
        event_type: "header `X-Gitlab-Event`",
        object: "body `object_attributes.id`",
        time: "",
        account: "header `X-Gitlab-Instance`",
        mode: "",
    },
    answer_budget: Duration::from_secs(10),
    answer_budget_is_published: true,
    // It takes every 2xx, and redirects too.
    success: Success::Ok,
    // The id is kept over retries, but no schedule of them is documented, so none is relied on.
    automatic_retries: None,
    // From a hook's list of recent events; for how long is unconfirmed. A week is assumed, as for GitHub.
    manual_resend: Some(Duration::from_hours(7 * 24)),
    retries_in_words: "no schedule is documented, so none is relied on",
    gives_up: "repeated failures disable the hook",
    client_error_is_final: false,
    refusal_status: 400,
    body_bytes_max: Some(25 * 1024 * 1024),
    id_is_signed: false,
    content_path: None,
    batches: false,
    handshake: "",
    // The token opens the source, so it is neither kept nor passed on. `Idempotency-Key` is the name under which a target
    // gets the gateway's own key.
    forwarded_headers: &[
        "X-Gitlab-Event",
        "X-Gitlab-Instance",
        "X-Gitlab-Event-UUID",
        "X-Gitlab-Webhook-UUID",
    ],
    dev_secrets: &["hookgate-dev-gitlab-token"],
    sources: &["gitlabhq/gitlabhq: app/services/web_hook_service.rb"],
};

const SIGNED_KNOWLEDGE: Knowledge = Knowledge {
    name: "gitlab_signed",
    title: "GitLab (signing token)",
    scheme: Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED),
    tolerance: Tolerance::Both(Duration::from_secs(300)),
    places: Places {
        id: "header `webhook-id`",
        ..KNOWLEDGE.places
    },
    id_is_signed: true,
    // The three headers of the signature have the names of the gateway's own, so a target does not get them.
    dev_secrets: &["whsec_aG9va2dhdGUtZGV2LWdpdGxhYi1zaWduaW5nLWtleSE="],
    sources: &[
        "gitlabhq/gitlabhq: app/services/web_hook_service.rb, merge request 230944",
        "public integrations, for the form of the token",
    ],
    ..KNOWLEDGE
};

/// GitLab before 17.4 sends no `Idempotency-Key`. No other header serves: `X-Gitlab-Webhook-UUID` is drawn for every
/// attempt, and `X-Gitlab-Event-UUID` is shared by all hooks that one change sets off.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let object = object(verified)?;
    let id = Value::from_header(verified.headers(), "Idempotency-Key");
    let event_type = Value::from_header(verified.headers(), "X-Gitlab-Event");
    let event = Event::identified(&id, &event_type, verified.body().clone())?;
    Ok(described(event, verified, &object).into())
}

/// `webhook-id` is the same as the `Idempotency-Key`, and signed.
fn read_signed(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let object = object(verified)?;
    let id =
        Value::from_header(verified.headers(), "webhook-id").event_id("the webhook-id header is missing")?;
    let event = Event::new(id, verified.body().clone());
    Ok(described(event, verified, &object).into())
}

/// Pushes have none. A custom template may have changed the body altogether.
fn object<'a>(verified: &'a Verified<'_>) -> Result<Value<'a>, Unreadable> {
    let [object] = fields::read(verified.body(), &["object_attributes.id"])?;
    Ok(object)
}

fn described(event: Event, verified: &Verified<'_>, object: &Value<'_>) -> Event {
    let header = |name| Value::from_header(verified.headers(), name);
    event
        .with_type(&header("X-Gitlab-Event"))
        .with_object(object)
        .with_account(&header("X-Gitlab-Instance"))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "Push Hook",
        body: include_str!("../../samples/gitlab/push.json"),
    },
    Template {
        event_type: "Merge Request Hook",
        body: include_str!("../../samples/gitlab/merge_request.json"),
    },
    Template {
        event_type: "Issue Hook",
        body: include_str!("../../samples/gitlab/issue.json"),
    },
    Template {
        event_type: "Pipeline Hook",
        body: include_str!("../../samples/gitlab/pipeline.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "GitLab/19.1.0".to_owned()),
            ("Idempotency-Key", id.clone()),
            ("X-Gitlab-Event", template.event_type.to_owned()),
            ("X-Gitlab-Instance", "https://gitlab.example.com".to_owned()),
            ("X-Gitlab-Event-UUID", uuid(!serial)),
            ("X-Gitlab-Webhook-UUID", uuid(serial.rotate_left(64))),
        ],
        body: template.fill(&[
            ("sha", &format!("{serial:040x}")),
            ("number", &(1 + serial % 1_000_000_000).to_string()),
            ("time", &rfc3339(now_ms)),
        ]),
        id,
    }
}
