//! One digest over the whole body in one header (GitHub, Shopify). No timestamp is signed, so nothing
//! bounds a replay: whoever holds one valid delivery can send it for ever.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::scheme::Match;
use crate::secret::{Candidate, MAC_BYTES, Mac, Secret, first_match};
use crate::{Delivery, Headers, Refusal};

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

/// How a digest is written in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Lower-case hexadecimal.
    Hex,
    /// Standard base64 with padding.
    Base64,
}

impl BodyDigest {
    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let (header, value) = self.find(&delivery.headers)?;
        let digest = value
            .strip_prefix(self.prefix.as_bytes())
            .and_then(|digest| self.encoding.decode(digest))
            .ok_or(Refusal::MalformedSignature {
                header,
                problem: self.form(),
            })?;
        let slot = first_match(secrets, &[&delivery.body], &[Candidate::Mac(digest)])
            .ok_or(Refusal::BadSignature)?;
        Ok(Match {
            slot,
            signed_at: None,
        })
    }

    pub(super) fn sign(&self, secret: &Secret, body: &[u8]) -> Option<Vec<(&'static str, String)>> {
        let digest = self.encoding.encode(&secret.mac(&[body])?);
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

    fn form(&self) -> &'static str {
        match (self.prefix, self.encoding) {
            ("", Encoding::Hex) => "it is not 64 lower-case hex digits",
            ("", Encoding::Base64) => "it is not the base64 of 32 bytes",
            (_, Encoding::Hex) => "it is not the documented prefix and 64 lower-case hex digits",
            (_, Encoding::Base64) => "it is not the documented prefix and the base64 of 32 bytes",
        }
    }
}

impl Encoding {
    /// The digest, if this is its one canonical spelling. The `hex` crate also reads capitals, which the
    /// senders never write and their SDKs refuse.
    pub(super) fn decode(self, text: &[u8]) -> Option<Mac> {
        let mut mac = [0; MAC_BYTES];
        match self {
            Self::Hex if text.iter().any(u8::is_ascii_uppercase) => return None,
            Self::Hex => hex::decode_to_slice(text, &mut mac).ok()?,
            Self::Base64 => match STANDARD.decode_slice(text, &mut mac) {
                Ok(MAC_BYTES) => {}
                Ok(_) | Err(_) => return None,
            },
        }
        Some(mac)
    }

    pub(super) fn encode(self, mac: &Mac) -> String {
        match self {
            Self::Hex => hex::encode(mac),
            Self::Base64 => STANDARD.encode(mac),
        }
    }
}
