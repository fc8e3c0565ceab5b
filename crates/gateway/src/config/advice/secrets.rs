//! Secrets that keep nobody out: published ones, shared ones, and those that are missing.

use std::collections::BTreeSet;

use hookgate_webhook::Provider;
use secrecy::ExposeSecret as _;

use super::Advice;
use crate::config::{Config, SourceConfig};

/// Of all sources and targets.
pub(super) fn advice(config: &Config) -> Vec<Advice> {
    let mut found = Vec::new();
    for source in &config.sources {
        if !config.dev {
            found.extend(published(source));
        }
        found.extend(shared(config, source));
    }
    if !config.dev {
        found.extend(unsigned(config));
    }
    found
}

/// Dev secrets stand in the source code.
fn published(source: &SourceConfig) -> Option<Advice> {
    let published = |provider: &Provider| provider.knowledge().dev_secrets;
    let ours = |provider: &Provider| published(provider).iter().any(|secret| source.has_secret(secret));
    let provider = Provider::ALL.into_iter().find(ours)?;
    Some(Advice::warning(format!(
        "source {}: one of its secrets is the published dev secret of {}, with which anybody can sign: set the provider's own",
        source.name,
        provider.name(),
    )))
}

fn shared(config: &Config, source: &SourceConfig) -> Option<Advice> {
    let shares = |other: &&SourceConfig| {
        let mut secrets = other.secrets.iter().map(|secret| secret.expose_secret());
        other.name < source.name && secrets.any(|secret| source.has_secret(secret))
    };
    let other = config.sources.iter().find(shares)?;
    Some(Advice::warning(format!(
        "source {} shares a secret with source {}: what is signed for one is accepted by the other; give each its own",
        source.name, other.name
    )))
}

/// Targets whose calls carry no signature of ours, each once.
fn unsigned(config: &Config) -> Vec<Advice> {
    let targets = config.sources.iter().filter_map(|source| source.target.as_ref());
    let names: BTreeSet<_> = targets
        .filter(|target| target.secret.is_none())
        .map(|target| target.name.as_str())
        .collect();
    let sentence = |name| {
        format!(
            "target {name}: HOOKGATE_TARGET_SECRET is not set, so calls are not signed and your service cannot tell who made them: set it to whsec_ and base64 of 24 to 64 bytes, and check Webhook-Signature"
        )
    };
    names
        .into_iter()
        .map(|name| Advice::warning(sentence(name)))
        .collect()
}
