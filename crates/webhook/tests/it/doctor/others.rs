//! Deliveries at another time, for another source, or under another URL.

use std::time::Duration;

use hookgate_webhook::Provider;
use hookgate_webhook::doctor::{BodyChange, Cause, UrlChange};

use super::{NOW, Saved, broken, signed, signed_with};
use crate::{NOW_MS, URL};

pub(super) fn cases() -> Vec<(&'static str, Saved, Cause)> {
    let stripe = signed(Provider::Stripe);
    let standard = signed(Provider::StandardWebhooks);
    let at = |saved: &Saved, now| broken(saved.clone(), |saved| saved.now = now);
    let tolerance = Duration::from_secs(300);
    let seconds = Duration::from_secs;
    let milliseconds = broken(standard.clone(), |saved| {
        let keys = saved.provider.dev_keys();
        for (name, value) in keys.sign("msg_1", NOW_MS, &saved.body) {
            saved.set(name, &value);
        }
    });
    let mut hubspot = signed(Provider::Hubspot);
    hubspot.url = "http://10.0.0.7:8080/webhooks/it".to_owned();
    hubspot.set("X-Forwarded-Host", "gateway.example.com");
    vec![
        (
            "a saved delivery, judged later",
            at(&stripe, NOW + 86_400),
            Cause::TooOld {
                age: seconds(86_400),
                tolerance,
            },
        ),
        (
            "a clock that is slow",
            at(&standard, NOW - 600),
            Cause::TooNew {
                ahead: seconds(600),
                tolerance,
            },
        ),
        ("a timestamp in milliseconds", milliseconds, Cause::Milliseconds),
        (
            "an old delivery with a line break more",
            broken(stripe.clone(), |saved| {
                saved.body.push(b'\n');
                saved.now = NOW + 7_200;
            }),
            Cause::Body(BodyChange::LineBreakRemoved),
        ),
        (
            "a delivery for another source",
            broken(signed_with(Provider::Shopify, &["shop"]), |saved| {
                saved.provider = Provider::Stripe;
                saved.secret("another");
                saved.others = vec![("shop", Provider::Shopify, vec!["shop".into()])];
            }),
            Cause::OtherSource("shop".to_owned()),
        ),
        (
            "the wrong provider is configured",
            broken(signed_with(Provider::Shopify, &["shop"]), |saved| {
                saved.provider = Provider::Github
            }),
            Cause::OtherProvider(Provider::Shopify),
        ),
        (
            "another provider's delivery",
            broken(signed_with(Provider::Shopify, &["shop"]), |saved| {
                saved.provider = Provider::Stripe;
                saved.secret("another");
            }),
            Cause::LooksLike {
                header: "Stripe-Signature",
                provider: Provider::Shopify,
            },
        ),
        (
            "the URL as it is seen behind a proxy",
            hubspot,
            Cause::Url(UrlChange {
                differs: vec!["scheme", "host", "port"],
                fits: URL.to_owned(),
            }),
        ),
    ]
}
