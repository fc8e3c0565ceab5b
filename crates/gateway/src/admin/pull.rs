//! What stands behind `/v1/consume`: leasing for consumers that pull, and settling what they did. It runs on
//! the main runtime in tasks of its own: a client that hangs up cancels no statement, and what was leased for
//! it is given back at once. Everything this interface asks of the queue is asked here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{Effects, Fetch, Job, Lane, Lease, LedgerError, Outcome, Settled, Ticket, TriesMax};
use hookgate_webhook::SourceName;
use prometheus::IntGauge;
use rand::RngExt as _;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::lease::Pulled;
use super::problem::{Kind, Problem};
use crate::metrics::Metrics;
use crate::stores::GuardedLedger;
use crate::worker;
use turn::{Look, Turn};

mod turn;

/// Longest pause between two looks while a consumer waits. News of events come earlier; this is for retries, and
/// for databases that pass no news on.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Pause between searches for events whose consumer died. Where all events are pulled no worker searches.
const RESCUE_INTERVAL: Duration = Duration::from_secs(1);

/// Consumers that wait at one replica at the same time. They look into the ledger in turn.
const WAITING_MAX: usize = 128;

/// Bodies of one batch; but always one event, however large.
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// What a consumer wants.
#[derive(Debug)]
pub(super) struct Want {
    /// Of which sources.
    pub(super) sources: Vec<SourceName>,
    /// How many at most.
    pub(super) limit: u32,
    /// For how long.
    pub(super) lease: Duration,
    /// How long it waits for the first.
    pub(super) wait: Duration,
}

/// How a run ended, or that it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It took effect.
    Done,
    /// It failed.
    Retry {
        /// When to try again, if not by the usual back-off.
        after: Option<Duration>,
        /// Why.
        error: String,
    },
    /// It will never succeed.
    Dead {
        /// Why.
        error: String,
    },
    /// It was not tried.
    Release {
        /// When somebody else may have it.
        after: Duration,
    },
    /// It goes on.
    Extend {
        /// For so long from now.
        lease: Duration,
    },
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Became {
    /// It took effect, now or when it was first asked for.
    Committed,
    /// The same, and the event is a dead letter by it.
    Dead,
    /// The lease had ended before.
    Lost,
}

/// Where an answer goes.
pub(super) type Answer = oneshot::Sender<Result<Vec<Job>, Problem>>;

/// The queue as consumers that pull see it.
pub(super) struct Pull {
    /// Where events are leased and settled.
    pub(super) ledger: Arc<GuardedLedger>,
    /// Where runs are counted.
    pub(super) metrics: Arc<Metrics>,
    /// The sources whose events are pulled, each with the first delay between tries.
    pub(super) sources: BTreeMap<SourceName, Duration>,
    /// The same for sources that are not pulled any more.
    pub(super) retry_base: Duration,
    /// Tries before an event goes to the dead letters.
    pub(super) tries_max: TriesMax,
    /// Where tasks run.
    pub(super) runtime: Handle,
    /// The tasks that a shutdown waits for.
    pub(super) tasks: TaskTracker,
    /// Told when an event has died.
    pub(super) deaths: Arc<Notify>,
    /// Ends waiting.
    pub(super) stop: CancellationToken,
    /// Who waits.
    pub(super) waiting: Waiting,
}

/// The consumers that wait, and whose turn it is to look.
pub(super) struct Waiting {
    room: Arc<Semaphore>,
    turn: Mutex<Turn>,
}

/// A place among those who wait, counted while it is taken.
struct Place {
    waiting: IntGauge,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.dec();
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self {
            room: Arc::new(Semaphore::new(WAITING_MAX)),
            turn: Mutex::default(),
        }
    }
}

