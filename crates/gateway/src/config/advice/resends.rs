//! What is remembered for a shorter time than a provider may send it again. With a ledger the row answers what the
//! claim has forgotten; what both have forgotten runs again.

use std::time::Duration;

use hookgate_webhook::Knowledge;

use super::{Advice, shown};
use crate::config::{ClaimStore, Config, LedgerStore, SourceConfig};

/// Of one source.
pub(super) fn advice(config: &Config, source: &SourceConfig) -> Vec<Advice> {
    claims(config, source)
        .into_iter()
        .chain(rows(config, source))
        .collect()
}

fn claims(config: &Config, source: &SourceConfig) -> Option<Advice> {
    let knowledge = source.provider.knowledge();
    let ttl = config.claim_ttl;
    let without_claims = matches!(config.claims, ClaimStore::None);
    if without_claims || ttl >= knowledge.resend_window() {
        return None;
    }
    let head = format!(
        "source {}: HOOKGATE_CLAIM_TTL = {} is shorter than {} can send an event again ({})",
        source.name,
        shown(ttl),
        knowledge.name,
        windows(knowledge),
    );
    let (window, by_itself) = (
        shown(knowledge.resend_window()),
        knowledge.automatic_retries > Some(ttl),
    );
    Some(match (&config.ledger, by_itself) {
        (LedgerStore::None, _) => Advice::warning(format!(
            "{head}, and there is no ledger: a copy that comes later runs again: raise it to {window}, or set DATABASE_URL"
        )),
        (LedgerStore::Sqlite(_) | LedgerStore::Postgres(_), true) => Advice::warning(format!(
            "{head}: the ledger's row answers later copies as duplicates, so nothing runs twice, but each costs the database a question, also those that come by themselves: raise it to {window}"
        )),
        (LedgerStore::Sqlite(_) | LedgerStore::Postgres(_), false) => Advice::note(format!(
            "{head}: the ledger's row answers later copies as duplicates, so nothing runs twice; each costs the database a question, which raising it to {window} would spare"
        )),
    })
}

/// The sweep keeps rows for as long as a copy may come, whatever the setting says.
fn rows(config: &Config, source: &SourceConfig) -> Option<Advice> {
    let knowledge = source.provider.knowledge();
    let (kept, window) = (config.retention.rows, knowledge.resend_window());
    if matches!(config.ledger, LedgerStore::None) || kept >= window {
        return None;
    }
    Some(Advice::warning(format!(
        "source {}: HOOKGATE_RETENTION_EVENT = {} is shorter than {} can send an event again ({}): once its row is deleted a copy would run again, so sweeps keep the rows of {} for {} all the same: set it to that at least",
        source.name,
        shown(kept),
        knowledge.name,
        windows(knowledge),
        knowledge.name,
        shown(window),
    )))
}

/// By itself, and by hand.
fn windows(knowledge: &Knowledge) -> String {
    let one =
        |how: &str, window: Option<Duration>| window.map(|window| format!("{how} for {}", shown(window)));
    let both = [
        one("by itself", knowledge.automatic_retries),
        one("by hand", knowledge.manual_resend),
    ];
    both.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
