//! One signature in one header over a text that is joined from parts of the request: Slack, Square, HubSpot, Discord,
//! SendGrid, PayPal, and whatever a configuration describes.
//!
//! The parts are taken as they came: a URL as it is registered with the sender, a header's bytes, the body. Where a
//! label is one of the parts (a subscription's id that the request does not carry), each configured label is tried.

use crate::scheme::{Match, unix_seconds};
use crate::secret::{Secret, first_match};
use crate::{Algorithm, Challenge, Delivery, Encoding, KeyForm, Refusal, Unsigned};

/// One signature over joined parts of the request.
#[derive(Debug, Clone, Copy)]
pub struct SignedText {
    /// Header of the signature.
    pub header: &'static str,
    /// Text before the signature in its header, e.g. `v0=`.
    pub prefix: &'static str,
    /// How it is written.
    pub encoding: Encoding,
    /// How it is made.
    pub algorithm: Algorithm,
    /// How the secret's text becomes the key.
    pub key: KeyForm,
    /// Where the signed time stands, if there is one to check.
    pub timestamp: Option<Timestamp>,
    /// What is signed, in order.
    pub parts: &'static [Part],
}

/// A time in a header of its own.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Its header.
    pub header: &'static str,
    /// What it counts.
    pub unit: Unit,
}

/// What a timestamp counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
}

