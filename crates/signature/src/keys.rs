//! The keys of one endpoint: a scheme, the secrets that are valid now, and a tolerance.

use std::time::Duration;

use secrecy::SecretString;

use crate::{Delivery, Headers, Refusal, Scheme};

/// How far a signed timestamp may lie from the receiver's clock. Exactly equal is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// Timestamps are not checked.
    Off,
    /// Too old is refused, the future is not (Stripe).
    Past(Duration),
    /// Too old and too far ahead are refused (Standard Webhooks).
    Both(Duration),
}

/// A secret that cannot be used with the scheme. Says what form is accepted, never the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("secret {slot} cannot be used: {problem}")]
pub struct BadSecret {
    /// Position in the list of secrets, from 0.
    pub slot: usize,
    /// What is wrong and what form is accepted.
    pub problem: &'static str,
}

/// The prepared keys of one endpoint. Any secret may match: rotation needs old and new side by side.
pub struct Keys {}

/// Proof that these bytes were signed by somebody who holds one of the keys.
#[derive(Debug, Clone)]
pub struct Verified<'a> {
    delivery: Delivery<'a>,
    slot: usize,
}

impl Keys {
    /// Prepares the keys once, so that a request pays only for its own bytes.
    ///
    /// # Errors
    /// [`BadSecret`] for an empty or blank secret, or one that the scheme cannot decode; an empty list is
    /// an error too, since it would accept nobody.
    pub fn new(_scheme: Scheme, _secrets: &[SecretString], _tolerance: Tolerance) -> Result<Self, BadSecret> {
        unimplemented!()
    }

    /// Verifies the delivery at `now`, unix seconds.
    ///
    /// # Errors
    /// A [`Refusal`] that names the first thing wrong.
    pub fn verify<'a>(&self, _delivery: Delivery<'a>, _now: i64) -> Result<Verified<'a>, Refusal> {
        unimplemented!()
    }

    /// Signs `body` with the first secret as a provider would: the headers to send, in order. `id` is
    /// the message id where the scheme signs one. Used by samples, benches and outgoing deliveries.
    pub fn sign(&self, _id: &str, _now: i64, _body: &[u8]) -> Vec<(&'static str, String)> {
        unimplemented!()
    }
}

impl<'a> Verified<'a> {
    /// The signed body.
    pub fn body(&self) -> &bytes::Bytes {
        &self.delivery.body
    }

    /// The request's headers. Only what the scheme signs is authentic; see the provider's file.
    pub fn headers(&self) -> &Headers<'a> {
        &self.delivery.headers
    }

    /// The public URL, where the endpoint knows it.
    pub fn url(&self) -> Option<&'a str> {
        self.delivery.url
    }

    /// Which secret matched, from 0: tells when an old secret is still in use.
    pub fn slot(&self) -> usize {
        self.slot
    }
}
