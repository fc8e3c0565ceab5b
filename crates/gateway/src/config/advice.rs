//! What is accepted but will hurt one day: `config check` and the start print these sentences.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::{ClaimStore, Config, HandlerKind, LedgerStore, SourceConfig};

/// One sentence per risk, each naming the setting and what follows from it.
pub fn advice(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    match (&config.claims, &config.ledger) {
        (ClaimStore::Memory(_), LedgerStore::None) => found.push(
            "claims are in memory and there is no ledger: a restart forgets every event, and replicas do not see each other; for development only".to_owned(),
        ),
        (ClaimStore::Redis(_), LedgerStore::Sqlite(_)) => found.push(
            "Redis is shared and SQLite is not: run one replica, or set DATABASE_URL to Postgres".to_owned(),
        ),
        (ClaimStore::None, LedgerStore::None) => found.push(
            "there are no claims and no ledger: nothing is deduplicated".to_owned(),
        ),
        _ => {}
    }
    let idle = |source: &&SourceConfig| source.handler == HandlerKind::Inbox && !source.has_consumer();
    let idle: Vec<_> = config
        .sources
        .iter()
        .filter(idle)
        .map(|source| source.name.as_str())
        .collect();
    if !idle.is_empty() {
        found.push(format!(
            "no HOOKGATE_TARGET_URL for {}: events are kept and marked done (no_consumer)",
            idle.join(", ")
        ));
    }
    for source in &config.sources {
        found.extend(source_advice(config, source));
    }
    found
}

fn source_advice(config: &Config, source: &SourceConfig) -> Vec<String> {
    let name = &source.name;
    let knowledge = source.provider.knowledge();
    let mut found = Vec::new();
    if source.handler == HandlerKind::Forward {
        let ledger = if matches!(config.ledger, LedgerStore::None) {
            Duration::ZERO
        } else {
            config.ledger_timeout
        };
        let worst = config.claim_wait + source.handler_timeout + ledger;
        if worst > knowledge.answer_budget {
            found.push(format!(
                "source {name}: waiting {}, handling {} and the ledger {} add up to {}, {} waits {}: lower HOOKGATE_HANDLER_TIMEOUT or HOOKGATE_CLAIM_WAIT",
                shown(config.claim_wait), shown(source.handler_timeout), shown(ledger), shown(worst),
                knowledge.name, shown(knowledge.answer_budget),
            ));
        }
        if source.claim_lease <= source.handler_timeout {
            found.push(format!(
                "source {name}: HOOKGATE_CLAIM_LEASE {} is not longer than the handler timeout {}: a paused replica can be overtaken while its handler still runs",
                shown(source.claim_lease), shown(source.handler_timeout),
            ));
        }
    }
    if matches!(config.ledger, LedgerStore::None) && config.claim_ttl < knowledge.resend_window {
        found.push(format!(
            "source {name}: {} can resend for {}, claims live {}, and there is no ledger: later copies run again; raise HOOKGATE_CLAIM_TTL or set DATABASE_URL",
            knowledge.name, shown(knowledge.resend_window), shown(config.claim_ttl),
        ));
    }
    let shares = |other: &&SourceConfig| {
        let mut secrets = other.secrets.iter().map(ExposeSecret::expose_secret);
        other.name < source.name
            && secrets.any(|secret| source.secrets.iter().any(|own| own.expose_secret() == secret))
    };
    if let Some(other) = config.sources.iter().find(shares) {
        found.push(format!(
            "source {name} shares a secret with source {}: what is signed for one is accepted by the other; give each its own",
            other.name
        ));
    }
    found
}

fn shown(duration: Duration) -> impl std::fmt::Display {
    humantime::format_duration(duration)
}
