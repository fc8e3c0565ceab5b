//! Shopify.
//!
//! Sources: shopify.dev (webhooks/verify-deliveries, delivery-structure, subscribe/https, best-practices,
//! changelog 2024-09-10, events/verify-deliveries) and @shopify/shopify-api 13.1.0.

use std::time::Duration;

use hookgate_signature::{BodyDigest, Encoding, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::Definition;
use crate::sample::{Sample, Template, nineteen_digits, rfc3339, uuid};
use crate::value::Value;
use crate::{Event, Reading, Unreadable, fields};

pub(super) const DEFINITION: Definition = Definition {
    knowledge: Knowledge {
        name: "shopify",
        title: "Shopify",
        // The preview of Events leaves the `X-` away, here and in every other header.
        scheme: Scheme::BodyDigest(BodyDigest {
            headers: &["X-Shopify-Hmac-Sha256", "Shopify-Hmac-Sha256"],
            prefix: "",
            encoding: Encoding::Base64,
        }),
        tolerance: Tolerance::Off,
        url: UrlUse::Unused,
        places: Places {
            id: "header `X-Shopify-Webhook-Id`",
            event_type: "header `X-Shopify-Topic`",
            object: "body `id`",
            time: "header `X-Shopify-Triggered-At`",
            account: "header `X-Shopify-Shop-Domain`",
            mode: "",
        },
        answer_budget: Duration::from_secs(5),
        answer_budget_is_published: true,
        success: Success::Ok,
        // Eight times (changelog 2024-09-10); after eight failures in a row a subscription made by the Admin API is
        // deleted.
        automatic_retries: Some(Duration::from_hours(4)),
        // None is published; what was missed is to be asked for by the API (webhooks/best-practices).
        manual_resend: None,
        retries_in_words: "eight times over four hours",
        gives_up: "eight failures in a row delete a subscription made by the Admin API",
        client_error_is_final: false,
        // Demanded for the compliance topics.
        refusal_status: 401,
        body_bytes_max: None,
        id_is_signed: false,
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: &[
            "X-Shopify-Hmac-Sha256",
            "X-Shopify-Webhook-Id",
            "X-Shopify-Event-Id",
            "X-Shopify-Topic",
            "X-Shopify-Shop-Domain",
            "X-Shopify-API-Version",
            "X-Shopify-Triggered-At",
            "Shopify-Hmac-Sha256",
            "Shopify-Webhook-Id",
            "Shopify-Event-Id",
            "Shopify-Topic",
            "Shopify-Shop-Domain",
            "Shopify-API-Version",
            "Shopify-Triggered-At",
        ],
        dev_secrets: &["hookgate_dev_shopify"],
        sources: &[
            "shopify.dev: webhooks/verify-deliveries, delivery-structure, subscribe/https, best-practices, changelog 2024-09-10, events/verify-deliveries",
            "@shopify/shopify-api 13.1.0",
        ],
    },
    read,
    seals: None,
    signed_at: None,
    sign: None,
    samples: SAMPLES,
    sample,
};

/// The webhook id names the delivery to one subscription. The event id does not serve: it names the
/// merchant's action, so `orders/create` and the `orders/paid` caused by it share one. All headers but
/// the digest are unsigned. Nothing signed tells a development store from a live one, so there is no
/// mode.
fn read(verified: &Verified<'_>) -> Result<Reading, Unreadable> {
    let [object_id] = fields::read(verified.body(), &["id"])?;
    let branded = verified.headers().get("X-Shopify-Hmac-Sha256").is_some();
    let header = |name: &'static str| {
        let name = if branded { name } else { &name["X-".len()..] };
        Value::from_header(verified.headers(), name)
    };
    let id = header("X-Shopify-Webhook-Id").event_id("the X-Shopify-Webhook-Id header is missing")?;
    let event = Event::new(id, verified.body().clone())
        .with_type(&header("X-Shopify-Topic"))
        .with_object(&object_id)
        .with_account(&header("X-Shopify-Shop-Domain"))
        .with_time(&header("X-Shopify-Triggered-At"));
    Ok(event.into())
}

const SAMPLES: &[Template] = &[
    Template {
        event_type: "orders/create",
        body: include_str!("../../samples/shopify/orders_create.json"),
    },
    Template {
        event_type: "orders/paid",
        body: include_str!("../../samples/shopify/orders_paid.json"),
    },
    Template {
        event_type: "refunds/create",
        body: include_str!("../../samples/shopify/refunds_create.json"),
    },
];

fn sample(template: &Template, serial: u128, now_ms: i64) -> Sample {
    let id = uuid(serial);
    let (number, time) = (nineteen_digits(serial), rfc3339(now_ms));
    Sample {
        event_type: template.event_type,
        headers: vec![
            ("Content-Type", "application/json".to_owned()),
            ("User-Agent", "Shopify-Captain-Hook".to_owned()),
            ("X-Shopify-Topic", template.event_type.to_owned()),
            ("X-Shopify-Shop-Domain", "hookgate-dev.myshopify.com".to_owned()),
            ("X-Shopify-API-Version", "2026-07".to_owned()),
            ("X-Shopify-Webhook-Id", id.clone()),
            ("X-Shopify-Event-Id", uuid(!serial)),
            ("X-Shopify-Triggered-At", time.clone()),
        ],
        body: template.fill(&[("number", &number), ("time", &time)]),
        id,
    }
}
