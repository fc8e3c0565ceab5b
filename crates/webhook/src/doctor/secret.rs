//! Other secrets that may have signed: the configured ones read in another way, and those of other sources.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hookgate_signature::Refusal;
use secrecy::{ExposeSecret, SecretString};

use super::spelling::unhex;
use super::trial::{Examination, Fit, Key, Trial};
use super::{BodyChange, Cause};
use crate::Provider;

const PREFIX: &str = "whsec_";
const BEARER: &str = "Bearer ";

/// Which secret signed, seen from the configured one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretChange {
    /// Its text itself is the key.
    Text,
    /// Its text without `whsec_` is the key.
    TextWithoutPrefix,
    /// Its text with `whsec_` before it is the key.
    TextWithPrefix,
    /// The bytes that it writes in base64.
    Base64,
    /// The bytes that it writes in hexadecimal.
    Hex,
    /// With a space or a line break at its end.
    SpaceAfter,
    /// With a space before it.
    SpaceBefore,
    /// With quotation marks around it.
    Quoted,
    /// Without the quotation marks around it.
    Unquoted,
    /// With `Bearer ` before it.
    BearerAdded,
    /// Without `Bearer ` before it.
    BearerRemoved,
    /// That of another source.
    OfSource(String),
    /// The published one of `hookgate dev`.
    Dev,
}

/// A key to try, and where it is from.
struct Changed {
    change: SecretChange,
    slot: usize,
    key: Material,
}

enum Material {
    Text(SecretString),
    Bytes(Vec<u8>),
}

impl Examination<'_> {
    /// The configured secrets, read in another way.
    pub(super) fn secret(&self) -> Option<(Cause, Fit)> {
        self.changed()
            .into_iter()
            .find_map(|changed| self.try_secret(changed, &self.case.delivery.body))
    }

    /// The secrets of others, and the source's own as another provider uses them.
    pub(super) fn elsewhere(&self) -> Option<(Cause, Fit)> {
        let endpoint = &self.case.endpoint;
        self.secrets_of_others()
            .or_else(|| {
                let others = self.case.others.iter();
                others
                    .filter(|other| other.provider != endpoint.provider)
                    .find_map(|other| {
                        let trial = Trial {
                            provider: other.provider,
                            key: Key::Texts(other.secrets),
                            tolerance: other.tolerance,
                            ..Trial::of(self.case)
                        };
                        let fit = self.fits(&trial)?;
                        Some((Cause::OtherSource(other.name.to_owned()), fit))
                    })
            })
            .or_else(|| {
                let mut others = Provider::ALL.into_iter();
                others.find_map(|provider| self.try_provider(provider))
            })
    }

    fn secrets_of_others(&self) -> Option<(Cause, Fit)> {
        let dev = self.case.endpoint.provider.dev_secrets();
        let others = self.case.others.iter();
        let others = others.map(|other| (SecretChange::OfSource(other.name.to_owned()), other.secrets));
        let mut all = others.chain([(SecretChange::Dev, &dev[..])]);
        all.find_map(|(change, secrets)| {
            // One at a time: what is of no use to this provider must not hide what is.
            secrets.iter().enumerate().find_map(|(slot, secret)| {
                let trial = Trial {
                    key: Key::Texts(std::slice::from_ref(secret)),
                    ..Trial::of(self.case)
                };
                let fit = self.fits(&trial)?.at(Some(slot));
                Some((Cause::Secret(change.clone()), fit))
            })
        })
    }

    fn try_provider(&self, provider: Provider) -> Option<(Cause, Fit)> {
        let knowledge = provider.knowledge();
        if provider == self.case.endpoint.provider
            || self
                .case
                .delivery
                .headers
                .get(knowledge.scheme.header())
                .is_none()
        {
            return None;
        }
        let mut secrets = self.case.endpoint.secrets.iter().enumerate();
        secrets.find_map(|(slot, secret)| {
            let trial = Trial {
                provider,
                key: Key::Texts(std::slice::from_ref(secret)),
                tolerance: knowledge.tolerance,
                ..Trial::of(self.case)
            };
            let fit = self.fits(&trial)?.at(Some(slot));
            Some((Cause::OtherProvider(provider), fit))
        })
    }

    /// The two that go wrong together: a secret read in another way, or another source's, and the end of a line.
    pub(super) fn secret_and_body(&self, refusal: Refusal) -> Option<(Cause, Fit)> {
        if refusal != Refusal::BadSignature {
            return None;
        }
        let ends = [
            BodyChange::LineBreakRemoved,
            BodyChange::LineFeedAdded,
            BodyChange::LineFeeds,
            BodyChange::LineFeedsNoneAtEnd,
        ];
        let bodies = self.plain_bodies().into_iter();
        let mut bodies = bodies.filter(|(change, _)| ends.contains(change));
        bodies.find_map(|(body_change, body)| {
            let body = Bytes::from(body);
            let mut changed = self.changed().into_iter().chain(self.of_others());
            let (cause, fit) = changed.find_map(|changed| self.try_secret(changed, &body))?;
            match cause {
                Cause::Secret(change) => Some((Cause::SecretAndBody(change, body_change), fit)),
                _ => None,
            }
        })
    }

    fn of_others(&self) -> impl Iterator<Item = Changed> {
        self.case.others.iter().flat_map(|other| {
            other.secrets.iter().enumerate().map(|(slot, secret)| Changed {
                change: SecretChange::OfSource(other.name.to_owned()),
                slot,
                key: Material::Text(secret.clone()),
            })
        })
    }

    fn try_secret(&self, changed: Changed, body: &Bytes) -> Option<(Cause, Fit)> {
        let key = match &changed.key {
            Material::Text(text) => Key::Texts(std::slice::from_ref(text)),
            Material::Bytes(bytes) => Key::Bytes(bytes),
        };
        let trial = Trial {
            key,
            body: body.clone(),
            ..Trial::of(self.case)
        };
        let fit = self.fits(&trial)?.at(Some(changed.slot));
        Some((Cause::Secret(changed.change), fit))
    }

    fn changed(&self) -> Vec<Changed> {
        let secrets = self.case.endpoint.secrets.iter().enumerate();
        secrets
            .flat_map(|(slot, secret)| {
                let texts = texts(secret.expose_secret()).into_iter();
                let texts = texts.map(|(change, text)| (change, Material::Text(text.into())));
                let keys = keys(secret.expose_secret()).into_iter();
                let keys = keys.map(|(change, bytes)| (change, Material::Bytes(bytes)));
                texts
                    .chain(keys)
                    .map(move |(change, key)| Changed { change, slot, key })
            })
            .collect()
    }
}

