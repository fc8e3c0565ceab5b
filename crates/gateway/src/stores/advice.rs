//! What the stores themselves tell that will hurt one day: asked by `config check`, and once after a start, when a
//! store first answers. Nobody waits for it, and nothing fails by it.

use std::time::Duration;

use hookgate_claim::{Claims as _, Epoch, NodeMemory, RedisClaims};
use hookgate_ledger::{Finding, LedgerError, Limits, PostgresLedger, Upkeep as _};
use tokio::time::timeout;

use super::Unusable;
use crate::config::{Advice, ClaimStore, Config, LedgerStore};

/// Longest wait of a person for a store.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// Asks the stores of this configuration. One that cannot be reached is said, and is no reason to refuse: a check may
/// run where the stores are out of reach. A SQLite file is not opened: that would make it.
///
/// # Errors
/// [`Unusable`] if the database answers and a start would refuse it.
pub async fn ask(config: &Config) -> Result<Vec<Advice>, Unusable> {
    let mut found = ask_claims(config).await?;
    if let LedgerStore::Postgres(url) = &config.ledger {
        let limits = Limits {
            append: ASK_TIMEOUT,
            ..Limits::default()
        };
        let ledger = PostgresLedger::connect(url, limits)?;
        found.extend(match timeout(ASK_TIMEOUT, ledger.checkup()).await {
            Ok(Ok(findings)) => findings.iter().map(of_ledger).collect(),
            Ok(Err(LedgerError::Unavailable(cause))) => vec![unasked("DATABASE_URL", "the database", &cause)],
            Ok(Err(refused)) => return Err(refused.into()),
            Err(_) => vec![unasked("DATABASE_URL", "the database", "no answer in time")],
        });
    }
    Ok(found)
}

async fn ask_claims(config: &Config) -> Result<Vec<Advice>, Unusable> {
    let ClaimStore::Redis(settings) = &config.claims else {
        return Ok(Vec::new());
    };
    let mut settings = settings.clone();
    settings.timeout = settings.timeout.max(ASK_TIMEOUT);
    let claims = RedisClaims::new(settings, Epoch::default())?;
    Ok(match claims.memory().await {
        Ok(nodes) => of_memory(&nodes, has_ledger(config)).into_iter().collect(),
        Err(unavailable) => vec![unasked("REDIS_URL", "Redis", &unavailable.cause)],
    })
}

pub(super) fn has_ledger(config: &Config) -> bool {
    !matches!(config.ledger, LedgerStore::None)
}

fn unasked(setting: &str, store: &str, cause: &str) -> Advice {
    Advice::warning(format!(
        "{setting}: {store} could not be asked ({cause}), so nothing is known of it: run this where it can be reached, or with --offline"
    ))
}

/// What full servers do with claims.
pub(super) fn of_memory(nodes: &[NodeMemory], has_ledger: bool) -> Option<Advice> {
    let evicts = |node: &&NodeMemory| node.policy != "noeviction" && node.bytes_max > 0;
    let evicting: Vec<_> = nodes.iter().filter(evicts).collect();
    let NodeMemory { policy, bytes_max } = evicting.first()?;
    let nodes = match nodes.len() {
        1 => String::new(),
        all => format!(", on {} of {all} nodes", evicting.len()),
    };
    let harm = match has_ledger {
        true => {
            "the ledger answers copies of events whose claim is gone, at a question each, and replicas do not see each other's work in flight"
        }
        false => "there is no ledger, so an event whose claim is gone runs again",
    };
    Some(Advice::warning(format!(
        "Redis drops claims when its memory is full (maxmemory-policy = {policy}, maxmemory = {bytes_max} bytes{nodes}): {harm}: set maxmemory-policy to noeviction, or give claims a Redis of their own"
    )))
}

/// What was found about the database, for people.
pub(super) fn of_ledger(finding: &Finding) -> Advice {
    match finding {
        Finding::LentByTransaction => Advice::warning(
            "the database is behind a pooler that lends a session for each transaction: no news of events pass, so a fresh event starts up to 200 ms later, each call costs three more round trips, and a failover is noticed within two seconds and not at once: use session pooling or the database's own address",
        ),
        Finding::LendingUnknown => Advice::note(
            "whether a pooler lends database sessions by the transaction could not be found out, since a second connection failed: each call is made as if, which costs three more round trips; allow more connections",
        ),
        Finding::Standby => Advice::warning(
            "the database is a standby and keeps no events: deliveries are answered 503 until it is promoted: let DATABASE_URL name the primary",
        ),
        Finding::CommitsEarly(word) => Advice::note(format!(
            "the database has synchronous_commit = {word}: commits of hookgate wait for the disk all the same, those of others do not"
        )),
        Finding::StandbysBehind(standbys) => Advice::note(format!(
            "{standbys} standby(s) follow the database and no commit waits for one: a failover may lose the latest events although they were answered 200: set synchronous_standby_names, and read docs/restore.md"
        )),
        Finding::Old { version, oldest } => Advice::warning(format!(
            "the database is Postgres {version}, and {oldest} is the oldest that is supported: upgrade it"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(policy: &str, bytes_max: u64) -> NodeMemory {
        NodeMemory {
            policy: policy.to_owned(),
            bytes_max,
        }
    }

    #[test]
    fn only_a_server_that_can_be_full_and_evicts_earns_a_warning() {
        let check = |nodes: &[NodeMemory], has_ledger, expected: Option<&[&str]>| {
            let found = of_memory(nodes, has_ledger).map(|advice| advice.sentence);
            match (expected, &found) {
                (None, None) => {}
                (Some(needles), Some(found)) => {
                    assert!(needles.iter().all(|needle| found.contains(needle)), "{found}");
                }
                _ => panic!("{nodes:?} earn {found:?}"),
            }
        };
        check(&[node("noeviction", 1024)], false, None);
        check(&[node("allkeys-lru", 0)], false, None);
        check(
            &[node("allkeys-lru", 1024)],
            false,
            Some(&["= allkeys-lru", "1024 bytes)", "runs again", "noeviction"]),
        );
        check(
            &[node("volatile-ttl", 1024)],
            true,
            Some(&["= volatile-ttl", "the ledger answers"]),
        );
        let cluster = [
            node("noeviction", 9),
            node("allkeys-lfu", 8),
            node("allkeys-lfu", 8),
        ];
        check(&cluster, true, Some(&["= allkeys-lfu", "on 2 of 3 nodes"]));
    }
}
