//! The two stores as the path sees them: each behind its breaker, measured, and with the fallback rules
//! applied. Nothing else in the gateway talks to a store directly.

mod advice;
mod claims;
mod ledger;
mod once_a_minute;

use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{LedgerError, Operations, Upkeep};
use tokio_util::sync::CancellationToken;

pub use advice::ask;
pub use claims::GuardedClaims;
pub use ledger::{GuardedLedger, Opened, open};
pub(crate) use once_a_minute::OnceAMinute;

use crate::config::{Advice, ClaimStore, Config, LedgerStore};
use crate::metrics::Metrics;

/// How often the ledger is asked whether it answers: a quiet replica, too, notices an outage within a second.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// How many of these rounds pass between two looks at the depth, which counts rows.
const ROUNDS_PER_DEPTH: u32 = 5;

/// Both stores; either may be absent by configuration, never both for an inbox.
#[derive(Clone)]
pub struct Stores {
    /// Saves work.
    pub claims: Option<Arc<GuardedClaims>>,
    /// Decides.
    pub ledger: Option<Arc<GuardedLedger>>,
    /// The same ledger, as people use it.
    pub operations: Option<Arc<dyn Operations>>,
    /// And as upkeep uses it.
    pub upkeep: Option<Arc<dyn Upkeep>>,
}

/// A store cannot be used as configured.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The claim store's URL.
    #[error("REDIS_URL: {0}")]
    Claims(#[from] hookgate_claim::BadRedisUrl),
    /// The ledger.
    #[error("DATABASE_URL: {0}")]
    Ledger(#[from] LedgerError),
}

impl Stores {
    /// Opens both; needs a tokio runtime. Neither needs to be reachable now: a gateway starts while its stores are down.
    pub fn open(config: &Config, metrics: &Arc<Metrics>, stop: &CancellationToken) -> Result<Self, Unusable> {
        let claims = claims::open(config)?;
        let opened = ledger::open(&config.ledger, ledger::limits(config))?;
        let guarded = |claims| {
            let history = opened.as_ref().map(|opened| opened.ledger.history());
            GuardedClaims::new(claims, Arc::clone(metrics), stop.clone(), history)
        };
        let claims = claims.map(guarded);
        let operations = opened.as_ref().map(|opened| Arc::clone(&opened.operations));
        let upkeep = opened.as_ref().map(|opened| Arc::clone(&opened.upkeep));
        let ledger =
            opened.map(|opened| GuardedLedger::new(opened.ledger, Arc::clone(metrics), stop.clone()));
        Ok(Self {
            claims,
            ledger,
            operations,
            upkeep,
        })
    }

    /// Names the stores for people, without addresses.
    pub fn describe(config: &Config) -> String {
        let claims = match &config.claims {
            ClaimStore::None => "none",
            ClaimStore::Memory(_) => "memory",
            ClaimStore::Redis(_) => "redis",
        };
        let ledger = match &config.ledger {
            LedgerStore::None => "none",
            LedgerStore::Sqlite(_) => "sqlite",
            LedgerStore::Postgres(_) => "postgres",
        };
        format!("claims {claims}, ledger {ledger}")
    }

    /// Watches the ledger until `stop`: notices outages, and refreshes the queue gauges.
    pub async fn watch(&self, stop: &CancellationToken) {
        let Some(ledger) = &self.ledger else { return };
        for round in 0_u32.. {
            // Whatever it answers, its breaker has heard it.
            let _ = ledger.check().await;
            if let Some(claims) = &self.claims {
                claims.learn_history();
            }
            if round % ROUNDS_PER_DEPTH == 0 {
                ledger.measure_depth().await;
            }
            if stop
                .run_until_cancelled(tokio::time::sleep(WATCH_INTERVAL))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Waits a moment for the ledger to name its history, so that the first copies are not all its own to judge. One
    /// that does not answer is not waited for.
    pub async fn history_named(&self) {
        let (Some(claims), Some(ledger)) = (&self.claims, &self.ledger) else {
            return;
        };
        if ledger.is_up() {
            let _ = tokio::time::timeout(WATCH_INTERVAL, claims.history_named()).await;
        }
    }

    /// Says once what each store tells of itself that will hurt one day, as soon as it answers. `said` hears it.
    pub async fn advise(&self, said: impl Fn(Advice), stop: &CancellationToken) {
        let (mut claims, mut upkeep) = (self.claims.as_ref(), self.upkeep.as_ref());
        while claims.is_some() || upkeep.is_some() {
            if let Some(asked) = claims
                && let Ok(nodes) = asked.memory().await
            {
                let told = advice::of_memory(&nodes, self.ledger.is_some());
                told.into_iter().for_each(&said);
                claims = None;
            }
            if let Some(asked) = upkeep
                && let Ok(found) = asked.checkup().await
            {
                found.iter().map(advice::of_ledger).for_each(&said);
                upkeep = None;
            }
            let rest = tokio::time::sleep(WATCH_INTERVAL);
            if stop.run_until_cancelled(rest).await.is_none() {
                return;
            }
        }
    }

    /// Ends connections after the last delivery.
    pub async fn close(&self) {
        if let Some(claims) = &self.claims {
            claims.close().await;
        }
        if let Some(ledger) = &self.ledger {
            ledger.close().await;
        }
    }
}
