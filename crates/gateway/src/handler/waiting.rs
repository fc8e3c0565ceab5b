//! Waiting for somebody else's outcome. One poller per key and replica asks the stores, however many copies
//! wait; waiters are bounded, so a flood of copies costs a refusal and not memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate_webhook::EventKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use super::{DecidedBy, Seen};
use crate::stores::Stores;

/// Copies that may wait at once on one replica.
const WAITERS_MAX: usize = 1_000;

/// Pause between two looks: an outcome is noticed within two hundredths of a second, at fifty commands a
/// second per waited-for key.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Who is asked about an event that somebody else works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Witness {
    /// The claim: a look at it costs the ledger nothing. The row, if the claim store cannot answer.
    Claim,
    /// The row: the claim that stands is or may be the waiter's own, and says nothing of the other.
    Ledger,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// It is done, as this layer knows.
    Done(DecidedBy),
    /// Its holder released it, or lost it: a new claim may win.
    Free,
    /// Still in flight at the deadline.
    TimedOut,
    /// Too many wait already.
    Refused,
}

/// The waiters of one replica.
pub struct Waiters {
    stores: Stores,
    places: Arc<Semaphore>,
    pollers: Mutex<HashMap<(EventKey, Witness), watch::Receiver<Seen>>>,
}

impl Waiters {
    /// Nobody waits yet.
    pub fn new(stores: Stores) -> Arc<Self> {
        Arc::new(Self {
            stores,
            places: Arc::new(Semaphore::new(WAITERS_MAX)),
            pollers: Mutex::default(),
        })
    }

    /// Waits until the key is done or free, at most until `deadline`.
    pub async fn wait(self: &Arc<Self>, key: &EventKey, witness: Witness, deadline: Instant) -> Waited {
        let Some(_place) = self.place() else {
            return Waited::Refused;
        };
        let mut seen = self.join(key, witness);
        let settled = seen.wait_for(|seen| *seen != Seen::InFlight);
        match tokio::time::timeout_at(deadline, settled).await {
            Ok(Ok(seen)) => match *seen {
                Seen::Done(decided_by) => Waited::Done(decided_by),
                Seen::Free | Seen::InFlight => Waited::Free,
            },
            // A poller that is gone without an outcome says nothing; the caller's next claim will tell.
            Ok(Err(_)) => Waited::Free,
            Err(_) => Waited::TimedOut,
        }
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Joins the key's poller, or starts one.
    fn join(self: &Arc<Self>, key: &EventKey, witness: Witness) -> watch::Receiver<Seen> {
        let place = (key.clone(), witness);
        let mut pollers = self.pollers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = pollers.get(&place) {
            return seen.clone();
        }
        let (tell, seen) = watch::channel(Seen::InFlight);
        pollers.insert(place.clone(), seen.clone());
        tokio::spawn(Arc::clone(self).poll(place, tell));
        seen
    }

    async fn poll(self: Arc<Self>, place: (EventKey, Witness), tell: watch::Sender<Seen>) {
        let mut seen = self.look_first(&place.0).await;
        loop {
            // The map holds one receiver; alone, it means that nobody waits any more. Leaving the map before
            // telling lets a copy that comes now start a fresh poller instead of reading an old outcome.
            let mut pollers = self.pollers.lock().unwrap_or_else(PoisonError::into_inner);
            if seen != Seen::InFlight || tell.receiver_count() <= 1 {
                pollers.remove(&place);
                drop(pollers);
                let _earlier = tell.send_replace(seen);
                return;
            }
            drop(pollers);
            tokio::time::sleep(POLL_INTERVAL).await;
            seen = self.look(&place.0, place.1).await;
        }
    }

    /// Asks the ledger once for all that wait, so that a crowd of copies costs it one question.
    async fn look_first(&self, key: &EventKey) -> Seen {
        let Some(ledger) = &self.stores.ledger else {
            return Seen::InFlight;
        };
        Seen::at_first(&ledger.entry(key).await)
    }

    async fn look(&self, key: &EventKey, witness: Witness) -> Seen {
        if witness == Witness::Claim
            && let Some(claims) = &self.stores.claims
            && let Ok(sight) = claims.look(key).await
        {
            return Seen::by_claim(sight);
        }
        let Some(ledger) = &self.stores.ledger else {
            return Seen::InFlight;
        };
        Seen::by_row(&ledger.entry(key).await)
    }
}
