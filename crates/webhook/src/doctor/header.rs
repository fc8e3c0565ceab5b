//! Other headers: under their own names again, once instead of twice, with the signature spelt as its provider spells
//! it. And what can be said of headers when nothing fits.

use hookgate_signature::{
    Algorithm, BodyDigest, Delivery, Encoding, Headers, KeyForm, Keys, Part, Refusal, Scheme, SignedText,
    Tolerance,
};

use super::spelling::{self, pieces};
use super::trial::{Examination, Fit, Trial};
use super::{Case, Cause};
use crate::Provider;

/// More headers than any sender writes.
const HEADERS_MAX: usize = 64;

/// Which of several values fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The first.
    First,
    /// The last.
    Last,
}

/// How names of headers were changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rename {
    /// As variables of CGI: `HTTP_`, and `_` for `-`.
    Underscores,
    /// The brand before `-id`, `-timestamp` and `-signature`; this is what the signature's header is called.
    Brand(String),
    /// This header holds the signature.
    Found(String),
}

impl Examination<'_> {
    pub(super) fn header(&self) -> Option<(Cause, Fit)> {
        self.repeated()
            .or_else(|| self.renamed())
            .or_else(|| self.respelt())
            .or_else(|| self.other_hash())
    }

    fn scheme(&self) -> Scheme {
        self.case.endpoint.provider.knowledge().scheme
    }

    fn signature(&self) -> Option<&str> {
        self.case.delivery.headers.text(self.scheme().header())
    }

    fn with_headers(&self, headers: Headers<'_>) -> Option<Fit> {
        let trial = Trial::of(self.case);
        self.fits(&Trial { headers, ..trial })
    }

    fn repeated(&self) -> Option<(Cause, Fit)> {
        let headers = &self.case.delivery.headers;
        let mut wanted = wanted(self.case.endpoint.provider).into_iter();
        let header = wanted.find(|name| headers.sole(name).is_err())?;
        let values: Vec<_> = headers.all(header).filter(|value| !value.is_empty()).collect();
        let only = |value: Option<&&[u8]>| {
            let others = headers
                .iter()
                .filter(|(name, _)| !name.eq_ignore_ascii_case(header));
            let value = *value?;
            self.with_headers(others.chain([(header, value)]).collect())
        };
        let first = only(values.first()).map(|fit| (Kept::First, fit));
        let found = first.or_else(|| only(values.last()).map(|fit| (Kept::Last, fit)));
        found.map(|(kept, fit)| {
            let fits = Some(kept);
            (Cause::Repeated { header, fits }, fit)
        })
    }

    fn renamed(&self) -> Option<(Cause, Fit)> {
        let headers = &self.case.delivery.headers;
        let header = self.scheme().header();
        if headers.get(header).is_some() || headers.iter().count() > HEADERS_MAX {
            return None;
        }
        let plain: Vec<_> = headers
            .iter()
            .map(|(name, value)| (without_underscores(name), value))
            .collect();
        let plain = plain.iter().map(|(name, value)| (&**name, *value));
        let underscores = self
            .with_headers(plain.collect())
            .map(|fit| (Rename::Underscores, fit));
        let found = underscores.or_else(|| self.branded()).or_else(|| {
            let mut names = headers.iter().filter(|(_, value)| !value.is_empty());
            names.find_map(|(found, value)| {
                let others = headers.iter();
                let fit = self.with_headers(others.chain([(header, value)]).collect())?;
                Some((Rename::Found(found.to_owned()), fit))
            })
        });
        found.map(|(rename, fit)| (Cause::Renamed { header, rename }, fit))
    }

    fn branded(&self) -> Option<(Rename, Fit)> {
        let Scheme::StandardWebhooks(scheme) = self.scheme() else {
            return None;
        };
        let headers = &self.case.delivery.headers;
        let brands = headers.iter().filter_map(|(name, _)| {
            let brand = name.len().checked_sub("-signature".len())?;
            let ends = name.get(brand..)?.eq_ignore_ascii_case("-signature");
            ends.then(|| (name, &name[..brand]))
        });
        brands.collect::<Vec<_>>().into_iter().find_map(|(name, brand)| {
            let of = |part: &str| headers.get(&format!("{brand}-{part}"));
            let own = [
                (scheme.id, of("id")?),
                (scheme.timestamp, of("timestamp")?),
                (scheme.signature, of("signature")?),
            ];
            let fit = self.with_headers(own.into_iter().collect())?;
            Some((Rename::Brand(name.to_owned()), fit))
        })
    }

    fn respelt(&self) -> Option<(Cause, Fit)> {
        let (scheme, value) = (self.scheme(), self.signature()?);
        let header = scheme.header();
        let mut others = spelling::respelt(&scheme, value).into_iter();
        others.find_map(|(spelling, other)| {
            let headers = self.case.delivery.headers.iter();
            let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case(header));
            let fit = self.with_headers(headers.chain([(header, other.as_bytes())]).collect())?;
            Some((Cause::Spelling { header, spelling }, fit))
        })
    }

    /// A digest of the body by another function, in the same header or in the older one that stands beside it.
    fn other_hash(&self) -> Option<(Cause, Fit)> {
        let Scheme::BodyDigest(BodyDigest {
            headers: [header, ..],
            ..
        }) = self.scheme()
        else {
            return None;
        };
        let older = header.strip_suffix("-256").unwrap_or(header);
        let headers = &self.case.delivery.headers;
        let value = headers.text(header).or_else(|| headers.text(older))?;
        let found = pieces(value).find_map(|piece| {
            let (hash, algorithm) = match piece.bytes.len() {
                20 => ("SHA-1", Algorithm::HmacSha1),
                64 => ("SHA-512", Algorithm::HmacSha512),
                _ => return None,
            };
            Some((hash, self.slot_by(algorithm, &super::hex(&piece.bytes))))
        });
        found.map(|(hash, slot)| {
            let fits = slot.is_some();
            let fit = Fit::default().at(slot);
            (Cause::Hash { hash, header, fits }, fit)
        })
    }

    fn slot_by(&self, algorithm: Algorithm, digest: &str) -> Option<usize> {
        const HEADER: &str = "Digest";
        let scheme = Scheme::SignedText(SignedText {
            header: HEADER,
            prefix: "",
            encoding: Encoding::Hex,
            algorithm,
            key: KeyForm::Text,
            timestamp: None,
            parts: &[Part::Body],
        });
        let keys = Keys::new(scheme, self.case.endpoint.secrets, Tolerance::Off).ok()?;
        let delivery = Delivery {
            headers: [(HEADER, digest.as_bytes())].into_iter().collect(),
            ..self.case.delivery.clone()
        };
        keys.verify(delivery, self.now)
            .ok()
            .map(|verified| verified.slot())
    }

    /// What can be said without proof.
    pub(super) fn unexplained(&self, refusal: Refusal) -> Cause {
        let headers = &self.case.delivery.headers;
        match refusal {
            Refusal::MissingSignature(header) if headers.all(header).next().is_some() => Cause::Empty(header),
            Refusal::MissingSignature(header) => match self.looks_like() {
                Some(provider) => Cause::LooksLike { header, provider },
                None => Cause::Missing(header),
            },
            Refusal::MalformedSignature { header, problem } => self.malformed(header, problem),
            Refusal::BadSignature | Refusal::StaleTimestamp { .. } | Refusal::FutureTimestamp { .. } => {
                let is = self.case.delivery.body.len();
                if self.needs_a_named_key() {
                    return Cause::NamedKey;
                }
                match (self.content_length(), self.dropped()) {
                    (Some(said), _) if said != is => Cause::ContentLength { said, is },
                    (_, Some(header)) => Cause::Dropped(header),
                    _ => Cause::Unknown,
                }
            }
        }
    }

    fn needs_a_named_key(&self) -> bool {
        let Case { endpoint, .. } = self.case;
        let keys = endpoint.provider.keys(endpoint.secrets, endpoint.tolerance);
        keys.is_ok_and(|keys| keys.needs_a_named_key())
    }

    fn malformed(&self, header: &'static str, problem: &'static str) -> Cause {
        let headers = &self.case.delivery.headers;
        if headers.sole(header).is_err() {
            return Cause::Repeated { header, fits: None };
        }
        let value = headers.text(header).unwrap_or_default();
        match self.scheme() {
            Scheme::TimestampedList(scheme) if scheme.header == header => {
                let items = value.split(char::from(scheme.separator));
                let keys: Vec<_> = items.filter_map(|item| item.split_once('=')).collect();
                let own = keys.iter().find(|(key, _)| *key == scheme.signature);
                let other = keys.iter().find(|(key, text)| {
                    *key != scheme.timestamp && plain_key(key) && pieces(text).next().is_some()
                });
                match (own, other) {
                    (None, Some((found, _))) => Cause::Version {
                        header,
                        wanted: scheme.signature,
                        found: (*found).to_owned(),
                    },
                    (Some((_, text)), _) => length(header, text, 64, problem),
                    (None, None) => Cause::Malformed { header, problem },
                }
            }
            Scheme::BodyDigest(scheme) if scheme.headers.contains(&header) => {
                let wanted = match scheme.encoding {
                    Encoding::Hex => 64,
                    Encoding::Base64 => 44,
                };
                match value.strip_prefix(scheme.prefix) {
                    Some(text) => length(header, text, wanted, problem),
                    None => Cause::Malformed { header, problem },
                }
            }
            _ => Cause::Malformed { header, problem },
        }
    }

    /// A provider whose signature header is there, while this source's is not.
    fn looks_like(&self) -> Option<Provider> {
        let own = self.scheme().header();
        // Too common to tell anybody by.
        let telling =
            |name: &str| !name.eq_ignore_ascii_case(own) && !name.eq_ignore_ascii_case("authorization");
        let headers = &self.case.delivery.headers;
        Provider::ALL.into_iter().find(|provider| {
            let header = provider.knowledge().scheme.header();
            telling(header) && headers.get(header).is_some()
        })
    }

    /// Where parts of a request are signed that only the provider's file knows, a header of it that is not there.
    fn dropped(&self) -> Option<&'static str> {
        let knowledge = self.case.endpoint.provider.knowledge();
        let detached = matches!(knowledge.scheme, Scheme::Detached(_));
        let mut sent = knowledge.forwarded_headers.iter().filter(|_| detached);
        sent.find(|name| self.case.delivery.headers.get(name).is_none())
            .copied()
    }
}

