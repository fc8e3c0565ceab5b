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
    found.extend(pooler_advice(&config.ledger));
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

/// Behind a transaction pooler each statement may run in another session: nobody hears the news that was asked
/// for, and limits that were set hold for somebody else.
fn pooler_advice(ledger: &LedgerStore) -> Option<String> {
    let LedgerStore::Postgres(url) = ledger else {
        return None;
    };
    let sign = pooler_sign(url.expose_secret())?;
    Some(format!(
        "DATABASE_URL looks like the address of a pooler ({sign}): news of events and limits of statements do not pass one that pools transactions: use session pooling or the database's own address, or expect up to 200 ms until a fresh event starts"
    ))
}

/// What about an address is a pooler's; nothing of the address itself.
fn pooler_sign(url: &str) -> Option<&'static str> {
    let url = reqwest::Url::parse(url).ok()?;
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let named = ["pooler", "pgbouncer", "pgcat", "odyssey"];
    if matches!(url.port(), Some(6432 | 6543)) {
        Some("its port")
    } else if named.iter().any(|name| host.contains(name)) {
        Some("its host's name")
    } else if url.query_pairs().any(|(name, _)| name == "pgbouncer") {
        Some("its parameter pgbouncer")
    } else {
        None
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_looks_like_a_poolers_is_known_by_its_port_host_or_parameters() {
        for (url, sign) in [
            ("postgres://u:p@db:6432/hookgate", Some("its port")),
            (
                "postgres://u:p@aws-0.pooler.example.com/hookgate",
                Some("its host's name"),
            ),
            ("postgresql://u@PgBouncer/hookgate", Some("its host's name")),
            (
                "postgres://u@db/hookgate?sslmode=require&pgbouncer=true",
                Some("its parameter pgbouncer"),
            ),
            ("postgres://pooler:pgbouncer@db:5432/pooler?sslmode=require", None),
            ("postgres://u@db/hookgate", None),
        ] {
            assert_eq!(pooler_sign(url), sign, "{url}");
        }
    }
}
