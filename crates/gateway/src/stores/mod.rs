//! The two stores as the path sees them: each behind its breaker, measured, and with the fallback rules
//! applied. Nothing else in the gateway talks to a store directly.

mod claims;
mod ledger;
mod once_a_minute;

use std::sync::Arc;
use std::time::Duration;

use hookgate_claim::Epoch;
use hookgate_ledger::{LedgerError, Operations, Upkeep};
use tokio_util::sync::CancellationToken;

pub use claims::GuardedClaims;
pub use ledger::{GuardedLedger, Opened, open};
pub(crate) use once_a_minute::OnceAMinute;

use crate::config::{ClaimStore, Config, LedgerStore};
use crate::metrics::Metrics;

/// How often the ledger is asked whether it answers, and on which timeline: a quiet replica, too, notices an
/// outage or a promotion within a second.
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
        let history_known = !matches!(config.ledger, LedgerStore::Postgres(_));
        let guarded = |claims| GuardedClaims::new(claims, Arc::clone(metrics), stop.clone(), history_known);
        let claims = claims::open(config)?.map(guarded);
        let opened = ledger::open(&config.ledger, ledger::limits(config))?;
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

    /// Watches the ledger until `stop`: notices outages and promotions, and refreshes the queue gauges.
    pub async fn watch(&self, configured_epoch: u32, stop: &CancellationToken) {
        let Some(ledger) = &self.ledger else { return };
        for round in 0_u32.. {
            if ledger.check().await.is_ok() {
                self.learn_epoch(configured_epoch);
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

    /// Tells the claims which history of the ledger they speak of, once it has answered: when the database
    /// changed its timeline (a promotion or a restore), all earlier done marks are void.
    pub fn learn_epoch(&self, configured: u32) {
        let (Some(claims), Some(ledger)) = (&self.claims, &self.ledger) else {
            return;
        };
        if !ledger.is_up() {
            return;
        }
        let timeline = match ledger.timeline() {
            // Not shown: then it is no reason to forget the one that was.
            0 => claims.epoch().timeline,
            timeline => timeline,
        };
        if claims.learn(Epoch { configured, timeline }) {
            tracing::info!(
                timeline,
                "claims speak of the ledger's timeline {timeline}; done marks of others are void"
            );
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
