//! The worker: lease what is due, hand it over, settle. It holds nothing that others need: if it dies, its leases
//! end and another worker takes the events. Each event runs in a task of its own, so that a slow target or a
//! panic holds up nothing but itself.

mod backoff;
mod delivery;
mod gate;
mod look;
mod route;
mod tending;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_ledger::{Job, TriesMax};
use hookgate_webhook::SourceName;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use backoff::backoff;
pub(crate) use delivery::word;
pub use gate::{Bounds, Gate};
pub use route::Route;

use crate::metrics::Metrics;
use crate::stores::GuardedLedger;
use look::Looks;

/// Longest pause between two looks. News of events come earlier; this is for retries, which have no news, and
/// for databases that pass none on.
const IDLE_INTERVAL: Duration = Duration::from_millis(200);

/// Shortest pause between two looks that did not find more than fits: under load each finds a few events
/// instead of one.
const FETCH_INTERVAL: Duration = Duration::from_millis(5);

/// Delivers events of the inbox.
pub struct Worker {
    /// Where events are leased and settled.
    pub ledger: Arc<GuardedLedger>,
    /// Where the events of a source go; those of other sources are left to workers that know them.
    pub routes: HashMap<SourceName, Arc<Route>>,
    /// The gates of all targets.
    pub gates: Vec<Arc<Gate>>,
    /// Tries before an event of a dead worker is one that kills its workers.
    pub tries_max: TriesMax,
    /// Events delivered at the same time.
    pub concurrency: usize,
    /// How long the ledger keeps an event for us without hearing of it.
    pub lease: Duration,
    /// Events in hand, from their lease to their settlement.
    pub in_hand: AtomicUsize,
    /// Told whenever a place becomes free.
    pub freed: Arc<Notify>,
    /// Told whenever an event has died.
    pub deaths: Arc<Notify>,
    /// Where attempts are counted.
    pub metrics: Arc<Metrics>,
}

/// Which lanes a look is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of them.
    All,
    /// Those that had more than there was room for.
    Hungry,
}

impl Worker {
    /// Works until `stop`, then finishes what is in hand.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let delivering = Arc::clone(&self).deliver(stop.clone());
        tokio::join!(delivering, self.tend(stop));
    }

    async fn deliver(self: Arc<Self>, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut news = self.ledger.arrivals();
        let mut looks = Looks::default();
        let mut scope = Scope::All;
        let mut all_at = Instant::now();
        while !stop.is_cancelled() {
            let looked_at = Instant::now();
            if scope == Scope::All {
                news.mark_unchanged();
                all_at = looked_at;
            }
            let full = self.run_once(&mut tasks, &mut looks, scope).await;
            while tasks.try_join_next().is_some() {}
            // A lane that is full again and again must not keep us from the others.
            let overdue = looked_at >= all_at + IDLE_INTERVAL || news.has_changed().unwrap_or_default();
            scope = match full {
                true if overdue => Scope::All,
                true => Scope::Hungry,
                false => {
                    let waiting = self.wait(!looks.hungry.is_empty(), looked_at, all_at, &mut news);
                    stop.run_until_cancelled(waiting).await.unwrap_or(Scope::All)
                }
            };
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Waits until there may be something to do, and says where.
    async fn wait(
        &self,
        hungry: bool,
        looked_at: Instant,
        all_at: Instant,
        news: &mut watch::Receiver<u64>,
    ) -> Scope {
        let now = Instant::now();
        let opens_at = self.gates.iter().filter_map(|gate| gate.opens_at(now)).min();
        let again_at = opens_at.into_iter().fold(all_at + IDLE_INTERVAL, Instant::min);
        tokio::select! {
            () = tokio::time::sleep_until(again_at) => Scope::All,
            () = self.freed.notified(), if hungry => Scope::Hungry,
            // News cannot end: the ledger outlives its workers.
            _ = news.changed() => {
                tokio::time::sleep_until(looked_at + FETCH_INTERVAL).await;
                Scope::All
            }
        }
    }

    fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>, job: Job) {
        // It was asked for by name, so it is here; if not, its lease ends and another worker has it.
        let Some(route) = self.routes.get(&job.lease.key.source) else {
            return;
        };
        let (hand, place) = (Hand::take(self), route.enter());
        tasks.spawn(async move { hand.0.work(&job, place).await });
    }
}

/// An event in hand, from its lease to its settlement; let go when dropped.
struct Hand(Arc<Worker>);

impl Hand {
    fn take(worker: &Arc<Worker>) -> Self {
        worker.in_hand.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(worker))
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.0.in_hand.fetch_sub(1, Ordering::Relaxed);
        self.0.freed.notify_one();
    }
}
