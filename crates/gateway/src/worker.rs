//! The worker: lease what is due, hand it over, settle. It holds no state of its own: if it dies, its leases
//! end and another worker takes the events. Each event runs in a task of its own, so that a slow target or a
//! panic holds up nothing but itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{Effects, Fetch, Job, Lease, LedgerError, Outcome, Settled};
use hookgate_webhook::SourceName;
use rand::RngExt as _;
use tokio::task::JoinSet;
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

/// Pause before the ledger is told again how a delivery ended.
const SETTLE_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// Bodies fetched at once: one of the largest that a provider sends, or thousands of the common ones.
const FETCH_BYTES_MAX: u64 = 32 << 20;

/// Longest delay between tries.
const BACKOFF_MAX: Duration = Duration::from_secs(3600);

/// Longest delay while a target is away: when it is back, its events should not wait much longer.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// Delivers events of the inbox.
pub struct Worker {
    /// Where events are leased and settled.
    pub ledger: Arc<GuardedLedger>,
    /// Consumers by source; events of other sources are left to workers that have one.
    pub sinks: HashMap<SourceName, Sink>,
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

/// The events in hand.
type InHand = JoinSet<()>;

impl Worker {
    /// Works until `stop`, then finishes what is in hand.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut in_hand = InHand::new();
        let mut rescue_at = Instant::now();
        while !stop.is_cancelled() {
            if Instant::now() >= rescue_at {
                self.rescue().await;
                rescue_at = Instant::now() + RESCUE_INTERVAL;
            }
            let room = self.concurrency - in_hand.len();
            let fetched = self.run_once(&mut in_hand, room).await;
            self.pause(&mut in_hand, fetched == 0, &stop).await;
        }
        while in_hand.join_next().await.is_some() {}
    }

    /// Leases at most `room` events and starts them. Says how many.
    pub async fn run_once(self: &Arc<Self>, in_hand: &mut InHand, room: usize) -> usize {
        let limit = u32::try_from(room).unwrap_or(u32::MAX);
        let lease = self.delivery_timeout + LEASE_MARGIN;
        let want = Fetch {
            sources: self.sinks.keys().cloned().collect(),
            limit,
            bytes_max: FETCH_BYTES_MAX,
            lease,
        };
        let jobs = self.ledger.fetch(want).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "nothing was fetched");
            Vec::new()
        });
        let fetched = jobs.len();
        for job in jobs {
            let worker = Arc::clone(self);
            in_hand.spawn(async move { worker.work(&job).await });
        }
        fetched
    }

    /// Waits until there is something to do: time to look again if nothing more was due, else room for a
    /// quarter of what fits, since leasing one by one would cost a statement an event.
    async fn pause(&self, in_hand: &mut InHand, idle: bool, stop: &CancellationToken) {
        while in_hand.try_join_next().is_some() {}
        if idle {
            stop.run_until_cancelled(tokio::time::sleep(IDLE_INTERVAL)).await;
        }
        let enough = self.concurrency - self.concurrency.div_ceil(4);
        while in_hand.len() > enough && !stop.is_cancelled() {
            stop.run_until_cancelled(in_hand.join_next()).await;
        }
    }

    /// Delivers and settles one event.
    async fn work(&self, job: &Job) {
        let key = &job.lease.key;
        let source = key.source.as_str();
        let started = Instant::now();
        let outcome = self.deliver(job).await;
        observe(
            &self.metrics.handler_seconds.with_label_values(&[source]),
            started.elapsed(),
        );
        let word = word(&outcome);
        match self.settle(&job.lease, outcome).await {
            Ok(Settled::Committed) => self.metrics.attempts.with_label_values(&[source, word]).inc(),
            Ok(Settled::Lost) => {
                tracing::warn!(event.key = %key, "{key} outlived its lease and was taken over")
            }
            Err(error) => {
                tracing::warn!(event.key = %key, %error, "{key} could not be settled; its lease will end")
            }
        }
    }

    /// Settles, if need be again and again while the lease lasts: what is not settled is delivered once more,
    /// and a database that fails over takes a few seconds.
    async fn settle(&self, lease: &Lease, outcome: Outcome) -> Result<Settled, LedgerError> {
        let until = Instant::now() + LEASE_MARGIN;
        loop {
            let settled = self
                .ledger
                .settle(lease, outcome.clone(), Effects::default())
                .await;
            match settled {
                Err(LedgerError::Unavailable(_)) if Instant::now() < until => {
                    tokio::time::sleep(SETTLE_RETRY_INTERVAL).await;
                }
                settled => return settled,
            }
        }
    }

    async fn deliver(&self, job: &Job) -> Outcome {
        let key = &job.lease.key;
        let Some(sink) = self.sinks.get(&key.source) else {
            return Outcome::Ignored("no_consumer".to_owned());
        };
        let Err(failure) = sink.deliver(job).await else {
            return Outcome::Done;
        };
        let (tries, attempts_max) = (job.tries, self.attempts_max);
        tracing::warn!(event.key = %key, "{key} try {tries} of {attempts_max}: {failure}");
        let error = failure.to_string();
        if failure.costs_no_try() {
            return Outcome::Postponed {
                after: self.delay(job, &failure),
                error,
            };
        }
        if tries >= attempts_max {
            return Outcome::Dead { error };
        }
        Outcome::Retry {
            after: self.delay(job, &failure),
            error,
        }
    }

    /// When to try again; by the runs so far, also those that cost no try. What we broke off ourselves is due
    /// at once.
    fn delay(&self, job: &Job, failure: &TargetFailure) -> Duration {
        let delay = backoff(self.retry_base, job.lease.attempt, rand::rng().random());
        match failure {
            TargetFailure::Interrupted => Duration::ZERO,
            away if away.costs_no_try() => delay.min(AWAY_MAX),
            _ => delay,
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
        Outcome::Retry { .. } | Outcome::Postponed { .. } | Outcome::Parked { .. } => "retry",
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
