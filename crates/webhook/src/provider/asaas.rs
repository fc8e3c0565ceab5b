//! Asaas.
//!
//! Sources: docs.asaas.com (faq-de-webhooks, penalizacao-de-filas, fila-pausada, erro-read-timed-out,
//! receba-eventos-do-asaas-no-seu-endpoint-de-webhook, como-implementar-idempotencia-em-webhooks, changelog); captured
//! deliveries in public repositories.

use std::time::Duration;

use hookgate_signature::{Scheme, Token, Tolerance, Verified};
use time::UtcOffset;
use time::macros::{format_description, offset};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, written};
use crate::value::Value;
use crate::{Event, ProviderTime, Reading, Unreadable, fields};

/// The zone of `dateCreated`, which names none. In a captured refund it lies three hours behind the UTC minute of the
/// transfer that it tells of; nothing published says so.
const BRASILIA: UtcOffset = offset!(-3);

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "asaas",
        title: "Asaas",
        // Nothing is signed: whoever has seen one delivery can send any other. Ask Asaas before money moves.
        scheme: Scheme::Token(Token {
            header: "asaas-access-token",
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "body `id`, with what stands after its `&`; without it a digest of the body and `event`",
            event_type: "body `event`",
            object: "`id` of the one object in the body beside `account`, e.g. `payment.id`",
            time: "body `dateCreated`, taken as UTC-3",
            account: "body `account.id`",
            mode: "",
        },
        answer_budget: Duration::from_secs(10),
        answer_budget_is_published: true,
        // The current FAQ says 200 alone, other pages any 2xx.
        success: Success::Ok,
        // Fifteen tries with pauses up to three hours add up to 12 h 50 min (penalizacao-de-filas).
        automatic_retries: Some(Duration::from_hours(13)),
        // A paused queue keeps its events for fourteen days and sends them all once somebody reactivates it
        // (fila-pausada).
        manual_resend: Some(Duration::from_hours(14 * 24)),
        retries_in_words: "fifteen tries in 13 h: after 30 s, 1, 3.5, 5, 15 and 25 min, five times 1 h, twice 2 h, 3 h",
        gives_up: "fifteen failures in a row pause the queue of this webhook until somebody reactivates it; its events are kept for fourteen days",
        // Worse than final: what is refused for good holds up all that stands behind it.
        client_error_is_final: true,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        // The token opens the source, so it is neither kept nor passed on.
        forwarded_headers: &[],
        dev_secrets: &["hookgate-dev-asaas-access-token"],
        sources: &[
            "docs.asaas.com: faq-de-webhooks, penalizacao-de-filas, fila-pausada, erro-read-timed-out, receba-eventos-do-asaas-no-seu-endpoint-de-webhook, como-implementar-idempotencia-em-webhooks, changelog",
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

/// The id counts whole. Before its `&` stands the type's own number, the same in every account; only what follows tells
/// two events of one type apart. Deliveries from before March 2024 have no id.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let body = verified.body();
    let [id, event_type, created, account] =
        fields::read(body, &["id", "event", "dateCreated", "account.id"])?;
    let event = Event::identified(&id, &event_type, body.clone())?
        .with_type(&event_type)
        .with_object(&object(body)?)
        .with_account(&account)
        .with_time_read(&created, ProviderTime::read_local(&created, BRASILIA));
    Ok(event.into())
}

/// The id of what the event is about: `payment`, `transfer`, `invoice` and more come without notice, so every object but
/// `account` is taken for it. Of two nothing says which is meant.
fn object(body: &[u8]) -> Result<Value<'_>, Unreadable> {
    let mut entities = fields::objects(fields::object(body)?)?
        .into_iter()
        .filter(|(name, _)| name != "account");
    match (entities.next(), entities.next()) {
        (Some((_, entity)), None) => {
            let [id] = fields::raw(entity, &["id"])?;
            Ok(Value::from_json(id))
        }
        _ => Ok(Value::Absent),
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "PAYMENT_CREATED",
        body: include_str!("../../samples/asaas/payment_created.json"),
    },
    Template {
        event_type: "PAYMENT_CONFIRMED",
        body: include_str!("../../samples/asaas/payment_confirmed.json"),
    },
    Template {
        event_type: "PAYMENT_REFUNDED",
        body: include_str!("../../samples/asaas/payment_refunded.json"),
    },
    Template {
        event_type: "TRANSFER_DONE",
        body: include_str!("../../samples/asaas/transfer_done.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    // As captured: one number for each type, whatever the account.
    let kind = match template.event_type {
        "PAYMENT_CREATED" => "05b708f961d739ea7eba7e4db318f621",
        "PAYMENT_CONFIRMED" => "15e444ff9b9ab9ec29294aa1abe68025",
        "PAYMENT_REFUNDED" => "d313266b1bd58128da69a2a96d82e79e",
        _ => "00000000000000000000000000fa4e00",
    };
    let id = format!("evt_{kind}&{serial}");
    let second = format_description!(version = 2, "[year]-[month]-[day] [hour]:[minute]:[second]");
    let day = format_description!(version = 2, "[year]-[month]-[day]");
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Java/17".to_owned()),
        ],
        body: template.fill(&[
            ("id", &id),
            ("number", &format!("{:012}", serial % 1_000_000_000_000)),
            ("time", &written(now_ms, BRASILIA, &second)),
            ("day", &written(now_ms, BRASILIA, &day)),
        ]),
        id,
    }
}
