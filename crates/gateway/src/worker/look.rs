//! One look at the queue: how much of which source there is room for, and whether there was more.
//!
//! Each target can always have its share of the worker's places, that is all of them divided by the targets. What
//! is left over goes to whoever needs it. So targets that hang keep the others from nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hookgate_ledger::{Fetch, Job, Lane, Ticket};
use hookgate_webhook::SourceName;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::route::Route;
use super::{Scope, Worker};

/// Bodies fetched at once: one of the largest that a provider sends, or thousands of the common ones.
const FETCH_BYTES_MAX: u64 = 32 << 20;

/// What one look leaves to the next.
#[derive(Default)]
pub(super) struct Looks {
    /// Sources that may have had more than there was room for.
    pub(super) hungry: HashSet<SourceName>,
    /// A look whose answer did not come: it may have leased events all the same.
    unanswered: Option<Ticket>,
}

impl Worker {
    /// Leases what there is room for, and starts it. Says whether any lane may have more, and remembers which.
    pub(super) async fn run_once(
        self: &Arc<Self>,
        tasks: &mut JoinSet<()>,
        looks: &mut Looks,
        scope: Scope,
    ) -> bool {
        let free = self
            .concurrency
            .saturating_sub(self.in_hand.load(Ordering::Relaxed));
        let mut lanes = self.lanes(free, Instant::now());
        lanes.retain(|lane| scope == Scope::All || looks.hungry.contains(&lane.source));
        if lanes.is_empty() {
            return false;
        }
        let want = Fetch {
            lanes,
            limit: u32::try_from(free).unwrap_or(u32::MAX),
            bytes_max: FETCH_BYTES_MAX,
            lease: self.lease,
            ticket: looks.unanswered.map_or_else(Ticket::draw, Ticket::again),
        };
        let jobs = match self.ledger.fetch(want.clone()).await {
            Ok(jobs) => jobs,
            Err(error) => {
                tracing::debug!(%error, "nothing was fetched");
                looks.unanswered = Some(want.ticket);
                return false;
            }
        };
        looks.unanswered = None;
        let full = full_lanes(&want, &jobs);
        for lane in &want.lanes {
            match full.contains(&lane.source) {
                true => looks.hungry.insert(lane.source.clone()),
                false => looks.hungry.remove(&lane.source),
            };
        }
        for job in jobs {
            self.start(tasks, job);
        }
        !full.is_empty()
    }

    /// Each source that may go on, with the room that it and its target have.
    fn lanes(&self, free: usize, now: Instant) -> Vec<Lane> {
        let rooms = self.rooms(free, now);
        let lane = |route: &Arc<Route>| {
            let pool = self
                .gates
                .iter()
                .position(|gate| Arc::ptr_eq(gate, &route.gate))?;
            let room = route.room().min(rooms[pool]);
            let bound = |bound| u32::try_from(bound).unwrap_or(u32::MAX);
            (room > 0).then(|| Lane {
                source: route.source.clone(),
                room: bound(room),
                pool: bound(pool),
                pool_room: bound(rooms[pool]),
            })
        };
        self.routes.values().filter_map(lane).collect()
    }

    /// The room before each target, after what is kept back for the shares of the others.
    fn rooms(&self, free: usize, now: Instant) -> Vec<usize> {
        let fair = self.concurrency / self.gates.len().max(1);
        let kept: Vec<usize> = self
            .gates
            .iter()
            .map(|gate| match gate.is_open() {
                true => fair.saturating_sub(gate.in_hand()),
                false => 0,
            })
            .collect();
        let kept_in_all: usize = kept.iter().sum();
        let rooms = self.gates.iter().zip(kept).map(|(gate, own)| {
            let others = kept_in_all - own;
            gate.room(now).min(free.saturating_sub(others))
        });
        rooms.collect()
    }
}

/// The sources of which some bound was reached, so that there may be more.
fn full_lanes(want: &Fetch, jobs: &[Job]) -> HashSet<SourceName> {
    let bytes: usize = jobs.iter().map(|job| job.body.len()).sum();
    // A body that did not fit was not fetched, and is not known; one takes at most about half.
    let all = bytes as u64 >= want.bytes_max / 2 || jobs.len() >= want.limit as usize;
    let of_source = |source: &SourceName| jobs.iter().filter(|job| job.lease.key.source == *source).count();
    let of_pool = |pool: u32| -> usize {
        let lanes = want.lanes.iter().filter(|lane| lane.pool == pool);
        lanes.map(|lane| of_source(&lane.source)).sum()
    };
    let full = want.lanes.iter().filter(|lane| {
        all || of_source(&lane.source) >= lane.room as usize || of_pool(lane.pool) >= lane.pool_room as usize
    });
    full.map(|lane| lane.source.clone()).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hookgate_ledger::{DeliveryId, Lease};
    use hookgate_webhook::{EventId, EventKey};
    use std::time::Duration;

    use super::*;

    fn lane(source: &str, room: u32, pool: u32, pool_room: u32) -> Lane {
        Lane {
            source: SourceName::parse(source).unwrap(),
            room,
            pool,
            pool_room,
        }
    }

    fn job(source: &str, bytes: usize) -> Job {
        let key = EventKey {
            source: SourceName::parse(source).unwrap(),
            id: EventId::parse("evt_1").unwrap(),
        };
        Job {
            lease: Lease {
                key,
                owner: DeliveryId(1),
                attempt: 1,
                generation: 0,
            },
            provider: "stripe".to_owned(),
            event_type: None,
            tries: 1,
            headers: Vec::new(),
            body: Bytes::from(vec![0; bytes]),
        }
    }

    fn check(jobs: &[Job], expected: &[&str]) {
        let want = Fetch {
            lanes: vec![lane("a", 4, 0, 5), lane("b", 4, 0, 5), lane("c", 2, 1, 2)],
            limit: 6,
            bytes_max: 1000,
            lease: Duration::ZERO,
            ticket: Ticket::draw(),
        };
        let mut full: Vec<_> = full_lanes(&want, jobs).iter().map(ToString::to_string).collect();
        full.sort();
        assert_eq!(full, expected);
    }

    #[test]
    fn a_lane_may_have_more_when_a_bound_of_its_own_or_of_its_target_is_reached() {
        let of = |source: &str, count: usize| (0..count).map(|_| job(source, 1)).collect::<Vec<_>>();
        check(&[], &[]);
        check(&of("a", 3), &[]);
        check(&of("a", 4), &["a"]);
        check(&[of("a", 3), of("b", 2)].concat(), &["a", "b"]);
        check(&of("c", 2), &["c"]);
        check(&[of("a", 3), of("b", 1), of("c", 1)].concat(), &[]);
    }

    #[test]
    fn every_lane_may_have_more_when_a_bound_of_the_whole_look_is_reached() {
        let six = [
            [job("a", 1), job("b", 1), job("c", 1)],
            [job("a", 1), job("b", 1), job("b", 1)],
        ]
        .concat();
        check(&six, &["a", "b", "c"]);
        check(&[job("b", 500)], &["a", "b", "c"]);
    }
}
