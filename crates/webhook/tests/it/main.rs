//! The providers from outside: deliveries are signed with the dev secret, verified, and read.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod adyen;
mod asaas;
mod bodies;
mod coinbase_commerce;
mod damaged;
mod discord;
mod doctor;
mod github;
mod gitlab;
mod hubspot;
mod ids;
mod lemon_squeezy;
mod line;
mod linear;
mod mercado_pago;
mod paddle;
mod paypal;
mod properties;
mod razorpay;
mod revenuecat;
mod samples;
mod sendgrid;
mod shopify;
mod slack;
mod square;
mod standard_webhooks;
mod stripe;
mod svix;
mod twilio;
mod vectors;
mod zoom;

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers, Keys};
use hookgate_webhook::{Event, Provider, Reading, Sample, Sending, Unreadable};
use secrecy::SecretString;

const NOW_MS: i64 = 1_790_000_010_123;

/// The URL as it is registered with every provider here.
const URL: &str = "https://gateway.example.com/webhooks/it";

/// The sender's clock and the registered URL.
const SENDING: Sending<'static> = Sending {
    url: URL,
    now: NOW_MS / 1000,
};

/// Verifies and reads one delivery, or says why it is refused.
fn open(
    provider: Provider,
    url: &str,
    headers: &[(&str, &[u8])],
    body: &Bytes,
) -> Result<Result<Reading, Unreadable>, &'static str> {
    let delivery = Delivery {
        method: "POST",
        url: Some(url),
        headers: headers.iter().copied().collect(),
        body: body.clone(),
    };
    match provider.verify(&provider.dev_keys(), delivery, SENDING.now) {
        Ok(verified) => Ok(provider.read(&verified)),
        Err(refusal) => Err(refusal.reason()),
    }
}

/// Signs one delivery and opens it. `id` is the message id, where the scheme signs one. Where signatures stand in the
/// body, a body that is none cannot be signed, and is refused.
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
    let signed = provider.sign(&provider.dev_keys(), sample, &SENDING);
    let own = signed
        .headers
        .iter()
        .map(|(name, value)| (*name, value.as_bytes()));
    let headers: Vec<_> = headers.iter().copied().chain(own).collect();
    open(provider, &signed.url, &headers, &signed.body)
}

/// What is said of a body that is no JSON: a signature, or a signed time, that stands in it cannot be found.
fn malformed(provider: Provider) -> &'static str {
    match provider {
        Provider::Adyen | Provider::Linear => "malformed_signature",
        _ => "malformed_body",
    }
}

fn word(outcome: Result<Result<Reading, Unreadable>, &'static str>) -> &'static str {
    match outcome {
        Ok(Ok(_)) => "ok",
        Ok(Err(unreadable)) => unreadable.reason(),
        Err(reason) => reason,
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
