//! The providers from outside: deliveries are signed with the dev secret, verified, and read.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bodies;
mod github;
mod ids;
mod properties;
mod samples;
mod shopify;
mod standard_webhooks;
mod stripe;
mod vectors;

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers};
use hookgate_webhook::{Event, Provider, Unreadable};

const NOW_MS: i64 = 1_790_000_010_123;

/// Signs and reads one delivery. `id` is the message id, where the scheme signs one.
fn read(provider: Provider, id: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Result<Event, Unreadable> {
    let keys = provider.dev_keys();
    let signed = keys.sign(id, NOW_MS / 1000, body);
    let signed = signed.iter().map(|(name, value)| (*name, value.as_bytes()));
    let delivery = Delivery {
        method: "POST",
        url: None,
        headers: Headers::from_iter(headers.iter().copied().chain(signed)),
        body: Bytes::copy_from_slice(body),
    };
    let verified = provider.verify(&keys, delivery, NOW_MS / 1000).unwrap();
    let mut events = provider.read(&verified)?.events;
    assert_eq!(events.len(), 1, "none of these providers batches");
    Ok(events.remove(0))
}

/// Stripe signs everything it sends, so its readers show best what a body may hold.
fn stripe(body: impl AsRef<[u8]>) -> Result<Event, Unreadable> {
    read(Provider::Stripe, "", &[], body.as_ref())
}

fn reason(outcome: Result<Event, Unreadable>) -> &'static str {
    outcome.map_or_else(|unreadable| unreadable.reason(), |_| "ok")
}
