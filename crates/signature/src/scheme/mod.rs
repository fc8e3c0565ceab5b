//! The shapes that webhook signatures come in. A provider names one and fills in its details; the
//! arithmetic stands here once.
//!
//! A scheme answers three questions, each with one arm below and one function in its own file: what is
//! a usable secret, which secret signed this delivery, and what would a sender write. Time is none of
//! its business: it hands out the signed timestamp, and the keys judge it.

mod body_digest;
mod described;
pub(crate) mod detached;
mod signed_text;
mod standard_webhooks;
mod template;
mod timestamped_list;
mod token;

pub use body_digest::BodyDigest;
pub use described::Described;
pub use detached::{Detached, Offered, Seal};
pub use signed_text::{Part, SignedText, Timestamp, Unit};
pub use standard_webhooks::StandardWebhooks;
pub use template::{BadTemplate, Written, read_template};
pub use timestamped_list::TimestampedList;
pub use token::Token;

use crate::secret::Secret;
use crate::{Algorithm, Delivery, KeyForm, Refusal, Unsigned};

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
    /// One signature in one header, over joined parts of the request.
    SignedText(SignedText),
    /// The sender's own file reads what is signed.
    Detached(Detached),
    /// A static text in one header.
    Token(Token),
}

/// What a matching signature says.
pub(crate) struct Match {
    /// Which secret signed, from 0.
    pub(crate) slot: usize,
    /// When, unix seconds, where the scheme signs a time.
    pub(crate) signed_at: Option<i64>,
}

impl Scheme {
    /// The header that carries the signature.
    pub fn header(&self) -> &'static str {
        match self {
            Self::TimestampedList(scheme) => scheme.header,
            Self::BodyDigest(scheme) => scheme.headers[0],
            Self::StandardWebhooks(scheme) => scheme.signature,
            Self::SignedText(scheme) => scheme.header,
            Self::Detached(scheme) => scheme.header,
            Self::Token(scheme) => scheme.header,
        }
    }

    /// Every header that a verifier needs.
    pub fn headers(&self) -> Vec<&'static str> {
        match self {
            Self::TimestampedList(scheme) => vec![scheme.header],
            Self::BodyDigest(scheme) => scheme.headers.to_vec(),
            Self::StandardWebhooks(scheme) => vec![scheme.id, scheme.timestamp, scheme.signature],
            Self::SignedText(scheme) => scheme.headers(),
            Self::Detached(scheme) => vec![scheme.header],
            Self::Token(scheme) => vec![scheme.header],
        }
    }

    /// Whether it signs the body.
    pub fn signs_body(&self) -> bool {
        match self {
            Self::TimestampedList(_) | Self::BodyDigest(_) | Self::StandardWebhooks(_) => true,
            Self::SignedText(scheme) => scheme.parts.contains(&Part::Body),
            Self::Detached(_) | Self::Token(_) => false,
        }
    }

    /// Whether it signs the value of this header, with fixed text or an end on both sides of it, so that no byte of a
    /// neighbour can be taken for one of its own.
    pub fn signs_alone(&self, name: &str) -> bool {
        let is = |header: &str| header.eq_ignore_ascii_case(name);
        match self {
            Self::StandardWebhooks(scheme) => is(scheme.id) || is(scheme.timestamp),
            Self::SignedText(scheme) => scheme.signs_alone(name),
            Self::TimestampedList(_) | Self::BodyDigest(_) | Self::Detached(_) | Self::Token(_) => false,
        }
    }

    /// Decodes and checks a configured secret.
    pub(crate) fn secret(&self, text: &str) -> Result<Secret, &'static str> {
        match self {
            Self::TimestampedList(_) | Self::BodyDigest(_) => {
                Secret::read(Algorithm::HmacSha256, KeyForm::Text, text)
            }
            Self::StandardWebhooks(_) => Secret::read(Algorithm::HmacSha256, KeyForm::StandardWebhooks, text),
            Self::SignedText(scheme) => Secret::read(scheme.algorithm, scheme.key, text),
            Self::Detached(scheme) => Secret::several(scheme.algorithms, scheme.key, text),
            Self::Token(_) => Secret::token(text),
        }
    }

    /// A key given as bytes; `None` where no shared key is used.
    pub(crate) fn shared_key(&self, key: &[u8]) -> Option<Secret> {
        match self {
            Self::TimestampedList(_) | Self::BodyDigest(_) | Self::StandardWebhooks(_) => {
                Secret::hmac(Algorithm::HmacSha256, key)
            }
            Self::SignedText(scheme) => Secret::hmac(scheme.algorithm, key),
            Self::Detached(scheme) => {
                let several = scheme
                    .algorithms
                    .iter()
                    .map(|algorithm| Secret::hmac(*algorithm, key));
                several.collect::<Option<_>>().map(Secret::Several)
            }
            Self::Token(_) => None,
        }
    }

    /// Finds the secret that signed the delivery. What is signed has been read for a detached scheme, and for no
    /// other.
    pub(crate) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        match self {
            Self::TimestampedList(scheme) => scheme.verify(secrets, delivery),
            Self::BodyDigest(scheme) => scheme.verify(secrets, delivery),
            Self::StandardWebhooks(scheme) => scheme.verify(secrets, delivery),
            Self::SignedText(scheme) => scheme.verify(secrets, delivery),
            Self::Detached(scheme) => Err(Refusal::MissingSignature(scheme.header)),
            Self::Token(scheme) => scheme.verify(secrets, delivery),
        }
    }

    /// The headers that a holder of the secrets would send; `None` if they can only verify, and for a detached
    /// scheme, whose sender's file knows what is signed.
    pub(crate) fn sign(
        &self,
        secrets: &[Secret],
        unsigned: &Unsigned<'_>,
    ) -> Option<Vec<(&'static str, String)>> {
        let (secret, now, body) = (secrets.first()?, unsigned.now, unsigned.body);
        match self {
            Self::TimestampedList(scheme) => scheme.sign(secret, now, body),
            Self::BodyDigest(scheme) => scheme.sign(secret, body),
            Self::StandardWebhooks(scheme) => scheme.sign(secret, unsigned.id, now, body),
            Self::SignedText(scheme) => scheme.sign(secrets, unsigned),
            Self::Detached(_) => None,
            Self::Token(scheme) => scheme.sign(secret),
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
