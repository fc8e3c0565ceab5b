//! Forwards that their targets took and that the ledger does not know of yet. It is told until it hears: else the row
//! would say in the end that the event failed, and whoever sends it once more would have it run again.
//!
//! Telling goes on beyond the lease, for an outage that keeps us from the ledger mostly keeps everybody from it. Who was
//! not kept from it may have the row by then, and it stays theirs: a finish compares the owner.

use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{Lease, LedgerError, Settled};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::stores::{GuardedLedger, OnceAMinute};

/// First pause before the ledger is told again; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// Longest pause: when the ledger is back, it should hear of a row before anybody frees it.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// An outage longer than this is for people.
const TOLD_MAX: Duration = Duration::from_secs(600);

/// So many are remembered at once on one replica, a few hundred bytes and one call a second each. More come together only
/// where rows can be begun and not finished.
const REMEMBERED_MAX: usize = 1_000;

/// What one process has to tell its ledger.
pub struct Unfinished {
    ledger: Arc<GuardedLedger>,
    tasks: TaskTracker,
    hurry: CancellationToken,
    places: Arc<Semaphore>,
    warned: OnceAMinute,
}

impl Unfinished {
    /// Nothing yet. What is told runs in `tasks`, and ends when there must be `hurry`.
    pub fn new(ledger: Arc<GuardedLedger>, tasks: TaskTracker, hurry: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            ledger,
            tasks,
            hurry,
            places: Arc::new(Semaphore::new(REMEMBERED_MAX)),
            warned: OnceAMinute::default(),
        })
    }

    /// Tells the ledger in the background that this run took effect.
    pub(super) fn remember(self: &Arc<Self>, lease: Lease) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return self.give_up(&lease, "too many wait to be told");
        };
        let unfinished = Arc::clone(self);
        self.tasks.spawn(async move {
            let _place = place;
            unfinished.tell(&lease).await;
        });
    }

    async fn tell(&self, lease: &Lease) {
        let told = tokio::time::timeout(TOLD_MAX, self.tell_until_heard(lease));
        match self.hurry.run_until_cancelled(told).await {
            Some(Ok(Ok(Settled::Lost))) => self.give_up(lease, "the row is somebody else's by now"),
            Some(Ok(Ok(Settled::Committed | Settled::Buried | Settled::Repeated { .. }))) => {}
            Some(Ok(Err(error))) => self.give_up(lease, &error.to_string()),
            Some(Err(_)) => self.give_up(lease, "it was away for too long"),
            None => self.give_up(lease, "this process ends"),
        }
    }

    async fn tell_until_heard(&self, lease: &Lease) -> Result<Settled, LedgerError> {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.ledger.finish(lease).await {
                Err(LedgerError::Unavailable(_) | LedgerError::Locked(_)) => {}
                heard => return heard,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn give_up(&self, lease: &Lease, why: &str) {
        let key = &lease.key;
        if self.warned.due() {
            tracing::warn!(event.key = %key, why, "the target took {key}, and its row does not say so: it may be called again");
        }
    }
}