impl Pull {
    /// Leases what is wanted, now or within its wait, and answers. If nobody listens any more, what was leased
    /// is given back.
    ///
    /// # Errors
    /// [`Problem`] if this replica is stopping, or too many consumers wait already.
    pub(super) fn begin(self: Arc<Self>, want: Want, mut answer: Answer) -> Result<(), Problem> {
        if self.stop.is_cancelled() {
            return Err(Problem::new(
                Kind::Unavailable,
                "this replica is shutting down; ask another one",
            ));
        }
        let place = self.place(&want)?;
        let mut news = self.ledger.arrivals();
        news.mark_unchanged();
        let asked = Instant::now();
        let (tasks, runtime) = (self.tasks.clone(), self.runtime.clone());
        tasks.spawn_on(
            async move {
                let leased = self.lease(&want, asked, news, &mut answer).await;
                drop(place);
                if let Err(Ok(jobs)) = answer.send(leased.map_err(Problem::from)) {
                    self.give_back(&jobs).await;
                }
            },
            &runtime,
        );
        Ok(())
    }

    /// A place among those who wait; who does not wait needs none.
    fn place(&self, want: &Want) -> Result<Option<Place>, Problem> {
        if want.wait.is_zero() {
            return Ok(None);
        }
        let room = Arc::clone(&self.waiting.room);
        let permit = room.try_acquire_owned().map_err(|_| {
            let detail =
                format!("{WAITING_MAX} consumers wait here already; ask another replica, or without wait");
            Problem::new(Kind::Unavailable, detail)
        })?;
        let waiting = self.metrics.consumers_waiting.clone();
        waiting.inc();
        Ok(Some(Place {
            waiting,
            _permit: permit,
        }))
    }

    /// Looks until there is something, the wait is over, the process ends, or the client has gone.
    async fn lease(
        &self,
        want: &Want,
        asked: Instant,
        mut news: watch::Receiver<u64>,
        answer: &mut Answer,
    ) -> Result<Vec<Job>, LedgerError> {
        let end = asked + want.wait;
        let mut after = asked;
        while let Some(turn) = self.turn(answer).await {
            let Look { began, jobs } = self.look(want, after, turn).await?;
            if !jobs.is_empty() {
                return Ok(jobs);
            }
            after = tokio::select! {
                biased;
                () = tokio::time::sleep_until(end) => break,
                () = self.stop.cancelled() => break,
                () = answer.closed() => break,
                _ = news.changed() => Instant::now(),
                () = tokio::time::sleep_until(began + LOOK_INTERVAL) => began,
            };
        }
        Ok(Vec::new())
    }

