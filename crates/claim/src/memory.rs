//! Claims in this process's memory: for one replica, or before a database that decides anyway.
//!
//! They live and judge exactly like those in Redis, but forget when the process ends, and the least
//! recently used go first when there are too many. A claim lost that way while in flight is gone like a
//! key lost by Redis: whoever holds its lease learns so at the next step, and the ledger decides.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use hookgate_webhook::EventKey;
use moka::ops::compute::Op;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
// Not std's: tests pause this clock. Outside of such tests it is the same monotonic one.
use tokio::time::Instant;

use crate::cell::{Attempt, Cell, Held, Replaced, Value};
use crate::claims::{Claim, Claims, Epoch, Lease, Ownership, Sight, Terms, Unavailable};

/// A bounded store of claims in memory.
pub struct MemoryClaims {
    held: Cache<EventKey, Kept>,
    epoch: ArcSwap<Epoch>,
}

/// One key's value and when its life ends.
#[derive(Clone, Copy)]
struct Kept {
    value: Value,
    expires: Instant,
}

impl Kept {
    fn new(held: Held, now: Instant) -> Self {
        Self {
            value: held.value,
            expires: now + Duration::from_millis(held.left_ms.unsigned_abs()),
        }
    }

    /// What it is now; nothing once its life has ended.
    fn at(self, now: Instant) -> Cell {
        let left = self.expires.saturating_duration_since(now);
        let held = Held {
            value: self.value,
            left_ms: i64::try_from(left.as_millis()).unwrap_or(i64::MAX),
        };
        Cell((!left.is_zero()).then_some(held))
    }
}

impl MemoryClaims {
    /// An empty store that holds at most about `entries_max` claims and done marks.
    pub fn new(entries_max: u64, epoch: Epoch) -> Self {
        // By recency alone: the default policy also weighs how often a key was asked for, and would drop
        // the newest claim, which nobody has asked for yet, before an old done mark.
        let held = Cache::builder()
            .max_capacity(entries_max)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            held,
            epoch: ArcSwap::from_pointee(epoch),
        }
    }

    /// Looks at a key and changes it in one step that no other step on that key can come between.
    fn step<T>(&self, key: &EventKey, act: impl FnOnce(&mut Cell) -> T) -> T {
        let mut outcome = None;
        self.held.entry_by_ref(key).and_compute_with(|entry| {
            let now = Instant::now();
            let before = entry.map_or(Cell(None), |entry| entry.into_value().at(now));
            let mut cell = before;
            outcome = Some(act(&mut cell));
            match cell.0 {
                _ if cell == before => Op::Nop,
                Some(held) => Op::Put(Kept::new(held, now)),
                None => Op::Remove,
            }
        });
        outcome.expect("moka runs the closure exactly once")
    }
}

/// Meets the key, and takes the place of what has run out or is void, before anybody else can.
fn claim(cell: &mut Cell, lease: Lease, epoch: &Epoch) -> Claim {
    let Some(seen) = cell.set_if_free(&lease.claim) else {
        return Claim::First(lease);
    };
    match seen.judge(&lease.claim, epoch) {
        Attempt::Won => Claim::First(lease),
        Attempt::Done => Claim::Done,
        Attempt::InFlight { age } => Claim::InFlight { age },
        Attempt::Replace {
            age,
            taken_over,
            left_ms_max,
        } => match cell.replace(&seen.value, &lease.claim, left_ms_max) {
            Replaced::Free | Replaced::Seen => Claim::First(Lease { taken_over, ..lease }),
            Replaced::No(_) => Claim::InFlight { age },
        },
    }
}

#[async_trait]
impl Claims for MemoryClaims {
    async fn claim(&self, key: &EventKey, terms: Terms) -> Result<Claim, Unavailable> {
        let epoch = self.epoch.load();
        let lease = Lease::new(key, terms, &epoch);
        Ok(self.step(key, |cell| claim(cell, lease, &epoch)))
    }