/// The headers that a scheme reads.
fn wanted(provider: Provider) -> Vec<&'static str> {
    let knowledge = provider.knowledge();
    match knowledge.scheme {
        Scheme::TimestampedList(scheme) => vec![scheme.header],
        Scheme::BodyDigest(scheme) => scheme.headers.to_vec(),
        Scheme::StandardWebhooks(scheme) => vec![scheme.signature, scheme.timestamp, scheme.id],
        Scheme::Token(scheme) => vec![scheme.header],
        Scheme::Detached(scheme) => [&[scheme.header], knowledge.forwarded_headers].concat(),
        Scheme::SignedText(scheme) => {
            let timestamp = scheme.timestamp.map(|timestamp| timestamp.header);
            let parts = scheme.parts.iter().filter_map(|part| match part {
                Part::Header(name) => Some(*name),
                _ => None,
            });
            [scheme.header]
                .into_iter()
                .chain(timestamp)
                .chain(parts)
                .collect()
        }
    }
}

fn length(header: &'static str, text: &str, wanted: usize, problem: &'static str) -> Cause {
    let is = text.len();
    let digits = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte));
    match digits && is > 0 && is != wanted {
        true => Cause::Length { header, is, wanted },
        false => Cause::Malformed { header, problem },
    }
}

fn without_underscores(name: &str) -> String {
    let name = name.strip_prefix("HTTP_").unwrap_or(name);
    name.replace('_', "-")
}

/// Short enough to be a version and no signature.
fn plain_key(key: &str) -> bool {
    (1..=8).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