/// A part of the signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Fixed text.
    Text(&'static str),
    /// The timestamp's header, as it came.
    Timestamp,
    /// The body.
    Body,
    /// The CRC-32 of the body, as an unsigned decimal number.
    BodyCrc32,
    /// The public URL as it is registered with the sender.
    Url,
    /// The request's method.
    Method,
    /// A header's value. It has to be there.
    Header(&'static str),
    /// Nothing, on the condition that a header holds exactly this: an algorithm's name, where the sender announces one.
    Demand(&'static str, &'static str),
    /// A configured label; each is tried.
    Label,
}

impl SignedText {
    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let signature = delivery.headers.required(self.header)?;
        let signed_at = self.signed_at(delivery)?;
        let candidate = signature
            .strip_prefix(self.prefix.as_bytes())
            .and_then(|text| self.encoding.read(self.algorithm, text))
            .ok_or(Refusal::MalformedSignature {
                header: self.header,
                problem: self.algorithm.problem(self.encoding, !self.prefix.is_empty()),
            })?;
        let parts = self.parts(delivery)?;
        let slot = match self.parts.contains(&Part::Label) {
            false => first_match(secrets, &parts.joined(""), &[candidate]),
            true => secrets.iter().position(|secret| {
                let candidates = std::slice::from_ref(&candidate);
                let label = secret.label();
                label.is_some_and(|label| first_match(secrets, &parts.joined(label), candidates).is_some())
            }),
        };
        Ok(Match {
            slot: slot.ok_or(Refusal::BadSignature)?,
            signed_at,
        })
    }

    pub(super) fn sign(
        &self,
        secrets: &[Secret],
        unsigned: &Unsigned<'_>,
    ) -> Option<Vec<(&'static str, String)>> {
        let key = secrets.iter().find(|secret| secret.can_sign())?;
        let label = secrets.iter().find_map(Secret::label).unwrap_or_default();
        let mut headers = Vec::new();
        if let Some(timestamp) = &self.timestamp {
            headers.push((timestamp.header, timestamp.unit.write(unsigned.now)));
        }
        let known = unsigned
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        let ours = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        let delivery = Delivery {
            method: unsigned.method,
            url: unsigned.url,
            headers: known.chain(ours).collect(),
            body: bytes::Bytes::copy_from_slice(unsigned.body),
        };
        let signature = key.sign(&self.parts(&delivery).ok()?.joined(label))?;
        headers.push((
            self.header,
            format!("{}{}", self.prefix, self.encoding.write(&signature)),
        ));
        Some(headers)
    }

    pub(super) fn headers(&self) -> Vec<&'static str> {
        std::iter::once(self.header)
            .chain(self.timestamp.map(|timestamp| timestamp.header))
            .chain(self.signed_headers())
            .collect()
    }

    pub(super) fn signs_alone(&self, name: &str) -> bool {
        let is_fixed = |part: Option<&Part>| matches!(part, None | Some(Part::Text(_)));
        let is_it = |part: &Part| matches!(part, Part::Header(own) if own.eq_ignore_ascii_case(name));
        let place = self.parts.iter().position(is_it);
        place.is_some_and(|at| {
            let before = at.checked_sub(1).and_then(|before| self.parts.get(before));
            is_fixed(before) && is_fixed(self.parts.get(at + 1))
        })
    }

    /// The headers whose values are part of the text.
    pub(super) fn signed_headers(&self) -> impl Iterator<Item = &'static str> {
        let timestamp = self.timestamp.map(|timestamp| timestamp.header);
        self.parts.iter().filter_map(move |part| match part {
            Part::Header(name) => Some(*name),
            Part::Timestamp => timestamp,
            _ => None,
        })
    }

    /// Whether every text that is signed holds a character that no challenge has.
    pub(crate) fn never_signs_a_challenge(&self) -> bool {
        let foreign = |text: &str| text.bytes().any(|byte| !Challenge::may_hold(byte));
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Text(text) if foreign(text)))
    }

    fn signed_at(&self, delivery: &Delivery<'_>) -> Result<Option<i64>, Refusal> {
        let Some(timestamp) = &self.timestamp else {
            return Ok(None);
        };
        let text = delivery.headers.required(timestamp.header)?;
        match timestamp.unit.read(text) {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(Refusal::MalformedSignature {
                header: timestamp.header,
                problem: "it is not a decimal number",
            }),
        }
    }

    fn parts<'a>(&self, delivery: &'a Delivery<'_>) -> Result<Parts<'a>, Refusal> {
        let part = |part: &Part| {
            Ok(match part {
                Part::Text(text) => Piece::Bytes(text.as_bytes()),
                Part::Timestamp => match &self.timestamp {
                    Some(timestamp) => Piece::Bytes(delivery.headers.required(timestamp.header)?),
                    None => Piece::Bytes(b""),
                },
                Part::Body => Piece::Bytes(&delivery.body),
                Part::BodyCrc32 => Piece::Owned(crc32fast::hash(&delivery.body).to_string()),
                Part::Url => Piece::Bytes(delivery.url.unwrap_or_default().as_bytes()),
                Part::Method => Piece::Bytes(delivery.method.as_bytes()),
                Part::Header(name) => Piece::Bytes(delivery.headers.required(name)?),
                Part::Demand(header, value) => match delivery.headers.required(header)? {
                    found if found == value.as_bytes() => Piece::Bytes(b""),
                    _ => {
                        return Err(Refusal::MalformedSignature {
                            header,
                            problem: "it names something else than what is accepted",
                        });
                    }
                },
                Part::Label => Piece::Label,
            })
        };
        Ok(Parts(self.parts.iter().map(part).collect::<Result<_, _>>()?))
    }
}

impl Unit {
    fn read(self, digits: &[u8]) -> Option<i64> {
        let number = unix_seconds(digits)?;
        Some(match self {
            Self::Seconds => number,
            Self::Milliseconds => number.div_euclid(1000),
        })
    }

    fn write(self, unix_seconds: i64) -> String {
        match self {
            Self::Seconds => unix_seconds.to_string(),
            Self::Milliseconds => unix_seconds.saturating_mul(1000).to_string(),
        }
    }
}

struct Parts<'a>(Vec<Piece<'a>>);

enum Piece<'a> {
    Bytes(&'a [u8]),
    Owned(String),
    Label,
}

impl Parts<'_> {
    fn joined<'s>(&'s self, label: &'s str) -> Vec<&'s [u8]> {
        let piece = |piece: &'s Piece<'_>| match piece {
            Piece::Bytes(bytes) => *bytes,
            Piece::Owned(text) => text.as_bytes(),
            Piece::Label => label.as_bytes(),
        };
        self.0.iter().map(piece).collect()
    }
}