    async fn look(&self, key: &EventKey) -> Result<Sight, Unavailable> {
        let cell = self
            .held
            .get(key)
            .map_or(Cell(None), |kept| kept.at(Instant::now()));
        Ok(cell.sight(&self.epoch.load()))
    }

    async fn renew(&self, lease: &mut Lease) -> Result<Ownership, Unavailable> {
        Ok(self.step(&lease.key, |cell| cell.renew(&lease.claim)))
    }

    async fn finish(&self, lease: &Lease) -> Result<Ownership, Unavailable> {
        Ok(self.step(&lease.key, |cell| cell.finish(&lease.claim)))
    }

    async fn mark_done(&self, key: &EventKey, ttl: Duration, epoch: Epoch) -> Result<(), Unavailable> {
        let lease = Duration::ZERO;
        let ttl_ms = Terms { ttl, lease }.ttl_seconds().saturating_mul(1_000);
        self.step(key, |cell| cell.mark_done(epoch, ttl_ms));
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<Ownership, Unavailable> {
        Ok(self.step(&lease.key, |cell| cell.release(&lease.claim)))
    }

    /// Memory always answers.
    async fn probe(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn epoch(&self) -> Epoch {
        **self.epoch.load()
    }

    fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(Arc::new(epoch));
    }
}

#[cfg(test)]
mod tests {
    use hookgate_webhook::{EventId, SourceName};

    use super::*;

    const TERMS: Terms = Terms {
        ttl: Duration::from_secs(604_800),
        lease: Duration::from_secs(15),
    };

    fn key(id: &str) -> EventKey {
        EventKey {
            source: SourceName::parse("stripe").unwrap(),
            id: EventId::parse(id).unwrap(),
        }
    }

    async fn won(claims: &MemoryClaims, id: &str) -> Lease {
        match claims.claim(&key(id), TERMS).await.unwrap() {
            Claim::First(lease) => lease,
            lost => panic!("{id} should have been free, but: {lost:?}"),
        }
    }

    async fn age(claims: &MemoryClaims, id: &str) -> Duration {
        match claims.claim(&key(id), TERMS).await.unwrap() {
            Claim::InFlight { age } => age,
            other => panic!("{id} should be in flight, but: {other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_claim_starts_its_age_again() {
        let claims = MemoryClaims::new(10, Epoch::default());
        let mut lease = won(&claims, "evt_1").await;
        tokio::time::advance(Duration::from_secs(14)).await;
        assert_eq!(age(&claims, "evt_1").await, Duration::from_secs(14));
        assert_eq!(claims.renew(&mut lease).await.unwrap(), Ownership::Kept);
        tokio::time::advance(Duration::from_secs(14)).await;
        assert_eq!(age(&claims, "evt_1").await, Duration::from_secs(14));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(won(&claims, "evt_1").await.taken_over);
    }

    #[tokio::test(start_paused = true)]
    async fn a_done_mark_ends_with_its_life() {
        let claims = MemoryClaims::new(10, Epoch::default());
        let lease = won(&claims, "evt_1").await;
        assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
        tokio::time::advance(TERMS.ttl - Duration::from_secs(1)).await;
        assert_eq!(claims.look(&key("evt_1")).await.unwrap(), Sight::Done);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!won(&claims, "evt_1").await.taken_over);
    }

    #[tokio::test]
    async fn the_least_recent_claims_are_forgotten_and_their_owners_told() {
        let claims = MemoryClaims::new(100, Epoch::default());
        let first = won(&claims, "evt_first").await;
        for number in 0..1_000 {
            let _ = won(&claims, &format!("evt_{number}")).await;
        }
        claims.held.run_pending_tasks();
        assert!(claims.held.entry_count() <= 100);
        assert_eq!(claims.look(&key("evt_999")).await.unwrap(), Sight::InFlight);
        assert_eq!(claims.finish(&first).await.unwrap(), Ownership::Lost);
        assert_eq!(claims.look(&key("evt_first")).await.unwrap(), Sight::Free);
    }
}
