//! The shapes that webhook signatures come in. A provider names one and fills in its details; the
//! arithmetic stands here once.
//!
//! A scheme answers three questions, each with one arm below and one function in its own file: what is
//! a usable secret, which secret signed this delivery, and what would a sender write. Time is none of
//! its business: it hands out the signed timestamp, and the keys judge it.

mod body_digest;
mod standard_webhooks;
mod timestamped_list;

pub use body_digest::{BodyDigest, Encoding};
pub use standard_webhooks::StandardWebhooks;
pub use timestamped_list::TimestampedList;

use crate::secret::Secret;
use crate::{Delivery, Refusal};

/// How many candidate signatures one header may carry. A sender in rotation writes two or three; the cap
/// keeps a stranger from buying a public-key operation per few bytes of header.
pub const CANDIDATES_MAX: usize = 20;

/// A signature scheme.
#[derive(Debug, Clone, Copy)]
pub enum Scheme {
    /// `t=…,v1=…[,v1=…]`: timestamp and signatures in one header.
    TimestampedList(TimestampedList),
    /// One digest over the body in one header.
    BodyDigest(BodyDigest),
    /// Standard Webhooks: id, timestamp and a list of versioned signatures in three headers.
    StandardWebhooks(StandardWebhooks),
}

/// What a matching signature says.
pub(crate) struct Match {
    /// Which secret signed, from 0.
    pub(crate) slot: usize,
    /// When, unix seconds, where the scheme signs a time, and in which header it stands.
    pub(crate) signed_at: Option<i64>,
}

impl Scheme {
    /// Decodes and checks a configured secret.
    pub(crate) fn secret(&self, text: &str) -> Result<Secret, &'static str> {
        match self {
            Self::TimestampedList(_) | Self::BodyDigest(_) => Secret::text(text),
            Self::StandardWebhooks(_) => Secret::standard_webhooks(text),
        }
    }

    /// Finds the secret that signed the delivery.
    pub(crate) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        match self {
            Self::TimestampedList(scheme) => scheme.verify(secrets, delivery),
            Self::BodyDigest(scheme) => scheme.verify(secrets, delivery),
            Self::StandardWebhooks(scheme) => scheme.verify(secrets, delivery),
        }
    }

    /// The headers that a holder of `secret` would send; `None` if it can only verify.
    pub(crate) fn sign(
        &self,
        secret: &Secret,
        id: &str,
        now: i64,
        body: &[u8],
    ) -> Option<Vec<(&'static str, String)>> {
        match self {
            Self::TimestampedList(scheme) => scheme.sign(secret, now, body),
            Self::BodyDigest(scheme) => scheme.sign(secret, body),
            Self::StandardWebhooks(scheme) => scheme.sign(secret, id, now, body),
        }
    }
}

/// A timestamp in plain decimal digits. `parse` alone would take `+5`, which no sender writes.
fn unix_seconds(digits: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(digits).ok()?;
    match text.bytes().all(|b| b.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    }
}
