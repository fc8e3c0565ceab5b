//! The keys of one endpoint: a scheme, the secrets that are valid now, and a tolerance.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::secret::Secret;
use crate::{Delivery, Headers, Refusal, Scheme};

/// How far a signed timestamp may lie from the receiver's clock. Exactly equal is accepted. Schemes that
/// sign no timestamp have none to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// Timestamps are not checked.
    Off,
    /// Too old is refused, the future is not (Stripe).
    Past(Duration),
    /// Too old and too far ahead are refused (Standard Webhooks).
    Both(Duration),
}

impl Tolerance {
    /// The same directions with another limit. `Off` stays off: it stands where nothing is signed.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Past(_) => Self::Past(limit),
            Self::Both(_) => Self::Both(limit),
        }
    }

    fn check(self, signed_at: i64, now: i64) -> Result<(), Refusal> {
        let age = Duration::from_secs(now.saturating_sub(signed_at).max(0).unsigned_abs());
        let ahead = Duration::from_secs(signed_at.saturating_sub(now).max(0).unsigned_abs());
        match self {
            Self::Past(tolerance) | Self::Both(tolerance) if age > tolerance => {
                Err(Refusal::StaleTimestamp { age, tolerance })
            }
            Self::Both(tolerance) if ahead > tolerance => Err(Refusal::FutureTimestamp { ahead, tolerance }),
            Self::Off | Self::Past(_) | Self::Both(_) => Ok(()),
        }
    }
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
pub struct Keys {
    scheme: Scheme,
    /// Never empty.
    secrets: Vec<Secret>,
    tolerance: Tolerance,
}

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
    pub fn new(scheme: Scheme, secrets: &[SecretString], tolerance: Tolerance) -> Result<Self, BadSecret> {
        if secrets.is_empty() {
            let problem = "there is none; configure the provider's signing secret";
            return Err(BadSecret { slot: 0, problem });
        }
        let prepare = |(slot, secret): (usize, &SecretString)| {
            scheme
                .secret(secret.expose_secret())
                .map_err(|problem| BadSecret { slot, problem })
        };
        Ok(Self {
            scheme,
            secrets: secrets
                .iter()
                .enumerate()
                .map(prepare)
                .collect::<Result<_, _>>()?,
            tolerance,
        })
    }

    /// Verifies the delivery at `now`, unix seconds.
    ///
    /// The signature is checked before the age, so that a refused timestamp is known to be the sender's.
    ///
    /// # Errors
    /// A [`Refusal`] that names the first thing wrong.
    pub fn verify<'a>(&self, delivery: Delivery<'a>, now: i64) -> Result<Verified<'a>, Refusal> {
        let matched = self.scheme.verify(&self.secrets, &delivery)?;
        if let Some(signed_at) = matched.signed_at {
            self.tolerance.check(signed_at, now)?;
        }
        Ok(Verified {
            delivery,
            slot: matched.slot,
        })
    }

    /// Signs `body` with the first secret as a provider would: the headers to send, in order. `id` is
    /// the message id where the scheme signs one. Used by samples, benches and outgoing deliveries.
    ///
    /// Empty if the first secret is a public key; see [`Keys::can_sign`].
    pub fn sign(&self, id: &str, now: i64, body: &[u8]) -> Vec<(&'static str, String)> {
        self.scheme
            .sign(&self.secrets[0], id, now, body)
            .unwrap_or_default()
    }

    /// Whether the first secret can sign: every secret can, except a public key.
    pub fn can_sign(&self) -> bool {
        !matches!(self.secrets[0], Secret::Ed25519Public(_))
    }
}

impl fmt::Debug for Keys {
    /// Tells how many secrets there are, nothing about them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("scheme", &self.scheme)
            .field("secrets", &self.secrets.len())
            .field("tolerance", &self.tolerance)
            .finish()
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
