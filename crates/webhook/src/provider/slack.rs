//! Slack: the Events API, slash commands and interactivity.
//!
//! Sources: @slack/bolt 5.1.0 (`verify-request`), slack_sdk 3.48.0 (`signature`). Where they are silent, what is
//! commonly known about Slack is used and called unconfirmed.

use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, Tolerance, Unit, Verified,
};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template};
use crate::value::Value;
use crate::{Answer, Event, Reading, Unreadable, fields, form};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "slack",
        title: "Slack",
        // `v0` is the only version there is; both SDKs refuse any other.
        scheme: Scheme::SignedText(SignedText {
            header: "X-Slack-Signature",
            prefix: "v0=",
            encoding: Encoding::Hex,
            algorithm: Algorithm::HmacSha256,
            key: KeyForm::Text,
            timestamp: Some(Timestamp {
                header: "X-Slack-Request-Timestamp",
                unit: Unit::Seconds,
            }),
            parts: &[Part::Text("v0:"), Part::Timestamp, Part::Text(":"), Part::Body],
        }),
        // slack_sdk refuses both directions, bolt the past alone; the stricter of the two. Every try is signed anew.
        tolerance: Tolerance::Both(Duration::from_secs(300)),
        url: UrlUse::Unused,
        places: Places {
            id: "body `event_id`; commands and interactions have none",
            event_type: "body `event.type`, else `type`; commands and interactions have none",
            object: "",
            time: "body `event_time`",
            account: "body `team_id`; interactions `team.id`",
            mode: "",
        },
        answer_budget: Duration::from_secs(3),
        answer_budget_is_published: true,
        success: Success::Ok,
        // Three tries within about six minutes; who switched delayed events on is served hourly for a day beyond. Both
        // are unconfirmed, and the longer one errs on the safe side.
        automatic_retries: Some(Duration::from_hours(25)),
        manual_resend: None,
        retries_in_words: "at once, after 1 min and after 5 min (unconfirmed); commands and interactions never (unconfirmed)",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: false,
        handshake: "`url_verification` when a URL is entered: its challenge is sent back",
        forwarded_headers: &["X-Slack-Signature", "X-Slack-Request-Timestamp"],
        dev_secrets: &["hookgate_dev_slack"],
        sources: &["@slack/bolt 5.1.0", "slack_sdk 3.48.0"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The signed bytes tell JSON from a form, since the content type is not signed and no form begins with a brace.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match text.trim_ascii_start().first() {
        Some(b'{') => read_json(body),
        _ => read_form(body),
    }
}

/// An `event_callback` always has an id, the same on every retry. Other envelopes, such as a warning that events were
/// left out, have none and no `event` inside; their own type is the event's.
fn read_json(body: &Bytes) -> Result<Reading, Unreadable> {
    let [envelope, id, inner, time, team, challenge] = fields::read(
        body,
        &[
            "type",
            "event_id",
            "event.type",
            "event_time",
            "team_id",
            "challenge",
        ],
    )?;
    let callback = envelope.is("event_callback");
    let event_type = if callback { &inner } else { &envelope };
    let event = match id {
        Value::Absent if !callback => Event::without_id(event_type, body.clone()),
        id => Event::new(
            id.event_id("the body has no `event_id`; Slack gives every event_callback one")?,
            body.clone(),
        ),
    };
    let event = event.with_type(event_type).with_account(&team).with_time(&time);
    match envelope.is("url_verification") {
        true => Ok(Reading::handshake(event, echo(&challenge)?)),
        false => Ok(event.into()),
    }
}

/// The challenge goes back as it came, and no secret touches it. Slack's has some fifty letters; what is no short
/// printable text is not repeated.
fn echo(challenge: &Value<'_>) -> Result<Answer, Unreadable> {
    let challenge = challenge.text().ok_or_else(|| {
        Unreadable::MalformedBody(
            "its challenge is no text of 1 to 255 bytes without control characters".to_owned(),
        )
    })?;
    Ok(Answer {
        status: 200,
        content_type: "application/json",
        body: serde_json::json!({ "challenge": challenge.as_str() }).to_string(),
    })
}

/// A slash command, or an interaction whose JSON stands in `payload`. Neither has an id, so their bytes identify them:
/// each holds a trigger of its own.
fn read_form(body: &Bytes) -> Result<Reading, Unreadable> {
    let event = Event::without_id(&Value::Absent, body.clone());
    let event = match (form::sole(body, "payload")?, form::sole(body, "command")?) {
        (Value::Text(payload), Value::Absent) => {
            let [team] = fields::read(payload.as_bytes(), &["team.id"])?;
            event.with_account(&team)
        }
        (Value::Absent, Value::Text(_)) => event.with_account(&form::sole(body, "team_id")?),
        _ => {
            return Err(Unreadable::MalformedBody(
                "it is neither JSON nor a form with `command` or with `payload`".to_owned(),
            ));
        }
    };
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "app_mention",
        body: include_str!("../../samples/slack/app_mention.json"),
    },
    Template {
        event_type: "message",
        body: include_str!("../../samples/slack/message.json"),
    },
    Template {
        event_type: "reaction_added",
        body: include_str!("../../samples/slack/reaction_added.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = format!("Ev{serial:010X}");
    let unix = (now_ms / 1000).to_string();
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            (
                "User-Agent",
                "Slackbot 1.0 (+https://api.slack.com/robots)".to_owned(),
            ),
        ],
        body: template.fill(&[("id", &id), ("unix", &unix)]),
        id,
    }
}
