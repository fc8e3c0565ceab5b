//! The providers from outside: deliveries are signed with the dev secret, verified, and read.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod asaas;
mod bodies;
mod discord;
mod github;
mod hubspot;
mod ids;
mod lemon_squeezy;
mod line;
mod mercado_pago;
mod properties;
mod revenuecat;
mod samples;
mod shopify;
mod slack;
mod standard_webhooks;
mod stripe;
mod vectors;

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers, Keys};
use hookgate_webhook::{Event, Provider, Reading, Sample, Sending, Unreadable};
use secrecy::SecretString;

const NOW_MS: i64 = 1_790_000_010_123;

/// The URL as it is registered with every provider here.
const URL: &str = "https://gateway.example.com/webhooks/it";

/// Signs, verifies and reads one delivery. `id` is the message id, where the scheme signs one. A delivery that cannot
/// even be signed, because its signatures stand in a body that is none, is refused with the reason.
fn deliver(
    provider: Provider,
    id: &str,
    headers: &[(&str, &[u8])],
    body: &[u8],
) -> Result<Result<Reading, Unreadable>, &'static str> {
    let sample = Sample {
        id: id.to_owned(),
        event_type: "",
        headers: Vec::new(),
        body: Bytes::copy_from_slice(body),
    };
    send(provider, &sample, headers)
}

/// Signs a sample as its provider would, verifies and reads it, with further headers that its provider did not see.
fn send(
    provider: Provider,
    sample: &Sample,
    headers: &[(&str, &[u8])],
) -> Result<Result<Reading, Unreadable>, &'static str> {
    let keys = provider.dev_keys();
    let now = NOW_MS / 1000;
    let signed = provider.sign(&keys, sample, &Sending { url: URL, now });
    let own = signed
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    let delivery = Delivery {
        method: "POST",
        url: Some(&signed.url),
        headers: headers.iter().copied().chain(own).collect(),
        body: signed.body.clone(),
    };
    match provider.verify(&keys, delivery, now) {
        Ok(verified) => Ok(provider.read(&verified)),
        Err(refusal) => Err(refusal.reason()),
    }
}

/// What a genuine delivery says.
fn reading(
    provider: Provider,
    id: &str,
    headers: &[(&str, &[u8])],
    body: &[u8],
) -> Result<Reading, Unreadable> {
    deliver(provider, id, headers, body).unwrap()
}

/// The one event of a genuine delivery.
fn read(provider: Provider, id: &str, headers: &[(&str, &[u8])], body: &[u8]) -> Result<Event, Unreadable> {
    let mut events = reading(provider, id, headers, body)?.events;
    assert_eq!(events.len(), 1);
    Ok(events.remove(0))
}

/// Verifies a delivery that is signed already.
fn verify(
    provider: Provider,
    keys: &Keys,
    url: Option<&str>,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Event, &'static str> {
    let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
    let delivery = Delivery {
        method: "POST",
        url,
        headers: Headers::from_iter(headers),
        body: Bytes::copy_from_slice(body),
    };
    let verified = provider
        .verify(keys, delivery, NOW_MS / 1000)
        .map_err(|refusal| refusal.reason())?;
    let reading = provider
        .read(&verified)
        .map_err(|unreadable| unreadable.reason())?;
    Ok(reading.events.into_iter().next().unwrap())
}

/// Keys of these secrets, with the provider's own tolerance.
fn keys(provider: Provider, secrets: &[&str]) -> Keys {
    let secrets: Vec<_> = secrets.iter().copied().map(SecretString::from).collect();
    provider.keys(&secrets, provider.knowledge().tolerance).unwrap()
}

/// Stripe signs everything it sends, so its readers show best what a body may hold.
fn stripe(body: impl AsRef<[u8]>) -> Result<Event, Unreadable> {
    read(Provider::Stripe, "", &[], body.as_ref())
}

fn reason(outcome: Result<Event, Unreadable>) -> &'static str {
    outcome.map_or_else(|unreadable| unreadable.reason(), |_| "ok")
}
