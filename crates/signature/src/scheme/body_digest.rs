//! One digest over the whole body in one header (GitHub, Shopify). No timestamp is signed, so nothing
//! bounds a replay: whoever holds one valid delivery can send it for ever.

use crate::scheme::Match;
use crate::secret::{Secret, first_match};
use crate::{Algorithm, Delivery, Encoding, Headers, Refusal};

/// One HMAC-SHA256 digest of the body.
#[derive(Debug, Clone, Copy)]
pub struct BodyDigest {
    /// Accepted header names, first the current one. Together they may occur once.
    pub headers: &'static [&'static str],
    /// Text before the digest, e.g. `sha256=`.
    pub prefix: &'static str,
    /// How the digest is written.
    pub encoding: Encoding,
}

impl BodyDigest {
    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let (header, value) = self.find(&delivery.headers)?;
        let digest = value
            .strip_prefix(self.prefix.as_bytes())
            .and_then(|digest| self.encoding.read(Algorithm::HmacSha256, digest))
            .ok_or(Refusal::MalformedSignature {
                header,
                problem: Algorithm::HmacSha256.problem(self.encoding, !self.prefix.is_empty()),
            })?;
        let slot = first_match(secrets, &[&delivery.body], &[digest]).ok_or(Refusal::BadSignature)?;
        Ok(Match {
            slot,
            signed_at: None,
        })
    }

    pub(super) fn sign(&self, secret: &Secret, body: &[u8]) -> Option<Vec<(&'static str, String)>> {
        let digest = self.encoding.write(&secret.sign(&[body])?);
        Some(vec![(self.headers[0], format!("{}{digest}", self.prefix))])
    }

    /// The sole value under any of the accepted names. Two names with a value each are as undefined as
    /// one name twice.
    fn find<'a>(&self, headers: &Headers<'a>) -> Result<(&'static str, &'a [u8]), Refusal> {
        let mut found = None;
        for &header in self.headers {
            match headers.required(header) {
                Ok(value) if found.is_none() => found = Some((header, value)),
                Ok(_) => {
                    return Err(Refusal::MalformedSignature {
                        header,
                        problem: "the signature occurs under two header names; send it once",
                    });
                }
                Err(Refusal::MissingSignature(_)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        found.ok_or(Refusal::MissingSignature(self.headers[0]))
    }
}
