//! Mercado Pago. What it signs is a text of three parts, and not the body: see `manifest`.
//!
//! So the body may be anybody's, and a target has to ask Mercado Pago for the object before it believes a word. What is
//! kept as the object's id is the signed one of the URL; a body that names another is not refused, because the rest of
//! it is no better, but its id is not kept, and that is counted.
//!
//! Old IPN calls (`?topic=…&id=…`) and QR Code notifications are not signed at all and are refused.
//!
//! Sources: mercadopago 3.6.1 (Node) and the histories of sdk-nodejs, sdk-php and sdk-python from May to August 2026;
//! mercadopago/devsite-docs (your-integrations/webhooks); the Orders API's page on notifications.

mod manifest;

use std::time::Duration;

use hookgate_signature::{Algorithm, Detached, Encoding, KeyForm, Keys, Scheme, Tolerance, Verified};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use time::macros::{format_description, offset};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::{Definition, Sending, Signed};
use crate::sample::{Sample, Template, nineteen_digits, uuid, written};
use crate::value::Value;
use crate::{Dropped, Event, Mode, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "mercado_pago",
        title: "Mercado Pago",
        scheme: Scheme::Detached(Detached {
            header: manifest::SIGNATURE,
            signs: "`id:<data.id of the query>;request-id:<x-request-id>;ts:<ts>;`, absent parts left out; not the body",
            algorithms: &[Algorithm::HmacSha256],
            key: KeyForm::Text,
        }),
        // The SDKs check the time only when they are asked to, then in both directions.
        tolerance: Tolerance::OnRequest,
        url: UrlUse::Query,
        places: Places {
            id: "body `id`, a number or text",
            event_type: "body `action`, else `type`",
            object: "query `data.id`, which is signed; without it body `data.id`",
            time: "body `date_created`, the object's time",
            account: "body `user_id`",
            mode: "body `live_mode`",
        },
        answer_budget: Duration::from_secs(22),
        answer_budget_is_published: true,
        success: Success::Ok,
        // No end is published. Assumed is the longest time for which any provider here resends.
        automatic_retries: Some(Duration::from_hours(30 * 24)),
        manual_resend: None,
        retries_in_words: "every 15 min, after the third try with growing pauses; no end is published",
        gives_up: "",
        client_error_is_final: false,
        refusal_status: 400,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[manifest::SIGNATURE, manifest::REQUEST_ID],
        dev_secrets: &["hookgate_dev_mercado_pago"],
        sources: &[
            "mercadopago 3.6.1; sdk-nodejs, sdk-php and sdk-python, May to August 2026",
            "mercadopago/devsite-docs: guides/additional-content/your-integrations/webhooks",
        ],
    },
    read,
    seals: Some(manifest::seals),
    signed_at: None,
    sign: Some(sign),
    samples: SAMPLES,
    sample,
};

/// The id names the notification: several of them share one object and one type. That it stays the same over retries is
/// unconfirmed. Topics that send `date` in place of `date_created` have no time here.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [id, action, topic, named, created, user, live_mode] = fields::read(
        verified.body(),
        &[
            "id",
            "action",
            "type",
            "data.id",
            "date_created",
            "user_id",
            "live_mode",
        ],
    )?;
    let id = id.event_id_or_digits("the body has no `id`; Mercado Pago gives every notification one")?;
    let event_type = match action {
        Value::Absent => topic,
        action => action,
    };
    let signed = manifest::object(verified);
    let mut event = Event::new(id, verified.body().clone())
        .with_type(&event_type)
        .with_object(signed.as_ref().unwrap_or(&named))
        .with_account(&user)
        .with_mode(mode(&live_mode))
        .with_time(&created);
    if signed.is_some_and(|signed| differs(&signed, &named)) && !event.dropped.contains(&Dropped::ObjectId) {
        event.dropped.push(Dropped::ObjectId);
    }
    Ok(event.into())
}

/// Whether the body names another object than the signed one. Case does not count, since the two are known to be
/// written differently.
fn differs(signed: &Value<'_>, named: &Value<'_>) -> bool {
    match (signed.text_or_digits(), named.text_or_digits()) {
        (Some(signed), Some(named)) => !signed.as_str().eq_ignore_ascii_case(named.as_str()),
        _ => *named != Value::Absent,
    }
}

fn mode(live_mode: &Value<'_>) -> Mode {
    match live_mode {
        Value::Bool(true) => Mode::Live,
        Value::Bool(false) => Mode::Test,
        _ => Mode::Unknown,
    }
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "payment.created",
        body: include_str!("../../samples/mercado_pago/payment.created.json"),
    },
    Template {
        event_type: "payment.updated",
        body: include_str!("../../samples/mercado_pago/payment.updated.json"),
    },
    Template {
        event_type: "order.processed",
        body: include_str!("../../samples/mercado_pago/order.processed.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = nineteen_digits(serial);
    let form = format_description!(
        version = 2,
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3][offset_hour sign:mandatory]:[offset_minute]"
    );
    let topic = template.event_type.split('.').next().unwrap_or_default();
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", format!("MercadoPago WebHook v1.0 {topic}")),
            (manifest::REQUEST_ID, uuid(!serial)),
        ],
        body: template.fill(&[
            ("id", &id),
            ("payment", &(1_000_000_000 + serial % 9_000_000_000).to_string()),
            ("order", &format!("ORD{:026X}", serial % (1 << 104))),
            ("time", &written(now_ms, offset!(-4), &form)),
        ]),
        id,
    }
}

/// The query gets what the body names, as Mercado Pago sends it, and the manifest is made of that query.
fn sign(keys: &Keys, sample: &Sample, sending: &Sending<'_>) -> Signed {
    let url = addressed(sending.url, sample).unwrap_or_else(|| sending.url.to_owned());
    let id = manifest::data_id(&url).ok().flatten();
    let request_id = sample
        .headers
        .iter()
        .find(|(name, _)| *name == manifest::REQUEST_ID);
    let ts = sending.now.to_string();
    let text = manifest::text(
        id.as_deref(),
        request_id.map(|(_, value)| value.as_bytes()),
        ts.as_bytes(),
    );
    let signature = keys
        .sign_text(Encoding::Hex, &text)
        .map(|digest| (manifest::SIGNATURE, format!("ts={ts},v1={digest}")));
    Signed {
        url,
        headers: sample.headers.iter().cloned().chain(signature).collect(),
        body: sample.body.clone(),
    }
}

fn addressed(url: &str, sample: &Sample) -> Option<String> {
    let [id, topic] = fields::read(&sample.body, &["data.id", "type"]).ok()?;
    let (id, topic) = (id.text_or_digits()?, topic.text_or_digits()?);
    let id = utf8_percent_encode(id.as_str(), NON_ALPHANUMERIC);
    let topic = utf8_percent_encode(topic.as_str(), NON_ALPHANUMERIC);
    let joiner = if url.contains('?') { '&' } else { '?' };
    Some(format!("{url}{joiner}data.id={id}&type={topic}"))
}
