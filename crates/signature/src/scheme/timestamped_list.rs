//! `t=…,v1=…[,v1=…]`: a timestamp and any number of signatures share one header (Stripe, Paddle,
//! RevenueCat).
//!
//! The grammar is the strictest on which the senders' own SDKs agree. Items without `=` and unknown
//! keys, ` v1` with a leading space among them, are ignored. A signature is exactly 64 lower-case hex
//! digits; what is not is no candidate, and a header without a candidate is malformed. Two timestamps
//! are refused, because one SDK takes the first and the next takes the last.

use crate::scheme::{CANDIDATES_MAX, Match, unix_seconds};
use crate::secret::{Candidate, Secret, first_match};
use crate::{Algorithm, Delivery, Encoding, Refusal};

/// `t=…,v1=…[,v1=…]` in one header; signed is the timestamp's text, a joiner, the body.
#[derive(Debug, Clone, Copy)]
pub struct TimestampedList {
    /// Header name.
    pub header: &'static str,
    /// Key of the timestamp item, e.g. `t`.
    pub timestamp: &'static str,
    /// Key of the signature items, e.g. `v1`. Other keys are ignored.
    pub signature: &'static str,
    /// Byte between items, e.g. `,`.
    pub separator: u8,
    /// Byte between timestamp and body in the signed text, e.g. `.`.
    pub joiner: u8,
}

/// What the header says, unverified.
struct Claimed<'a> {
    timestamp: &'a [u8],
    candidates: Vec<Candidate>,
}

impl TimestampedList {
    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let claimed = self.read(delivery.headers.required(self.header)?)?;
        let signed_at = unix_seconds(claimed.timestamp)
            .ok_or(self.malformed("its timestamp is not a decimal number of unix seconds"))?;
        let message = [claimed.timestamp, &[self.joiner], &delivery.body];
        let slot = first_match(secrets, &message, &claimed.candidates).ok_or(Refusal::BadSignature)?;
        Ok(Match {
            slot,
            signed_at: Some(signed_at),
        })
    }

    pub(super) fn sign(&self, secret: &Secret, now: i64, body: &[u8]) -> Option<Vec<(&'static str, String)>> {
        let timestamp = now.to_string();
        let digest = secret.sign(&[timestamp.as_bytes(), &[self.joiner], body])?;
        let (t, v, separator) = (self.timestamp, self.signature, char::from(self.separator));
        let digest = Encoding::Hex.write(&digest);
        Some(vec![(
            self.header,
            format!("{t}={timestamp}{separator}{v}={digest}"),
        )])
    }

    fn read<'a>(&self, header: &'a [u8]) -> Result<Claimed<'a>, Refusal> {
        let mut timestamp = None;
        let mut signatures = 0;
        let mut candidates = Vec::new();
        for item in header.split(|&b| b == self.separator) {
            let Some(equals) = item.iter().position(|&b| b == b'=') else {
                continue;
            };
            let (key, value) = (&item[..equals], &item[equals + 1..]);
            if key == self.timestamp.as_bytes() {
                if timestamp.replace(value).is_some() {
                    return Err(self.malformed("it holds two timestamps"));
                }
            } else if key == self.signature.as_bytes() {
                signatures += 1;
                candidates.extend(Encoding::Hex.read(Algorithm::HmacSha256, value));
            }
            if signatures > CANDIDATES_MAX {
                return Err(self.malformed("it holds more than 20 signatures"));
            }
        }
        if candidates.is_empty() {
            return Err(self.malformed("it holds no signature of 64 lower-case hex digits under a known key"));
        }
        let timestamp = timestamp.ok_or(self.malformed("it holds no timestamp"))?;
        Ok(Claimed {
            timestamp,
            candidates,
        })
    }

    fn malformed(&self, problem: &'static str) -> Refusal {
        Refusal::MalformedSignature {
            header: self.header,
            problem,
        }
    }
}
