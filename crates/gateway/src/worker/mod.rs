//! The worker: lease what is due, hand it over, settle. It holds nothing that others need: if it dies, its leases
//! end and another worker takes the events. Each event runs in a task of its own, so that a slow target or a
//! panic holds up nothing but itself.

mod backoff;
mod delivery;
mod gate;
mod route;
mod tending;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{Fetch, Job, Lane, TriesMax};
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

/// Longest pause between two looks. News of events come earlier; this is for retries, which have no news, and
/// for databases that pass none on.
const IDLE_INTERVAL: Duration = Duration::from_millis(200);

/// Shortest pause between two looks that did not find more than fits: under load each finds a few events
/// instead of one.
const FETCH_INTERVAL: Duration = Duration::from_millis(5);

/// Bodies fetched at once: one of the largest that a provider sends, or thousands of the common ones.
const FETCH_BYTES_MAX: u64 = 32 << 20;

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
    /// Told whenever a place becomes free.
    pub freed: Arc<Notify>,
    /// Told whenever an event has died.
    pub deaths: Arc<Notify>,
    /// Where attempts are counted.
    pub metrics: Arc<Metrics>,
}

/// The events in hand.
type InHand = JoinSet<()>;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As many events as there was room for somewhere: there may be more.
    Full,
    /// All that was due.
    Some,
    /// Nothing was asked, since there was no room.
    NoRoom,
}

impl Worker {
    /// Works until `stop`, then finishes what is in hand.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let delivering = Arc::clone(&self).deliver(stop.clone());
        tokio::join!(delivering, self.tend(stop));
    }

    async fn deliver(self: Arc<Self>, stop: CancellationToken) {
        let mut in_hand = InHand::new();
        let mut news = self.ledger.arrivals();
        // Whether more than fitted was due when there was last room to look.
        let mut more = false;
        while !stop.is_cancelled() {
            news.mark_unchanged();
            let looked_at = Instant::now();
            let found = self.run_once(&mut in_hand).await;
            more = found == Found::Full || (more && found == Found::NoRoom);
            match found {
                Found::Full => {}
                Found::Some => drop(stop.run_until_cancelled(self.pause(looked_at, &mut news)).await),
                Found::NoRoom => drop(stop.run_until_cancelled(self.await_room(more, &mut news)).await),
            }
            while in_hand.try_join_next().is_some() {}
        }
        while in_hand.join_next().await.is_some() {}
    }

    /// Leases what there is room for, and starts it.
    pub async fn run_once(self: &Arc<Self>, in_hand: &mut InHand) -> Found {
        let limit = self.concurrency - in_hand.len();
        let lanes = self.lanes(limit, Instant::now());
        // A quarter at a time at least, as with each gate.
        if lanes.is_empty() || limit < self.concurrency.div_ceil(4) {
            return Found::NoRoom;
        }
        let want = Fetch {
            lanes,
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            bytes_max: FETCH_BYTES_MAX,
            lease: self.lease,
        };
        let jobs = self.ledger.fetch(want.clone()).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "nothing was fetched");
            Vec::new()
        });
        let found = fullness(&want, &jobs);
        for job in jobs {
            self.start(in_hand, job);
        }
        found
    }

    /// Each source that may go on, with the room that it and its target have.
    fn lanes(&self, limit: usize, now: Instant) -> Vec<Lane> {
        let rooms: Vec<usize> = self.gates.iter().map(|gate| gate.room(now).min(limit)).collect();
        let lane = |route: &Arc<Route>| {
            let pool = self
                .gates
                .iter()
                .position(|gate| Arc::ptr_eq(gate, &route.gate))?;
            let room = route.room().min(rooms[pool]);
            (room > 0).then(|| Lane {
                source: route.source.clone(),
                room: u32::try_from(room).unwrap_or(u32::MAX),
                pool: u32::try_from(pool).unwrap_or(u32::MAX),
                pool_room: u32::try_from(rooms[pool]).unwrap_or(u32::MAX),
            })
        };
        self.routes.values().filter_map(lane).collect()
    }

    fn start(self: &Arc<Self>, in_hand: &mut InHand, job: Job) {
        // It was asked for by name, so it is here; if not, its lease ends and another worker has it.
        let Some(route) = self.routes.get(&job.lease.key.source) else {
            return;
        };
        let (worker, place) = (Arc::clone(self), route.enter());
        in_hand.spawn(async move { worker.work(&job, place).await });
    }

    /// Nothing more was due. Waits for news, or until it is time to look without any.
    async fn pause(&self, looked_at: Instant, news: &mut watch::Receiver<u64>) {
        tokio::time::sleep_until(looked_at + FETCH_INTERVAL).await;
        let again_at = self.opens_at().min(looked_at + IDLE_INTERVAL);
        // News cannot end: the ledger outlives its workers.
        let _ = tokio::time::timeout_at(again_at, news.changed()).await;
    }

    /// Waits for a place; if nothing was known to be due, news are as good.
    async fn await_room(&self, more: bool, news: &mut watch::Receiver<u64>) {
        tokio::select! {
            () = tokio::time::sleep_until(self.opens_at()) => {}
            () = self.freed.notified(), if more => {}
            _ = news.changed(), if !more => {}
        }
    }

    /// When time alone may have made room, or something due; not long from now.
    fn opens_at(&self) -> Instant {
        let now = Instant::now();
        let gates = self.gates.iter().filter_map(|gate| gate.opens_at(now));
        gates.fold(now + IDLE_INTERVAL, Instant::min)
    }
}

/// Whether some bound was reached, so that there may be more.
fn fullness(want: &Fetch, jobs: &[Job]) -> Found {
    let pool = |source: &SourceName| want.lanes.iter().find(|lane| lane.source == *source);
    let full = want.lanes.iter().any(|lane| {
        let of_source = jobs.iter().filter(|job| job.lease.key.source == lane.source);
        let of_pool = jobs
            .iter()
            .filter(|job| pool(&job.lease.key.source).is_some_and(|other| other.pool == lane.pool));
        of_source.count() >= lane.room as usize || of_pool.count() >= lane.pool_room as usize
    });
    let bytes: usize = jobs.iter().map(|job| job.body.len()).sum();
    // A body that did not fit was not fetched, and is not known; one takes at most about half.
    let heavy = bytes as u64 >= want.bytes_max / 2;
    match full || heavy || jobs.len() >= want.limit as usize {
        true => Found::Full,
        false => Found::Some,
    }
}