/// Other texts that may have been meant.
fn texts(text: &str) -> Vec<(SecretChange, String)> {
    let unquoted = ['"', '\''].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.to_owned())
    });
    let bearer = match text.strip_prefix(BEARER) {
        Some(bare) => (SecretChange::BearerRemoved, bare.to_owned()),
        None => (SecretChange::BearerAdded, format!("{BEARER}{text}")),
    };
    let unquoted = unquoted.map(|text| (SecretChange::Unquoted, text));
    unquoted.into_iter().chain([bearer]).collect()
}

/// Other keys that the text may be.
fn keys(text: &str) -> Vec<(SecretChange, Vec<u8>)> {
    let bare = text.strip_prefix(PREFIX);
    let of = |text: String| text.into_bytes();
    let read = bare.unwrap_or(text);
    let base64 = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let base64 = base64.iter().find_map(|engine| engine.decode(read).ok());
    let keys = [
        (SecretChange::Text, Some(of(text.to_owned()))),
        (
            SecretChange::TextWithoutPrefix,
            bare.map(|bare| of(bare.to_owned())),
        ),
        (SecretChange::TextWithPrefix, Some(of(format!("{PREFIX}{text}")))),
        (SecretChange::Base64, base64),
        (SecretChange::Hex, unhex(read.as_bytes())),
        (SecretChange::SpaceAfter, Some(of(format!("{text}\n")))),
        (SecretChange::SpaceAfter, Some(of(format!("{text} ")))),
        (SecretChange::SpaceAfter, Some(of(format!("{text}\r\n")))),
        (SecretChange::SpaceBefore, Some(of(format!(" {text}")))),
        (SecretChange::Quoted, Some(of(format!("\"{text}\"")))),
        (SecretChange::Quoted, Some(of(format!("'{text}'")))),
    ];
    let keys = keys.into_iter().filter_map(|(change, key)| Some((change, key?)));
    keys.filter(|(_, key)| !key.is_empty()).collect()
}
