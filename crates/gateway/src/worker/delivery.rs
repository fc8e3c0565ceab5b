//! One event: deliver it while its lease is kept, judge, settle.

use std::time::Duration;

use hookgate_ledger::{Effects, Job, Lease, LedgerError, Outcome, Settled};
use rand::RngExt as _;
use tokio::time::Instant;

use super::gate::{Seen, Turn};
use super::route::{Place, Route};
use super::{Worker, backoff};
use crate::metrics::observe;
use crate::target::TargetFailure;
use crate::verdict::{Verdict, verdict};

/// Pause before the ledger is told again how a delivery ended.
const SETTLE_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// How long it is told again, at least. An outage may outlast the lease, and the row is ours until somebody frees it:
/// whoever gets it then delivers once more.
const SETTLE_RETRY_MIN: Duration = Duration::from_secs(5 * 60);

impl Worker {
    /// Delivers and settles one event.
    pub(super) async fn work(&self, job: &Job, place: Place) {
        let key = &job.lease.key;
        let started = Instant::now();
        let delivered = tokio::select! {
            delivered = place.route.sink.deliver(job) => delivered,
            () = self.keep(&job.lease) => {
                tracing::warn!(event.key = %key, "{key} was taken over while it was delivered; breaking off");
                return;
            }
        };
        let source = key.source.as_str();
        observe(
            &self.metrics.handler_seconds.with_label_values(&[source]),
            started.elapsed(),
        );
        self.learn(&place.route, &delivered);
        let outcome = judge(job, &place.route, delivered, rand::rng().random());
        // The next one may go while the ledger writes this one down.
        drop(place);
        self.conclude(job, outcome).await;
    }

    /// Renews the lease at every third of it; returns when it is lost.
    async fn keep(&self, lease: &Lease) {
        loop {
            tokio::time::sleep(self.lease / 3).await;
            if matches!(self.ledger.heartbeat(lease, self.lease).await, Ok(Settled::Lost)) {
                return;
            }
        }
    }

    /// Tells the gate how the target took it. Other processes learn it from [`Worker::tend`].
    fn learn(&self, route: &Route, delivered: &Result<(), TargetFailure>) {
        let name = route.gate.name();
        let up = self.metrics.target_up.with_label_values(&[name]);
        match route.gate.learn(seen(delivered), Instant::now()) {
            None => {}
            Some(Turn::Down) => {
                up.set(0);
                tracing::error!(
                    target.name = name,
                    "target {name} is not there; its events are held, at most 72 h each"
                );
            }
            Some(Turn::Up) => {
                up.set(1);
                tracing::info!(target.name = name, "target {name} answers");
            }
        }
    }

    /// Settles, counts, and says what a person should know.
    async fn conclude(&self, job: &Job, outcome: Outcome) {
        let key = &job.lease.key;
        let source = key.source.as_str();
        let died = matches!(outcome, Outcome::Dead { .. });
        let word = word(&outcome);
        let settled = self.settle(&job.lease, outcome).await;
        let word = match settled {
            // What was committed before was not counted: its answer did not come.
            Ok(Settled::Committed | Settled::Repeated { buried: false }) => word,
            Ok(Settled::Buried | Settled::Repeated { buried: true }) => "dead",
            Ok(Settled::Lost) => {
                tracing::warn!(event.key = %key, "{key} outlived its lease and was taken over");
                return;
            }
            Err(error) => {
                tracing::warn!(event.key = %key, %error, "{key} could not be settled; its lease will end");
                return;
            }
        };
        self.metrics.attempts.with_label_values(&[source, word]).inc();
        if job.lease.generation > 0 && job.lease.attempt == 1 {
            self.metrics.replays.with_label_values(&[source]).inc();
        }
        if died || word == "dead" {
            self.deaths.notify_one();
        }
    }

    /// Settles, if need be again and again until it is done or the row is somebody else's: what is not settled is
    /// delivered once more, and a database that fails over, or a lock that somebody holds, may take its time.
    async fn settle(&self, lease: &Lease, outcome: Outcome) -> Result<Settled, LedgerError> {
        let until = Instant::now() + self.lease.max(SETTLE_RETRY_MIN);
        loop {
            let settled = self
                .ledger
                .settle(lease, outcome.clone(), Effects::default())
                .await;
            match settled {
                Err(LedgerError::Unavailable(_) | LedgerError::Locked(_)) if Instant::now() < until => {
                    tokio::time::sleep(SETTLE_RETRY_INTERVAL).await;
                }
                settled => return settled,
            }
        }
    }
}

/// How the run ends. `draw` lies in [0, 1) and spreads the tries.
fn judge(job: &Job, route: &Route, delivered: Result<(), TargetFailure>, draw: f64) -> Outcome {
    let Err(failure) = delivered else {
        return Outcome::Done;
    };
    let (tries, attempts_max) = (job.tries, route.attempts_max);
    let error = failure.to_string();
    let later = |asked: Option<Duration>, ours: Duration| {
        asked.map_or(ours, |asked| backoff::honouring(asked, draw).max(ours))
    };
    let (base, attempt) = (route.retry_base, job.lease.attempt);
    let outcome = match verdict(&failure) {
        Verdict::Never => Outcome::Dead { error },
        Verdict::GiveBack => Outcome::GivenBack {
            after: Duration::ZERO,
            reason: error,
        },
        Verdict::Hold { not_before } => Outcome::Postponed {
            after: later(not_before, backoff::away(base, attempt, draw)),
            error,
            away_for: route.gate.away_for(Instant::now()),
            target: route.gate.name().to_owned(),
        },
        Verdict::Again { .. } if tries >= attempts_max => Outcome::Dead { error },
        Verdict::Again { not_before } => Outcome::Retry {
            after: later(not_before, backoff::backoff(base, tries, draw)),
            error,
        },
    };
    say(job, attempts_max, &failure, &outcome);
    outcome
}

/// What a failed delivery comes to, for whoever reads the log.
fn say(job: &Job, attempts_max: u32, failure: &TargetFailure, outcome: &Outcome) {
    let (key, tries) = (&job.lease.key, job.tries);
    match outcome {
        Outcome::Dead { .. } => {
            tracing::warn!(event.key = %key, tries, "{key} is a dead letter after try {tries} of {attempts_max}: {failure}");
        }
        Outcome::Postponed { .. } => {
            tracing::warn!(event.key = %key, "{key} is held, which costs no try: {failure}");
        }
        _ => tracing::warn!(event.key = %key, tries, "{key} try {tries} of {attempts_max}: {failure}"),
    }
}

/// What a delivery says about the target.
fn seen(delivered: &Result<(), TargetFailure>) -> Seen {
    match delivered {
        Ok(()) => Seen::There,
        Err(TargetFailure::Status {
            status: 429,
            retry_after,
        }) => Seen::Busy { asked: *retry_after },
        Err(TargetFailure::Status {
            status: 502..=504,
            retry_after,
        }) => Seen::Missing { asked: *retry_after },
        Err(TargetFailure::Status { .. }) => Seen::There,
        Err(TargetFailure::Unreachable | TargetFailure::Timeout(_) | TargetFailure::Broken) => {
            Seen::Missing { asked: None }
        }
        Err(TargetFailure::Interrupted) => Seen::Nothing,
    }
}

/// How the end of a run is counted.
pub(crate) fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done | Outcome::Ignored(_) => "done",
        Outcome::Retry { .. }
        | Outcome::Postponed { .. }
        | Outcome::GivenBack { .. }
        | Outcome::Parked { .. } => "retry",
        Outcome::Dead { .. } => "dead",
    }
}
