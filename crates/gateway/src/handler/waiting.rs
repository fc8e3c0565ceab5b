//! Waiting for somebody else's outcome. One poller per key and replica asks the stores, however many copies
//! wait; waiters are bounded, so a flood of copies costs a refusal and not memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate_claim::Sight;
use hookgate_ledger::State;
use hookgate_webhook::EventKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::stores::Stores;

/// Copies that may wait at once on one replica.
const WAITERS_MAX: usize = 1_000;

/// Pause between two looks: an outcome is noticed within two hundredths of a second, at fifty commands a
/// second per waited-for key.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Waited {
    /// It is done.
    Done,
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
    pollers: Mutex<HashMap<EventKey, watch::Receiver<Sight>>>,
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
    pub async fn wait(self: &Arc<Self>, key: &EventKey, deadline: Instant) -> Waited {
        let Some(_place) = self.place() else {
            return Waited::Refused;
        };
        let mut seen = self.join(key);
        match tokio::time::timeout_at(deadline, seen.wait_for(|sight| *sight != Sight::InFlight)).await {
            Ok(Ok(sight)) if *sight == Sight::Done => Waited::Done,
            // A poller that is gone without an outcome says nothing; the caller's next claim will tell.
            Ok(_) => Waited::Free,
            Err(_) => Waited::TimedOut,
        }
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Joins the key's poller, or starts one.
    fn join(self: &Arc<Self>, key: &EventKey) -> watch::Receiver<Sight> {
        let mut pollers = self.pollers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = pollers.get(key) {
            return seen.clone();
        }
        let (tell, seen) = watch::channel(Sight::InFlight);
        pollers.insert(key.clone(), seen.clone());
        tokio::spawn(Arc::clone(self).poll(key.clone(), tell));
        seen
    }

    async fn poll(self: Arc<Self>, key: EventKey, tell: watch::Sender<Sight>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let sight = self.look(&key).await;
            // The map holds one receiver; alone, it means that nobody waits any more. Leaving the map before
            // telling lets a copy that comes now start a fresh poller instead of reading an old outcome.
            let mut pollers = self.pollers.lock().unwrap_or_else(PoisonError::into_inner);
            if sight != Sight::InFlight || tell.receiver_count() <= 1 {
                pollers.remove(&key);
                drop(pollers);
                let _earlier = tell.send_replace(sight);
                return;
            }
        }
    }

    /// The claim if it can be seen, else the ledger's row.
    async fn look(&self, key: &EventKey) -> Sight {
        if let Some(claims) = &self.stores.claims
            && let Ok(sight) = claims.look(key).await
        {
            return sight;
        }
        let Some(ledger) = &self.stores.ledger else {
            return Sight::InFlight;
        };
        match ledger.entry(key).await {
            Ok(Some(entry)) if entry.state == State::Running && !entry.lease_ended => Sight::InFlight,
            Ok(Some(entry)) if matches!(entry.state, State::Running | State::Failed) => Sight::Free,
            Ok(Some(_)) => Sight::Done,
            Ok(None) => Sight::Free,
            Err(_) => Sight::InFlight,
        }
    }
}
