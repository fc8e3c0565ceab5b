//! The ledger behind its breaker. When it cannot answer, nothing is promised: the path says 503 at once
//! instead of letting every request wait for a time-out.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hookgate_ledger::{
    Appended, Begun, Effects, Entry, Fetch, Job, Lease, Ledger, LedgerError, Limits, NewEvent, OnFailure,
    Operations, Outcome, PostgresLedger, Queue, Rescued, Settled, SqliteLedger, State, TriesMax, Upkeep,
};
use hookgate_webhook::{EventKey, SourceName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::breaker::Breaker;
use crate::config::{Config, LedgerStore};
use crate::metrics::{Metrics, observe};
use crate::stores::OnceAMinute;

/// The ledger as the gateway sees it.
pub struct GuardedLedger {
    ledger: Arc<dyn Ledger>,
    breaker: Arc<Breaker>,
    /// Whether the latest call that writes found the ledger unable to.
    writing_failed: AtomicBool,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    warned: OnceAMinute,
}

/// One ledger, as each of those who use it sees it.
#[derive(Clone)]
pub struct Opened {
    /// For the path.
    pub ledger: Arc<dyn Ledger>,
    /// For people. Past the breaker: what they ask must not be what refuses events.
    pub operations: Arc<dyn Operations>,
    /// For upkeep; past the breaker as well.
    pub upkeep: Arc<dyn Upkeep>,
}

impl Opened {
    fn new<L: Ledger + Operations + Upkeep>(ledger: Arc<L>) -> Self {
        Self {
            ledger: Arc::<L>::clone(&ledger),
            operations: Arc::<L>::clone(&ledger),
            upkeep: ledger,
        }
    }
}

/// Opens the ledger; `None` where there is none. It need not be reachable now.
///
/// # Errors
/// [`LedgerError::Unusable`] if the address is not one, or the file cannot be written.
pub fn open(store: &LedgerStore, limits: Limits) -> Result<Option<Opened>, LedgerError> {
    Ok(match store {
        LedgerStore::None => None,
        LedgerStore::Sqlite(path) => Some(Opened::new(Arc::new(SqliteLedger::open(path, limits)?))),
        LedgerStore::Postgres(url) => Some(Opened::new(Arc::new(PostgresLedger::connect(url, limits)?))),
    })
}

/// The limits of a process that takes events.
pub(super) fn limits(config: &Config) -> Limits {
    Limits {
        append: config.ledger_timeout,
        ..Limits::default()
    }
}

impl GuardedLedger {
    pub(super) fn new(ledger: Arc<dyn Ledger>, metrics: Arc<Metrics>, stop: CancellationToken) -> Arc<Self> {
        metrics.ledger_up.set(1);
        Arc::new(Self {
            ledger,
            breaker: Arc::default(),
            writing_failed: AtomicBool::new(false),
            metrics,
            stop,
            warned: OnceAMinute::default(),
        })
    }

    /// Makes the ledger ready at start. One that is away now does not stop the start: the circuit opens,
    /// and the same step is tried until it succeeds.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger answers, but cannot be used.
    pub async fn start(self: &Arc<Self>, migrate: bool) -> Result<(), LedgerError> {
        match self.prepare(migrate).await {
            Err(LedgerError::Unavailable(cause)) => {
                tracing::error!(%cause, "the ledger cannot answer at start; events are refused with 503 until it does");
                if self.breaker.trip() {
                    self.recover(migrate);
                }
                Ok(())
            }
            other => other,
        }
    }

    async fn prepare(&self, migrate: bool) -> Result<(), LedgerError> {
        if migrate {
            self.ledger.migrate().await
        } else {
            self.ledger.probe_writing().await
        }
    }

    /// Appends one event.
    pub async fn append(self: &Arc<Self>, event: NewEvent, queue: Queue) -> Result<Appended, LedgerError> {
        let started = Instant::now();
        let appended = self.guard(self.ledger.append(event, queue)).await?;
        observe(&self.metrics.append_seconds, started.elapsed());
        Ok(appended)
    }

    /// Begins a forward.
    pub async fn begin(self: &Arc<Self>, event: &NewEvent, lease: Duration) -> Result<Begun, LedgerError> {
        self.guard(self.ledger.begin(event, lease)).await
    }

    /// Makes a forward's unfinished row the workers'.
    pub async fn adopt(self: &Arc<Self>, key: &EventKey) -> Result<(), LedgerError> {
        self.guard(self.ledger.adopt(key)).await
    }

    /// Ends a forward that took effect.
    pub async fn finish(self: &Arc<Self>, lease: &Lease) -> Result<Settled, LedgerError> {
        self.guard(self.ledger.finish(lease)).await
    }

    /// Ends a forward that failed.
    pub async fn release(
        self: &Arc<Self>,
        lease: &Lease,
        error: &str,
        next: OnFailure,
    ) -> Result<Settled, LedgerError> {
        self.guard(self.ledger.release(lease, error, next)).await
    }

    /// Extends the lease of a run that goes on.
    pub async fn heartbeat(
        self: &Arc<Self>,
        lease: &Lease,
        extend: Duration,
    ) -> Result<Settled, LedgerError> {
        self.guard(self.ledger.heartbeat(lease, extend)).await
    }

    /// Leases events that are due.
    pub async fn fetch(self: &Arc<Self>, want: Fetch) -> Result<Vec<Job>, LedgerError> {
        self.guard(self.ledger.fetch(want)).await
    }

    /// Ends a run.
    pub async fn settle(
        self: &Arc<Self>,
        lease: &Lease,
        outcome: Outcome,
        effects: Effects,
    ) -> Result<Settled, LedgerError> {
        self.guard(self.ledger.settle(lease, outcome, effects)).await
    }

    /// Frees rows whose owner died.
    pub async fn rescue(self: &Arc<Self>, tries_max: &TriesMax) -> Result<Rescued, LedgerError> {
        self.guard(self.ledger.rescue(tries_max)).await
    }

    /// Writes down which targets there are.
    pub async fn introduce_targets(self: &Arc<Self>, names: &[String]) -> Result<(), LedgerError> {
        self.guard(self.ledger.introduce_targets(names)).await
    }

    /// Writes down that a target is away, and says for how long it has been.
    pub async fn target_down(self: &Arc<Self>, target: &str) -> Result<Duration, LedgerError> {
        self.guard(self.ledger.target_down(target)).await
    }

    /// Writes down that a target is there.
    pub async fn target_up(self: &Arc<Self>, target: &str) -> Result<(), LedgerError> {
        self.guard(self.ledger.target_up(target)).await
    }

    /// Names of the targets that a person has paused.
    pub async fn paused_targets(self: &Arc<Self>) -> Result<Vec<String>, LedgerError> {
        self.look(self.ledger.paused_targets()).await
    }

    /// Buries what could not be tried for too long.
    pub async fn bury_held(
        self: &Arc<Self>,
        target: &str,
        sources: &[SourceName],
    ) -> Result<u64, LedgerError> {
        self.guard(self.ledger.bury_held(target, sources)).await
    }

    /// Changes whenever events may have become due.
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.ledger.arrivals()
    }

    /// Looks at one row.
    pub async fn entry(self: &Arc<Self>, key: &EventKey) -> Result<Option<Entry>, LedgerError> {
        self.look(self.ledger.entry(key)).await
    }

    /// Whether the ledger answers.
    pub fn is_up(&self) -> bool {
        !self.breaker.is_open()
    }

    /// Asks whether it answers; the breaker hears it.
    pub(super) async fn check(self: &Arc<Self>) -> Result<(), LedgerError> {
        self.look(self.ledger.probe()).await
    }

    /// Refreshes the queue gauges. A ledger that is away keeps the last known values.
    pub(super) async fn measure_depth(self: &Arc<Self>) {
        // Past the breaker: a gauge must not be what refuses events.
        if !self.is_up() {
            return;
        }
        let Ok((depth, oldest)) = self.ledger.depth().await else {
            return;
        };
        for state in State::ALL {
            let rows = depth.get(&state).copied().unwrap_or_default();
            let gauge = self.metrics.queue_events.with_label_values(&[state.as_str()]);
            gauge.set(i64::try_from(rows).unwrap_or(i64::MAX));
        }
        self.metrics
            .queue_oldest_seconds
            .set(i64::try_from(oldest.as_secs()).unwrap_or(i64::MAX));
    }

    pub(crate) async fn close(&self) {
        self.ledger.close().await;
    }

    async fn guard<T>(
        self: &Arc<Self>,
        call: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        if self.breaker.is_open() {
            return Err(LedgerError::Unavailable("circuit open".to_owned()));
        }
        let result = call.await;
        self.learn(&result, true);
        result
    }

    /// As [`Self::guard`], for what only looks: a full disk or a standby answers it too, so an answer is no sign
    /// that events are kept, and does not outweigh those that were not.
    async fn look<T>(
        self: &Arc<Self>,
        call: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        if self.breaker.is_open() {
            return Err(LedgerError::Unavailable("circuit open".to_owned()));
        }
        let result = call.await;
        self.learn(&result, false);
        result
    }

    fn learn<T>(self: &Arc<Self>, result: &Result<T, LedgerError>, wrote: bool) {
        if wrote {
            let failed = matches!(
                result,
                Err(LedgerError::Unavailable(_) | LedgerError::Unusable(_))
            );
            self.writing_failed.store(failed, Ordering::Relaxed);
        }
        match result {
            Ok(_) if !wrote && self.writing_failed.load(Ordering::Relaxed) => {}
            // A refused or held row is the row's trouble: the ledger itself answered.
            Ok(_) | Err(LedgerError::Refused(_) | LedgerError::Locked(_)) => self.breaker.succeeded(),
            Err(error) => {
                self.warn(error);
                if self.breaker.failed() {
                    tracing::error!(%error, "the ledger cannot answer; events are refused with 503 until it does");
                    self.recover(false);
                }
            }
        }
    }

    fn warn(&self, error: &LedgerError) {
        if self.warned.due() {
            tracing::warn!(%error, "the ledger could not answer a call");
        }
    }

    fn recover(self: &Arc<Self>, migrate: bool) {
        self.metrics.ledger_up.set(0);
        let guarded = Arc::clone(self);
        tokio::spawn(async move {
            let breaker = Arc::clone(&guarded.breaker);
            breaker
                .recover(guarded.stop.clone(), || guarded.prepare(migrate))
                .await;
            if guarded.is_up() {
                guarded.metrics.ledger_up.set(1);
                tracing::info!("the ledger answers again");
            }
        });
    }
}
