//! Where events go: the one target of the global settings, those that the file names, and a source's own.

use std::num::NonZeroUsize;

use hookgate_signature::{Keys, Scheme, StandardWebhooks, Tolerance};
use hookgate_webhook::SourceName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::reader::{self, Reader, Wrong};
use super::source::SourceConfig;
use super::{http_url, setting};

/// Name of the target that the global settings describe.
pub(super) const DEFAULT: &str = "default";

/// Where events go. Sources with a target of the same name share its bounds, its breaker and its pause.
#[derive(Debug, Clone)]
pub struct TargetConfig {
    /// `default`, the name of a `[targets.NAME]` table, or that of the source whose own it is.
    pub name: String,
    /// `http://…` or `https://…`; may hold credentials, so it is a secret.
    pub url: SecretString,
    /// Key of the outgoing signature.
    pub secret: Option<SecretString>,
    /// Events on their way to it at the same time, from each worker.
    pub concurrency: usize,
    /// Events per second, from each worker; `None`: as many as come.
    pub rate: Option<f64>,
}

/// A `[targets.NAME]` table. What it leaves out comes from the global settings, but for the URL.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetTable {
    pub(super) url: Option<SecretString>,
    pub(super) secret: Option<SecretString>,
    pub(super) concurrency: Option<NonZeroUsize>,
    pub(super) rate: Option<f64>,
}

/// What a source says of its target.
pub(super) struct Wanted<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) url: Option<&'a SecretString>,
    pub(super) secret: Option<&'a SecretString>,
}

/// Refuses wrong bounds also while no target is configured that would have them.
pub(super) fn check(reader: &Reader) -> Result<(), Wrong> {
    let _: usize = reader.value(&setting::TARGET_CONCURRENCY, reader::positive)?;
    reader.optional(&setting::TARGET_RATE, rate)?;
    Ok(())
}

/// Refuses two addresses under one name: they would share their bounds, their breaker and their pause.
pub(super) fn distinct(sources: &[SourceConfig]) -> Result<(), Wrong> {
    let with_target =
        |source: &'_ SourceConfig| source.target.clone().map(|target| (source.name.clone(), target));
    let named: Vec<_> = sources.iter().filter_map(with_target).collect();
    for (at, (source, target)) in named.iter().enumerate() {
        let clash = named[..at].iter().find(|(_, other)| {
            other.name == target.name && other.url.expose_secret() != target.url.expose_secret()
        });
        if let Some((other, _)) = clash {
            return Err(Wrong::Combination(format!(
                "sources {other} and {source} have targets of one name, {}, with different addresses: a target_url of \
                 its own is named after its source, so call the source or the [targets.NAME] table otherwise",
                target.name
            )));
        }
    }
    Ok(())
}

/// The target of a source: the one that it names, its own, or the global one.
pub(super) fn read(
    reader: &Reader,
    source: &SourceName,
    wanted: &Wanted<'_>,
) -> Result<Option<TargetConfig>, Wrong> {
    let own = TargetTable {
        url: wanted.url.cloned(),
        secret: wanted.secret.cloned(),
        ..TargetTable::default()
    };
    match (wanted.name, &own.url) {
        (Some(_), Some(_)) => Err(Wrong::Combination(format!(
            "source {source} has a target and a target_url: it can have only one of them"
        ))),
        (Some(name), None) if own.secret.is_some() => Err(Wrong::Combination(format!(
            "source {source} has a target_secret beside its target: put the secret into [targets.{name}]"
        ))),
        (Some(name), None) => named(reader, source, name).map(Some),
        (None, Some(_)) => {
            let origin = format!("target_url of source {source}");
            complete(reader, source.as_str(), own, &origin).map(Some)
        }
        (None, None) => global(reader, source, own),
    }
}

fn named(reader: &Reader, source: &SourceName, name: &str) -> Result<TargetConfig, Wrong> {
    let Some(table) = reader.targets().and_then(|targets| targets.get(name)) else {
        return Err(Wrong::Combination(format!(
            "source {source} names the target {name:?}, and there is no [targets.{name}]"
        )));
    };
    let at = |problem: &str| Wrong::File {
        path: reader.path(),
        problem: format!("[targets.{name}]: {problem}"),
    };
    if SourceName::parse(name).is_err() || name == DEFAULT {
        return Err(at(
            "a target is called like a source: lower-case letters, digits, - and _; and not default",
        ));
    }
    let table: TargetTable = table.clone().try_into().map_err(|_| {
        at("it takes url, secret, concurrency (a whole number from 1) and rate (events per second)")
    })?;
    complete(reader, name, table, &format!("url of [targets.{name}]"))
}

/// The global one; a source may sign for it with a secret of its own.
fn global(reader: &Reader, source: &SourceName, own: TargetTable) -> Result<Option<TargetConfig>, Wrong> {
    let url = reader.optional(&setting::TARGET_URL, |text| Some(SecretString::from(text)))?;
    let Some(url) = url else { return Ok(None) };
    let table = TargetTable {
        url: Some(url),
        ..own
    };
    let origin = format!("{} for source {source}", setting::TARGET_URL.name);
    complete(reader, DEFAULT, table, &origin).map(Some)
}

fn complete(reader: &Reader, name: &str, table: TargetTable, origin: &str) -> Result<TargetConfig, Wrong> {
    let refused = |origin: &str, accepts: &str| Wrong::Value {
        origin: origin.to_owned(),
        value: "(not shown)".to_owned(),
        accepts: accepts.to_owned(),
    };
    let url = table.url.as_ref().and_then(|url| http_url(url.expose_secret()));
    let Some(url) = url else {
        return Err(refused(origin, setting::TARGET_URL.accepts));
    };
    let secret = match table.secret {
        Some(secret) => Some(secret),
        None => reader.optional(&setting::TARGET_SECRET, |text| Some(SecretString::from(text)))?,
    };
    if !secret.as_ref().is_none_or(signs) {
        let origin = format!("{} of target {name}", setting::TARGET_SECRET.name);
        return Err(refused(&origin, setting::TARGET_SECRET.accepts));
    }
    if table.rate.is_some_and(|rate| !is_rate(rate)) {
        return Err(refused(
            &format!("rate of [targets.{name}]"),
            setting::TARGET_RATE.accepts,
        ));
    }
    Ok(TargetConfig {
        name: name.to_owned(),
        url,
        secret,
        concurrency: match table.concurrency {
            Some(concurrency) => concurrency.get(),
            None => reader.value(&setting::TARGET_CONCURRENCY, reader::positive)?,
        },
        rate: match table.rate {
            Some(rate) => Some(rate),
            None => reader.optional(&setting::TARGET_RATE, rate)?,
        },
    })
}

fn signs(secret: &SecretString) -> bool {
    let scheme = Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED);
    Keys::new(scheme, std::slice::from_ref(secret), Tolerance::Off).is_ok_and(|keys| keys.can_sign())
}

fn rate(text: &str) -> Option<f64> {
    text.parse().ok().filter(|rate| is_rate(*rate))
}

/// Slower than one in about three hours is a pause, and faster than a million a second is no bound.
fn is_rate(rate: f64) -> bool {
    (0.0001..=1e6).contains(&rate)
}
