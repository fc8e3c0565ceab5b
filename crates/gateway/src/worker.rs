//! The worker: lease what is due, hand it over, settle. It holds no state of its own: if it dies, its leases
//! end and another worker takes the events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hookgate_ledger::{Effects, Fetch, Job, LedgerError, Outcome, Settled};
use rand::RngExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Metrics, observe};
use crate::sink::Sink;
use crate::stores::GuardedLedger;
use crate::target::TargetFailure;

/// Pause when nothing was due.
const IDLE_INTERVAL: Duration = Duration::from_millis(200);

/// Pause between searches for events whose worker died.
const RESCUE_INTERVAL: Duration = Duration::from_secs(5);

/// What a lease adds to the longest delivery, so that settling has time.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Longest delay between tries.
const BACKOFF_MAX: Duration = Duration::from_secs(3600);

/// Delivers events of the inbox.
pub struct Worker {
    /// Where events are leased and settled.
    pub ledger: Arc<GuardedLedger>,
    /// Consumers by source.
    pub sinks: HashMap<String, Sink>,
    /// Tries before an event goes to the dead letters.
    pub attempts_max: u32,
    /// First delay between tries.
    pub retry_base: Duration,
    /// Events delivered at the same time.
    pub concurrency: usize,
    /// Longest delivery of any sink.
    pub delivery_timeout: Duration,
    /// Where attempts are counted.
    pub metrics: Arc<Metrics>,
}

/// What one round did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Events leased.
    pub fetched: usize,
    /// Delivered and settled as done.
    pub done: usize,
    /// To be tried again.
    pub retried: usize,
    /// Given up.
    pub dead: usize,
    /// Settled by somebody else meanwhile, or not settled at all: another worker will.
    pub lost: usize,
}

impl Worker {
    /// Works until `stop`, then finishes what is in hand.
    pub async fn run(&self, stop: CancellationToken) {
        let mut rescue_at = Instant::now();
        while !stop.is_cancelled() {
            if Instant::now() >= rescue_at {
                self.rescue().await;
                rescue_at = Instant::now() + RESCUE_INTERVAL;
            }
            let idle = match self.run_once().await {
                Ok(round) => round.fetched == 0,
                Err(error) => {
                    tracing::debug!(%error, "nothing was fetched");
                    true
                }
            };
            if idle {
                stop.run_until_cancelled(tokio::time::sleep(IDLE_INTERVAL)).await;
            }
        }
    }

    /// Leases up to `concurrency` events, delivers them at the same time, settles each.
    ///
    /// # Errors
    /// [`LedgerError`] if nothing could be leased.
    pub async fn run_once(&self) -> Result<Round, LedgerError> {
        let limit = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        let jobs = self
            .ledger
            .fetch(Fetch {
                limit,
                lease: self.delivery_timeout + LEASE_MARGIN,
            })
            .await?;
        let mut round = Round {
            fetched: jobs.len(),
            ..Round::default()
        };
        let mut running: FuturesUnordered<_> = jobs.iter().map(|job| self.work(job)).collect();
        while let Some(settled) = running.next().await {
            match settled {
                Some("done") => round.done += 1,
                Some("retry") => round.retried += 1,
                Some(_) => round.dead += 1,
                None => round.lost += 1,
            }
        }
        Ok(round)
    }

    /// Delivers and settles one event; the word for its outcome, or `None` if the lease was lost.
    async fn work(&self, job: &Job) -> Option<&'static str> {
        let key = &job.lease.key;
        let source = key.source.as_str();
        let started = Instant::now();
        let outcome = self.deliver(job).await;
        observe(
            &self.metrics.handler_seconds.with_label_values(&[source]),
            started.elapsed(),
        );
        let word = word(&outcome);
        match self.ledger.settle(&job.lease, outcome, Effects::default()).await {
            Ok(Settled::Committed) => {
                self.metrics.attempts.with_label_values(&[source, word]).inc();
                Some(word)
            }
            Ok(Settled::Lost) => {
                tracing::warn!(event.key = %key, "{key} outlived its lease and was taken over");
                None
            }
            Err(error) => {
                tracing::warn!(event.key = %key, %error, "{key} could not be settled; its lease will end");
                None
            }
        }
    }

    async fn deliver(&self, job: &Job) -> Outcome {
        let key = &job.lease.key;
        let Some(sink) = self.sinks.get(key.source.as_str()) else {
            return Outcome::Ignored("no_consumer".to_owned());
        };
        let Err(failure) = sink.deliver(job).await else {
            return Outcome::Done;
        };
        let (tries, attempts_max) = (job.tries, self.attempts_max);
        tracing::warn!(event.key = %key, "{key} try {tries} of {attempts_max}: {failure}");
        let error = failure.to_string();
        if matches!(failure, TargetFailure::Interrupted) {
            return Outcome::Retry {
                after: Duration::ZERO,
                error,
            };
        }
        if tries >= attempts_max {
            return Outcome::Dead { error };
        }
        Outcome::Retry {
            after: backoff(self.retry_base, tries, rand::rng().random()),
            error,
        }
    }

    async fn rescue(&self) {
        match self.ledger.rescue(self.attempts_max).await {
            Ok(0) | Err(_) => {}
            Ok(rescued) => tracing::warn!(rescued, "{rescued} events whose owner died were freed"),
        }
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done | Outcome::Ignored(_) => "done",
        Outcome::Retry { .. } | Outcome::Parked { .. } => "retry",
        Outcome::Dead { .. } => "dead",
    }
}

/// The delay after the n-th try, drawn from `[d/2, d]` with d = base, 2 base, 4 base …, capped. `draw` lies
/// in [0, 1): spreading the tries keeps an outage from ending in a storm.
fn backoff(base: Duration, attempt: u32, draw: f64) -> Duration {
    let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    let ceiling = base.saturating_mul(doubled).min(BACKOFF_MAX);
    ceiling.div_f64(2.0) + ceiling.mul_f64(draw / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_spread_over_the_upper_half() {
        let seconds = |attempt, draw| backoff(Duration::from_secs(1), attempt, draw).as_secs_f64();
        for (attempt, ceiling) in [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0)] {
            assert_eq!(seconds(attempt, 0.0), ceiling / 2.0);
            assert!(seconds(attempt, 0.999_999) < ceiling);
            assert!(seconds(attempt, 0.999_999) > ceiling * 0.99);
        }
    }

    #[test]
    fn no_attempt_number_overflows() {
        for attempt in [0, 1, 31, 32, 33, 64, u32::MAX] {
            assert!(backoff(Duration::from_secs(7), attempt, 0.5) <= BACKOFF_MAX);
            assert!(backoff(Duration::MAX, attempt, 0.999) <= BACKOFF_MAX);
        }
    }
}
