//! The keys of one endpoint: a scheme, the secrets that are valid now, and a tolerance.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::scheme::{Match, detached};
use crate::secret::Secret;
use crate::{Challenge, Delivery, Encoding, Headers, KeyForm, Refusal, Scheme, Seal, Unsigned};

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
    /// Not checked unless somebody sets a limit, then in both directions (Mercado Pago).
    OnRequest,
}

impl Tolerance {
    /// The same directions with this limit. `Off` stays off: it stands where no time is signed.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Past(_) => Self::Past(limit),
            Self::Both(_) | Self::OnRequest => Self::Both(limit),
        }
    }

    /// Judges a signed time, both in unix seconds.
    ///
    /// # Errors
    /// [`Refusal::StaleTimestamp`] or [`Refusal::FutureTimestamp`].
    pub fn check(self, signed_at: i64, now: i64) -> Result<(), Refusal> {
        let age = Duration::from_secs(now.saturating_sub(signed_at).max(0).unsigned_abs());
        let ahead = Duration::from_secs(signed_at.saturating_sub(now).max(0).unsigned_abs());
        match self {
            Self::Past(tolerance) | Self::Both(tolerance) if age > tolerance => {
                Err(Refusal::StaleTimestamp { age, tolerance })
            }
            Self::Both(tolerance) if ahead > tolerance => Err(Refusal::FutureTimestamp { ahead, tolerance }),
            Self::Off | Self::OnRequest | Self::Past(_) | Self::Both(_) => Ok(()),
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
    signed_at: Option<i64>,
    proof: Option<String>,
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

    /// Keys of bytes that are no text, to find out how a secret would have to be read; `None` where the scheme uses
    /// no shared key.
    pub fn of_bytes(scheme: Scheme, key: &[u8], tolerance: Tolerance) -> Option<Self> {
        Some(Self {
            scheme,
            secrets: vec![scheme.shared_key(key)?],
            tolerance,
        })
    }

    /// The labels among these secrets, together with the public key that the sender named in its request and whose
    /// certificate somebody has checked; `spki` is its SubjectPublicKeyInfo in DER.
    ///
    /// # Errors
    /// [`BadSecret`] if this is no key, or the scheme knows no labels.
    pub fn naming(&self, spki: &[u8]) -> Result<Self, BadSecret> {
        let bad = |problem| BadSecret { slot: 0, problem };
        let Scheme::SignedText(scheme) = self.scheme else {
            return Err(bad("the scheme names no key"));
        };
        if scheme.key != KeyForm::LabelOrKeyPair {
            return Err(bad("the scheme names no key"));
        }
        let labels = self.secrets.iter().filter_map(Secret::label);
        let mut secrets: Vec<_> = labels.map(|label| Secret::Label(label.into())).collect();
        secrets.push(Secret::x509(scheme.algorithm, spki).map_err(bad)?);
        Ok(Self { secrets, ..*self })
    }

    /// Whether a key has to be named, because there are only labels.
    pub fn needs_a_named_key(&self) -> bool {
        self.secrets.iter().all(|secret| secret.label().is_some())
    }

    /// Verifies the delivery at `now`, unix seconds.
    ///
    /// The signature is checked before the age, so that a refused timestamp is known to be the sender's.
    ///
    /// # Errors
    /// A [`Refusal`] that names the first thing wrong.
    pub fn verify<'a>(&self, delivery: Delivery<'a>, now: i64) -> Result<Verified<'a>, Refusal> {
        let matched = self.scheme.verify(&self.secrets, &delivery)?;
        self.verified(delivery, matched, now)
    }

    /// Verifies a delivery of which the sender's own file has read what is signed. Every seal has to hold.
    ///
    /// # Errors
    /// As [`Keys::verify`].
    pub fn verify_seals<'a>(
        &self,
        delivery: Delivery<'a>,
        seals: Vec<Seal>,
        now: i64,
    ) -> Result<Verified<'a>, Refusal> {
        let matched = detached::verify(&self.secrets, self.scheme.header(), seals)?;
        self.verified(delivery, matched, now)
    }

    fn verified<'a>(
        &self,
        delivery: Delivery<'a>,
        matched: Match,
        now: i64,
    ) -> Result<Verified<'a>, Refusal> {
        if let Some(signed_at) = matched.signed_at {
            self.tolerance.check(signed_at, now)?;
        }
        Ok(Verified {
            delivery,
            slot: matched.slot,
            signed_at: matched.signed_at,
            proof: None,
        })
    }

    /// The same delivery, which these keys verified, with the signature of the challenge that it holds, by the key that
    /// verified it and written as the scheme writes signatures. Without one, if the scheme could sign the challenge as
    /// a delivery.
    #[must_use]
    pub fn answer<'a>(&self, verified: Verified<'a>, challenge: &Challenge) -> Verified<'a> {
        let proof = match &self.scheme {
            Scheme::SignedText(scheme) if scheme.never_signs_a_challenge() => {
                let signature = self
                    .secrets
                    .get(verified.slot)
                    .and_then(|secret| secret.sign(&[challenge.as_str().as_bytes()]));
                signature.map(|signature| scheme.encoding.write(&signature))
            }
            _ => None,
        };
        Verified { proof, ..verified }
    }

    /// The tolerance, for a time that stands in the signed body and can be read only afterwards.
    pub fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// Signs `body` with the first secret as a provider would: the headers to send, in order. `id` is
    /// the message id where the scheme signs one. Used by samples, benches and outgoing deliveries.
    ///
    /// Empty if the first secret is a public key; see [`Keys::can_sign`].
    pub fn sign(&self, id: &str, now: i64, body: &[u8]) -> Vec<(&'static str, String)> {
        self.sign_request(&Unsigned {
            id,
            now,
            method: "POST",
            url: None,
            headers: &[],
            body,
        })
    }

    /// As [`Keys::sign`], for a scheme that signs more of a request than its body.
    pub fn sign_request(&self, unsigned: &Unsigned<'_>) -> Vec<(&'static str, String)> {
        self.scheme.sign(&self.secrets, unsigned).unwrap_or_default()
    }

    /// A signature of this very text with the first algorithm of a detached scheme.
    pub fn sign_text(&self, encoding: Encoding, text: &[u8]) -> Option<String> {
        let signature = self.secrets.iter().find_map(|secret| secret.sign(&[text]))?;
        Some(encoding.write(&signature))
    }

    /// Whether the secret that signs can: every secret can, except a public key and a label. It is the first one,
    /// or the first key beside labels.
    pub fn can_sign(&self) -> bool {
        let mut keys = self.secrets.iter().filter(|secret| secret.label().is_none());
        keys.next().is_some_and(Secret::can_sign)
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

    /// When it was signed, unix seconds, where the scheme signs a time outside the body.
    pub fn signed_at(&self) -> Option<i64> {
        self.signed_at
    }

    /// The signature of the challenge that it held, if [`Keys::answer`] made one: proves to the sender that we hold its
    /// secret.
    pub fn proof(&self) -> Option<&str> {
        self.proof.as_deref()
    }

    /// Which secret matched, from 0: tells when an old secret is still in use.
    pub fn slot(&self) -> usize {
        self.slot
    }
}
