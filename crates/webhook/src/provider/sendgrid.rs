//! SendGrid's event webhook.
//!
//! Source: @sendgrid/eventwebhook 8.0.0. What it does not tell is commonly known about SendGrid and called unconfirmed.

use std::time::Duration;

use bytes::Bytes;
use hookgate_signature::{
    Algorithm, Encoding, KeyForm, Part, Scheme, SignedText, Timestamp, Tolerance, Unit, Verified,
};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template};
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "sendgrid",
        title: "SendGrid",
        // The key is the public key from the settings: the base64 of its DER.
        scheme: Scheme::SignedText(SignedText {
            header: "X-Twilio-Email-Event-Webhook-Signature",
            prefix: "",
            encoding: Encoding::Base64,
            algorithm: Algorithm::EcdsaP256Sha256,
            key: KeyForm::KeyPair,
            timestamp: Some(Timestamp {
                header: "X-Twilio-Email-Event-Webhook-Timestamp",
                unit: Unit::Seconds,
            }),
            parts: &[Part::Timestamp, Part::Body],
        }),
        // The SDK checks none, and whether a retry is signed anew is not told.
        tolerance: Tolerance::OnRequest,
        url: UrlUse::Unused,
        places: Places {
            id: "`sg_event_id` of each element",
            event_type: "its `event`",
            object: "its `sg_message_id`",
            time: "its `timestamp`",
            account: "",
            mode: "",
        },
        // Three seconds, and tries for a day: both unconfirmed.
        answer_budget: Duration::from_secs(3),
        answer_budget_is_published: false,
        success: Success::Ok,
        automatic_retries: Some(Duration::from_hours(24)),
        manual_resend: None,
        retries_in_words: "with growing pauses for up to 24 h (unconfirmed)",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: true,
        content_path: None,
        batches: true,
        handshake: "",
        // A row holds one event, and the signature covers all of them.
        forwarded_headers: &[],
        // A private key, so that samples can be signed; a real endpoint has the public half.
        dev_secrets: &[
            "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbE+JulVmR4kc+TF1a1KvFlyQ1SflO0Wh7wAFr/GHiLShRANCAARDye9+iQv+46CDWfViLWyq0knWF5ucipUjNd8t9agQhpMxWhxkvh7AFZaB6G+NgDvd/PkUYzkVCzk+dg8CZEYW",
        ],
        sources: &["@sendgrid/eventwebhook 8.0.0"],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// An array of events, at least one, with a line break behind it that is signed like the rest. `sg_event_id` is meant
/// for telling duplicates apart; an open issue of the SDK reports it changed on a retry, and such a retry is a new
/// event here too.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    match &*fields::elements(body)? {
        [] => Err(Unreadable::MalformedBody("it holds no event".to_owned())),
        elements => Reading::batch(body, elements, event),
    }
}

fn event(element: Bytes) -> Result<Event, Unreadable> {
    let [id, event_type, message, timestamp] =
        fields::read(&element, &["sg_event_id", "event", "sg_message_id", "timestamp"])?;
    let id = id.event_id("an event has no `sg_event_id`; SendGrid gives every event one, as text")?;
    Ok(Event::new(id, element.clone())
        .with_type(&event_type)
        .with_object(&message)
        .with_time(&timestamp))
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "delivered",
        body: include_str!("../../samples/sendgrid/delivered.json"),
    },
    Template {
        event_type: "open",
        body: include_str!("../../samples/sendgrid/open.json"),
    },
    Template {
        event_type: "bounce",
        body: include_str!("../../samples/sendgrid/bounce.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = format!("{serial:022x}");
    let filled = template.fill(&[("id", &id), ("unix", &(now_ms / 1000).to_string())]);
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "SendGrid Event API".to_owned()),
        ],
        body: Bytes::from([&filled[..], b"\r\n"].concat()),
        id,
    }
}