    /// Waits for its turn to look; `None` if there is nothing to look for any more.
    async fn turn(&self, answer: &mut Answer) -> Option<MutexGuard<'_, Turn>> {
        tokio::select! {
            biased;
            turn = self.waiting.turn.lock() => Some(turn),
            () = self.stop.cancelled() => None,
            () = answer.closed() => None,
        }
    }

    /// What is due, by a look that began after this moment: by somebody else's if that found nothing.
    async fn look(
        &self,
        want: &Want,
        after: Instant,
        mut turn: MutexGuard<'_, Turn>,
    ) -> Result<Look, LedgerError> {
        if let Some(known) = turn.known(&want.sources, after) {
            return known;
        }
        turn.open().await;
        let began = Instant::now();
        let found = match self.rescue(&mut turn).await {
            Ok(()) => self.fetch(want).await,
            Err(error) => Err(error),
        };
        turn.learn(want, began, &found);
        found.map(|jobs| Look { began, jobs })
    }

    async fn fetch(&self, want: &Want) -> Result<Vec<Job>, LedgerError> {
        let lane = |source: &SourceName| Lane {
            source: source.clone(),
            room: want.limit,
            pool: 0,
            pool_room: want.limit,
        };
        let fetch = Fetch {
            lanes: want.sources.iter().map(lane).collect(),
            limit: want.limit,
            bytes_max: BATCH_BYTES_MAX,
            lease: want.lease,
            ticket: Ticket::draw(),
        };
        self.metrics.consumer_looks.inc();
        self.ledger.fetch(fetch).await
    }

    /// Frees events whose lease has ended, at most once a second, whoever of those who wait comes first.
    async fn rescue(&self, turn: &mut Turn) -> Result<(), LedgerError> {
        if turn.rescued.is_some_and(|at| at.elapsed() < RESCUE_INTERVAL) {
            return Ok(());
        }
        let found = self.ledger.rescue(&self.tries_max).await?;
        turn.rescued = Some(Instant::now());
        if found.dead > 0 {
            self.deaths.notify_one();
        }
        if found.freed > 0 {
            let freed = found.freed;
            tracing::warn!(freed, "{freed} events whose owner died were freed");
        }
        Ok(())
    }

    /// Gives events back that nobody took.
    async fn give_back(&self, jobs: &[Job]) {
        for job in jobs {
            let outcome = Outcome::GivenBack {
                after: Duration::ZERO,
                reason: "the consumer hung up before it had the event".to_owned(),
            };
            let settled = self.ledger.settle(&job.lease, outcome, Effects::default()).await;
            if let Err(error) = settled {
                let key = &job.lease.key;
                tracing::warn!(event.key = %key, %error, "{key} could not be given back; its lease will end");
            }
        }
    }

    /// Settles in order, and to the end even if the client hangs up. What was settled before an error stays so.
    ///
    /// # Errors
    /// [`Problem`] if the ledger cannot answer; the same request may be sent again.
    pub(super) async fn settle_all(
        self: Arc<Self>,
        verdicts: Vec<(Pulled, Verdict)>,
    ) -> Result<Vec<Became>, Problem> {
        let (tasks, runtime) = (self.tasks.clone(), self.runtime.clone());
        let settling = tasks.spawn_on(
            async move {
                let mut settled = Vec::with_capacity(verdicts.len());
                for (pulled, verdict) in verdicts {
                    settled.push(self.settle(&pulled, verdict).await?);
                }
                Ok(settled)
            },
            &runtime,
        );
        match settling.await {
            Ok(settled) => settled.map_err(|error: LedgerError| Problem::from(error)),
            Err(_) => Err(Problem::new(
                Kind::Internal,
                "the settlement broke off; the log says why",
            )),
        }
    }

    async fn settle(&self, pulled: &Pulled, verdict: Verdict) -> Result<Became, LedgerError> {
        let Pulled { lease, tries } = pulled;
        let outcome = match verdict {
            Verdict::Extend { lease: extend } => {
                return Ok(match self.ledger.heartbeat(lease, extend).await? {
                    Settled::Lost => Became::Lost,
                    _ => Became::Committed,
                });
            }
            Verdict::Done => Outcome::Done,
            Verdict::Dead { error } => Outcome::Dead { error },
            Verdict::Retry { error, .. } if *tries >= self.tries_max.of(&lease.key.source) => {
                Outcome::Dead { error }
            }
            Verdict::Retry { after, error } => Outcome::Retry {
                after: after.unwrap_or_else(|| self.delay(lease, *tries)),
                error,
            },
            Verdict::Release { after } => Outcome::GivenBack {
                after,
                reason: "the consumer gave it back".to_owned(),
            },
        };
        let word = worker::word(&outcome);
        let settled = self.ledger.settle(lease, outcome, Effects::default()).await?;
        let (word, first) = match settled {
            Settled::Committed => (word, true),
            Settled::Buried => ("dead", true),
            Settled::Repeated { buried } => (if buried { "dead" } else { word }, false),
            Settled::Lost => return Ok(Became::Lost),
        };
        if word == "dead" {
            self.deaths.notify_one();
        }
        if first {
            self.count(lease, word);
        }
        Ok(if word == "dead" {
            Became::Dead
        } else {
            Became::Committed
        })
    }

    /// Counts a run as a worker would. What a consumer calls a source is no label.
    fn count(&self, lease: &Lease, word: &str) {
        let Some((source, _)) = self.sources.get_key_value(&lease.key.source) else {
            return;
        };
        let attempts = &self.metrics.attempts;
        attempts.with_label_values(&[source.as_str(), word]).inc();
        if lease.generation > 0 && lease.attempt == 1 {
            self.metrics.replays.with_label_values(&[source.as_str()]).inc();
        }
    }

    /// The delay that a worker would choose.
    fn delay(&self, lease: &Lease, tries: u32) -> Duration {
        let base = self.sources.get(&lease.key.source).unwrap_or(&self.retry_base);
        worker::backoff(*base, tries, rand::rng().random())
    }
}

#[cfg(test)]
mod tests;
