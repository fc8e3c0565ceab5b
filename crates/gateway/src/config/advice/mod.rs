//! What is accepted but will hurt one day: `config check` and the start print these sentences. Each names the
//! setting and its value, what follows from it, and what to do; none holds a secret or an address.
//!
//! Here are those that the settings alone earn. What the stores say of themselves is asked elsewhere.

mod names;
mod pooler;
mod resends;
mod secrets;
#[cfg(test)]
mod tests;
mod times;
mod tolerances;

pub use names::UnknownVariable;
pub(super) use names::unknown_variables;

use std::time::Duration;

use super::{ClaimStore, Config, HandlerKind, LedgerStore, SourceConfig, identity};

/// How much it hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Something may be lost, doubled, refused or forged; or a setting has no effect.
    Warning,
    /// Nothing goes wrong, but it costs something, or is good to know.
    Note,
}

impl Weight {
    /// `warning` or `note`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One sentence about one risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// How much it hurts.
    pub weight: Weight,
    /// What, why, and what to do.
    pub sentence: String,
}

impl Advice {
    /// About what may go wrong.
    pub fn warning(sentence: impl Into<String>) -> Self {
        Self {
            weight: Weight::Warning,
            sentence: sentence.into(),
        }
    }

    /// About what is good to know.
    pub fn note(sentence: impl Into<String>) -> Self {
        Self {
            weight: Weight::Note,
            sentence: sentence.into(),
        }
    }

    /// Into the log.
    pub fn log(&self) {
        match self.weight {
            Weight::Warning => tracing::warn!("{}", self.sentence),
            Weight::Note => tracing::info!("{}", self.sentence),
        }
    }
}

/// What the settings alone tell, in the order in which a reader needs it.
pub fn advice(config: &Config) -> Vec<Advice> {
    let mut found = names::advice(config);
    found.extend(stores(config));
    found.extend(pooler::advice(&config.ledger));
    found.extend(idle(config));
    for source in &config.sources {
        found.extend(times::advice(config, source));
        found.extend(resends::advice(config, source));
        found.extend(tolerances::advice(source));
        found.extend(of_identity(source));
    }
    found.extend(secrets::advice(config));
    found
}

/// Pairs of stores that promise less than others.
fn stores(config: &Config) -> Option<Advice> {
    let sentence = match (&config.claims, &config.ledger) {
        (ClaimStore::Memory(_), LedgerStore::None) => {
            "claims are in memory and there is no ledger: a restart forgets every event, and replicas do not see each other; for development only"
        }
        (ClaimStore::Redis(_), LedgerStore::Sqlite(_)) => {
            "Redis is shared and SQLite is not: run one replica, or set DATABASE_URL to Postgres"
        }
        (ClaimStore::None, LedgerStore::None) => "there are no claims and no ledger: nothing is deduplicated",
        _ => return None,
    };
    Some(Advice::warning(sentence))
}

/// Sources whose events nobody gets.
fn idle(config: &Config) -> Option<Advice> {
    let idle = |source: &&SourceConfig| source.handler == HandlerKind::Inbox && !source.has_consumer();
    let names: Vec<_> = config
        .sources
        .iter()
        .filter(idle)
        .map(|source| source.name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        Advice::warning(format!(
            "no HOOKGATE_TARGET_URL for {}: events are kept and marked done (no_consumer)",
            names.join(", ")
        ))
    })
}

/// Settings about the identity of events that their provider leaves without effect.
fn of_identity(source: &SourceConfig) -> Option<Advice> {
    let problem = identity::without_effect(&source.identity, source.provider)?;
    Some(Advice::warning(format!("source {}: {problem}", source.name)))
}

fn shown(duration: Duration) -> impl std::fmt::Display {
    humantime::format_duration(duration)
}
