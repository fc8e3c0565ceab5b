//! Times that do not go together: answers that come when nobody waits for them any more, and leases that end while
//! their holder still works.

use std::time::Duration;

use super::{Advice, shown};
use crate::config::{ClaimStore, Config, Consumer, HandlerKind, LedgerStore, SourceConfig};

/// Of one source.
pub(super) fn advice(config: &Config, source: &SourceConfig) -> Vec<Advice> {
    let found = [
        answer(config, source),
        claim_lease(source),
        worker_lease(config, source),
    ];
    found.into_iter().flatten().collect()
}

/// The longest an answer may take, against how long the provider waits for it.
fn answer(config: &Config, source: &SourceConfig) -> Option<Advice> {
    let knowledge = source.provider.knowledge();
    let parts: Vec<_> = parts(config, source)
        .into_iter()
        .filter(|(_, time)| !time.is_zero())
        .collect();
    let worst: Duration = parts.iter().map(|(_, time)| *time).sum();
    if worst <= knowledge.answer_budget {
        return None;
    }
    let named: Vec<_> = parts
        .iter()
        .map(|(name, time)| format!("{name} = {}", shown(*time)))
        .collect();
    let lower = match source.handler {
        HandlerKind::Forward => "HOOKGATE_HANDLER_TIMEOUT or HOOKGATE_CLAIM_WAIT",
        HandlerKind::Inbox => "HOOKGATE_LEDGER_TIMEOUT",
    };
    Some(Advice::warning(format!(
        "source {}: {} add up to {}, and {} waits {}: it would take a delivery for failed that is not, and send it again: lower {lower}",
        source.name,
        named.join(", "),
        shown(worst),
        knowledge.name,
        shown(knowledge.answer_budget),
    )))
}

/// What an answer may have to wait for, one after the other.
fn parts(config: &Config, source: &SourceConfig) -> Vec<(&'static str, Duration)> {
    let claim = match &config.claims {
        ClaimStore::Redis(settings) => settings.timeout,
        ClaimStore::None | ClaimStore::Memory(_) => Duration::ZERO,
    };
    let ledger = match &config.ledger {
        LedgerStore::None => Duration::ZERO,
        LedgerStore::Sqlite(_) | LedgerStore::Postgres(_) => config.ledger_timeout,
    };
    let mut parts = vec![("HOOKGATE_REDIS_TIMEOUT", claim)];
    if source.handler == HandlerKind::Forward {
        parts.push(("HOOKGATE_CLAIM_WAIT", config.claim_wait));
        parts.push(("HOOKGATE_HANDLER_TIMEOUT", source.handler_timeout));
    }
    parts.push(("HOOKGATE_LEDGER_TIMEOUT", ledger));
    parts
}

/// A claim is renewed while its handler lives, but not by a replica that stands still.
fn claim_lease(source: &SourceConfig) -> Option<Advice> {
    let hurts = source.handler == HandlerKind::Forward && source.claim_lease <= source.handler_timeout;
    hurts.then(|| {
        Advice::warning(format!(
            "source {}: HOOKGATE_CLAIM_LEASE = {} is not longer than HOOKGATE_HANDLER_TIMEOUT = {}: a replica that is paused or cut off from its stores is overtaken while its call still runs, and the target is called twice at a time: raise it above",
            source.name,
            shown(source.claim_lease),
            shown(source.handler_timeout),
        ))
    })
}

/// The same for the calls of workers, who renew their leases just so.
fn worker_lease(config: &Config, source: &SourceConfig) -> Option<Advice> {
    let called = source.consumer == Consumer::Target && source.target.is_some();
    let by_workers = source.handler == HandlerKind::Inbox || !source.provider.knowledge().retries();
    let hurts = called && by_workers && config.worker_lease <= source.handler_timeout;
    hurts.then(|| {
        Advice::warning(format!(
            "source {}: HOOKGATE_WORKER_LEASE = {} is not longer than HOOKGATE_HANDLER_TIMEOUT = {}: a worker that is paused or cut off from the database is overtaken while its call still runs, and the target is called twice at a time: raise it above",
            source.name,
            shown(config.worker_lease),
            shown(source.handler_timeout),
        ))
    })
}
