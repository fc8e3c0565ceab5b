//! Standard Webhooks 1.0.0: id, timestamp and signatures in three headers, all three signed with the
//! body. `v1` is an HMAC, `v1a` an ed25519 signature; the specification prefers the latter, and none of
//! the official libraries verifies it.
//!
//! Entries without a comma and unknown versions are skipped, as the libraries do, so that a sender can
//! introduce `v2` beside `v1`. A timestamp is digits only: that, and a body that is a JSON object, keeps
//! the `.` between the parts unambiguous even for an id that holds one.

use crate::scheme::{CANDIDATES_MAX, Match, unix_seconds};
use crate::secret::{Candidate, MAC_BYTES, Secret, first_match};
use crate::{Algorithm, Delivery, Encoding, Headers, Refusal};

/// Standard Webhooks 1.0.0: `<prefix>-id`, `<prefix>-timestamp`, `<prefix>-signature`.
#[derive(Debug, Clone, Copy)]
pub struct StandardWebhooks {
    /// Header of the message id.
    pub id: &'static str,
    /// Header of the timestamp, unix seconds.
    pub timestamp: &'static str,
    /// Header of the signatures.
    pub signature: &'static str,
    /// Whether a header of this brand that is missing may come under the specification's own name.
    pub unbranded_too: bool,
}

impl StandardWebhooks {
    /// The specification's own header names; some senders brand theirs.
    pub const UNBRANDED: Self = Self {
        id: "webhook-id",
        timestamp: "webhook-timestamp",
        signature: "webhook-signature",
        unbranded_too: false,
    };

    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let required = |branded, unbranded| self.required(&delivery.headers, branded, unbranded);
        let id = required(self.id, Self::UNBRANDED.id)?;
        let timestamp = required(self.timestamp, Self::UNBRANDED.timestamp)?;
        let candidates = self.candidates(required(self.signature, Self::UNBRANDED.signature)?)?;
        let signed_at = unix_seconds(timestamp).ok_or(Refusal::MalformedSignature {
            header: self.timestamp,
            problem: "it is not a decimal number of unix seconds",
        })?;
        let message = [id, b".", timestamp, b".", &delivery.body];
        let slot = first_match(secrets, &message, &candidates).ok_or(Refusal::BadSignature)?;
        Ok(Match {
            slot,
            signed_at: Some(signed_at),
        })
    }

    pub(super) fn sign(
        &self,
        secret: &Secret,
        id: &str,
        now: i64,
        body: &[u8],
    ) -> Option<Vec<(&'static str, String)>> {
        let timestamp = now.to_string();
        let signature = secret.sign(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body])?;
        let version = match signature.len() {
            MAC_BYTES => "v1",
            _ => "v1a",
        };
        let signature = format!("{version},{}", Encoding::Base64.write(&signature));
        Some(vec![
            (self.id, id.to_owned()),
            (self.timestamp, timestamp),
            (self.signature, signature),
        ])
    }

    /// The header under its branded name, else under the other, if that is allowed.
    fn required<'a>(
        &self,
        headers: &Headers<'a>,
        branded: &'static str,
        unbranded: &'static str,
    ) -> Result<&'a [u8], Refusal> {
        match headers.required(branded) {
            Err(Refusal::MissingSignature(_)) if self.unbranded_too => {
                headers.required(unbranded).map_err(|refusal| match refusal {
                    Refusal::MissingSignature(_) => Refusal::MissingSignature(branded),
                    other => other,
                })
            }
            found => found,
        }
    }

    fn candidates(&self, header: &[u8]) -> Result<Vec<Candidate>, Refusal> {
        let mut signatures = 0;
        let mut candidates = Vec::new();
        for entry in header.split(|&b| b == b' ') {
            let candidate = if let Some(text) = entry.strip_prefix(b"v1,") {
                Encoding::Base64.read(Algorithm::HmacSha256, text)
            } else if let Some(text) = entry.strip_prefix(b"v1a,") {
                Encoding::Base64.read(Algorithm::Ed25519, text)
            } else {
                continue;
            };
            signatures += 1;
            if signatures > CANDIDATES_MAX {
                return Err(self.malformed("it holds more than 20 signatures"));
            }
            candidates.extend(candidate);
        }
        match candidates.is_empty() {
            true => Err(self.malformed(
                "it holds no `v1,` with the base64 of 32 bytes and no `v1a,` with the base64 of 64 bytes",
            )),
            false => Ok(candidates),
        }
    }

    fn malformed(&self, problem: &'static str) -> Refusal {
        Refusal::MalformedSignature {
            header: self.signature,
            problem,
        }
    }
}
