//! The sweeper: empties bodies and deletes rows that retention no longer keeps. One replica sweeps at a time,
//! elected by a lease; that is a courtesy to the database, not a need: any number may sweep at once and be
//! stopped anywhere. Between two small steps it rests for as long as the step took, so that it never has more
//! than half of what the database can do for it, and receiving keeps its pace.

use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{DeliveryId, Elected, LedgerError, Retention, SweepPlace, Swept, Upkeep};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::metrics::Metrics;

/// The name of the lease.
const JOB: &str = "sweep";

/// How long a sweeper that died keeps others from it.
const LEASE: Duration = Duration::from_secs(60);

/// Pause between two sweeps.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Pause after a sweep that the database did not let end.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Least pause between two steps: commits of a few rows each must not follow so closely that they slow down
/// everybody else's.
const REST_MIN: Duration = Duration::from_millis(10);

/// Longest time for giving the lease back at the end; it ends by itself, too.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(2);

/// Keeps the ledger small.
pub struct Sweeper {
    upkeep: Arc<dyn Upkeep>,
    retention: Retention,
    metrics: Arc<Metrics>,
    owner: DeliveryId,
}

/// What became of one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Pass {
    /// It did this. If there is more to do, it was stopped in the middle.
    Swept(Swept),
    /// Another process is at it.
    Elsewhere,
}

impl Sweeper {
    /// A sweeper with a name of its own.
    pub fn new(upkeep: Arc<dyn Upkeep>, retention: Retention, metrics: Arc<Metrics>) -> Self {
        Self {
            upkeep,
            retention,
            metrics,
            owner: DeliveryId(rand::random()),
        }
    }

    /// Sweeps now and then every hour, until `stop`. The times are spread, so that replicas started together
    /// do not ask together for ever.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let pause = match self.run_once(&stop).await {
                Ok(pass) => {
                    tell(pass);
                    INTERVAL
                }
                Err(error) => {
                    tracing::warn!(%error, "the sweep did not end; it goes on in a minute");
                    RETRY_INTERVAL
                }
            };
            let pause = pause.mul_f64(rand::random_range(0.9..1.1));
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// Sweeps until nothing is left to do, or until `stop`, unless another process is at it.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger cannot answer. What was done until then stays done.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Pass, LedgerError> {
        if self.elect().await? == Elected::No {
            return Ok(Pass::Elsewhere);
        }
        let swept = self.sweep(stop).await;
        let resigned = timeout(RESIGN_TIMEOUT, self.upkeep.resign(JOB, self.owner)).await;
        if !matches!(resigned, Ok(Ok(()))) {
            tracing::debug!("the lease of the sweep was not given back; it ends by itself");
        }
        swept.map(Pass::Swept)
    }

    async fn sweep(&self, stop: &CancellationToken) -> Result<Swept, LedgerError> {
        let mut all = Swept {
            more: true,
            ..Swept::default()
        };
        let mut place = SweepPlace::default();
        let mut elected_at = Instant::now();
        while all.more {
            let begun = Instant::now();
            let step = self.upkeep.sweep(self.retention, &mut place);
            let Some(step) = stop.run_until_cancelled(step).await else {
                return Ok(all);
            };
            self.add(&mut all, step?);
            let rest = sleep(begun.elapsed().max(REST_MIN));
            if all.more && stop.run_until_cancelled(rest).await.is_none() {
                return Ok(all);
            }
            if elected_at.elapsed() > LEASE / 3 {
                if self.elect().await? == Elected::No {
                    return Ok(all);
                }
                elected_at = Instant::now();
            }
        }
        self.metrics.sweep_last_success.set(clock::unix_seconds());
        Ok(all)
    }

    async fn elect(&self) -> Result<Elected, LedgerError> {
        self.upkeep.elect(JOB, self.owner, LEASE).await
    }

    fn add(&self, all: &mut Swept, step: Swept) {
        for (action, rows) in [("pruned", step.pruned), ("deleted", step.deleted)] {
            self.metrics.swept_rows.with_label_values(&[action]).inc_by(rows);
        }
        all.pruned += step.pruned;
        all.deleted += step.deleted;
        all.more = step.more;
    }
}

fn tell(pass: Pass) {
    match pass {
        Pass::Elsewhere => tracing::debug!("another process sweeps"),
        Pass::Swept(Swept {
            pruned: 0,
            deleted: 0,
            ..
        }) => tracing::debug!("nothing to sweep"),
        Pass::Swept(Swept { pruned, deleted, .. }) => {
            tracing::info!(
                pruned,
                deleted,
                "swept: {pruned} bodies emptied, {deleted} rows deleted"
            );
        }
    }
}
