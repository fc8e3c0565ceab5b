//! What every claim store keeps to, whatever it is made of. Each property works on a key of its own, so one store
//! serves all of them, also at once.

use std::sync::Arc;
use std::time::Duration;

use hookgate_claim::{Claim, Claims, Epoch, Lease, Ownership, Sight, Terms};
use hookgate_harness::PATIENCE;
use hookgate_webhook::{EventId, EventKey, SourceName};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub(crate) use crate::sequences::any_sequence_of_steps_goes_as_the_cell_says;

/// A week, and a lease that no test outlives.
pub(crate) const TERMS: Terms = Terms {
    ttl: Duration::from_secs(604_800),
    lease: Duration::from_secs(600),
};

/// A lease that is over before anybody can look.
pub(crate) const BRIEF: Terms = Terms {
    lease: Duration::from_millis(1),
    ..TERMS
};

/// Enough to meet on one key at the same instant.
const CROWD: usize = 64;

/// The key of one event of the source `stripe`.
pub(crate) fn key(id: &str) -> EventKey {
    let source = SourceName::parse("stripe").unwrap();
    EventKey {
        source,
        id: EventId::parse(id).unwrap(),
    }
}

/// Claims what must be free.
pub(crate) async fn won(claims: &dyn Claims, key: &EventKey, terms: Terms) -> Lease {
    match claims.claim(key, terms).await.unwrap() {
        Claim::First(lease) => lease,
        lost => panic!("{key} should have been free, but: {lost:?}"),
    }
}

/// Waits until the lease of the claim under `key` is over by the store's own clock.
pub(crate) async fn expired(claims: &dyn Claims, key: &EventKey) {
    let seen = async {
        while claims.look(key).await.unwrap() != Sight::Free {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, seen).await.expect("a lease ends");
}

/// What a crowd got that claimed one key at the same instant.
async fn rush(claims: &Arc<dyn Claims>, key: &EventKey) -> Vec<Claim> {
    let barrier = Arc::new(Barrier::new(CROWD));
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (claims, key, barrier) = (Arc::clone(claims), key.clone(), Arc::clone(&barrier));
        crowd.spawn(async move {
            barrier.wait().await;
            claims.claim(&key, TERMS).await.unwrap()
        });
    }
    crowd.join_all().await
}

fn winners(crowd: Vec<Claim>) -> Vec<Lease> {
    let lease = |claim| match claim {
        Claim::First(lease) => Some(lease),
        Claim::InFlight { .. } => None,
        Claim::Done => panic!("nobody has finished"),
    };
    crowd.into_iter().filter_map(lease).collect()
}

pub(crate) async fn of_a_crowd_exactly_one_is_first(claims: Arc<dyn Claims>) {
    let winners = winners(rush(&claims, &key("evt_crowd")).await);
    assert_eq!(winners.len(), 1);
    assert!(!winners[0].taken_over);
}

pub(crate) async fn a_duplicate_sees_in_flight_and_then_done(claims: Arc<dyn Claims>) {
    let key = key("evt_duplicate");
    let lease = won(&*claims, &key, TERMS).await;
    assert!(matches!(claims.claim(&key, TERMS).await.unwrap(), Claim::InFlight { age } if age < PATIENCE));
    assert_eq!(claims.look(&key).await.unwrap(), Sight::InFlight);
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    assert!(matches!(claims.claim(&key, TERMS).await.unwrap(), Claim::Done));
    assert_eq!(claims.look(&key).await.unwrap(), Sight::Done);
}

pub(crate) async fn marking_done_needs_no_lease(claims: Arc<dyn Claims>) {
    let (fresh, claimed) = (key("evt_marked_fresh"), key("evt_marked_claimed"));
    let lease = won(&*claims, &claimed, TERMS).await;
    for key in [&fresh, &claimed] {
        claims.mark_done(key, TERMS.ttl, claims.epoch()).await.unwrap();
        assert!(matches!(claims.claim(key, TERMS).await.unwrap(), Claim::Done));
    }
    // The holder comes too late to undo what the ledger knows.
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.look(&claimed).await.unwrap(), Sight::Done);
}

pub(crate) async fn a_release_lets_the_next_run_at_once(claims: Arc<dyn Claims>) {
    let key = key("evt_released");
    let lease = won(&*claims, &key, TERMS).await;
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.look(&key).await.unwrap(), Sight::Free);
    let next = won(&*claims, &key, TERMS).await;
    assert!(!next.taken_over, "a released claim was nobody's");
    assert_eq!(
        claims.release(&lease).await.unwrap(),
        Ownership::Lost,
        "released twice"
    );
}

pub(crate) async fn an_expired_claim_is_taken_over_by_exactly_one(claims: Arc<dyn Claims>) {
    let key = key("evt_expired");
    won(&*claims, &key, BRIEF).await;
    expired(&*claims, &key).await;
    let winners = winners(rush(&claims, &key).await);
    assert_eq!(winners.len(), 1);
    assert!(winners[0].taken_over);
}

pub(crate) async fn a_claim_goes_by_its_own_lease_and_not_by_its_readers(claims: Arc<dyn Claims>) {
    let (long, brief) = (key("evt_long_lease"), key("evt_brief_lease"));
    won(&*claims, &long, TERMS).await;
    won(&*claims, &brief, BRIEF).await;
    expired(&*claims, &brief).await;
    assert!(matches!(
        claims.claim(&long, BRIEF).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert!(won(&*claims, &brief, TERMS).await.taken_over);
}

pub(crate) async fn a_late_owner_changes_nothing(claims: Arc<dyn Claims>) {
    let key = key("evt_late");
    let mut late = won(&*claims, &key, BRIEF).await;
    expired(&*claims, &key).await;
    let successor = won(&*claims, &key, TERMS).await;
    assert_eq!(claims.release(&late).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.finish(&late).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.renew(&mut late).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.look(&key).await.unwrap(), Sight::InFlight);
    assert_eq!(claims.finish(&successor).await.unwrap(), Ownership::Kept);
}

pub(crate) async fn an_owner_that_nobody_replaced_may_still_finish(claims: Arc<dyn Claims>) {
    let key = key("evt_unreplaced");
    let lease = won(&*claims, &key, BRIEF).await;
    expired(&*claims, &key).await;
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    assert!(matches!(claims.claim(&key, TERMS).await.unwrap(), Claim::Done));
}

pub(crate) async fn each_odd_id_is_one_key(claims: Arc<dyn Claims>) {
    let long = |last: &str| format!("{}{last}", "x".repeat(254));
    let ids = [
        "*", "..", "a:b", "a: b", " lead", "trail ", "tab?", "Case", "case", "🦀", "'; DROP", "%00", "{a}",
        "[a-z]",
    ];
    let ids: Vec<String> = ids
        .into_iter()
        .map(str::to_owned)
        .chain([long("1"), long("2")])
        .collect();
    for id in &ids {
        won(&*claims, &key(id), TERMS).await;
    }
    for id in &ids {
        assert_eq!(claims.look(&key(id)).await.unwrap(), Sight::InFlight, "{id:?}");
    }
}

pub(crate) async fn the_first_colon_parts_source_and_id(claims: Arc<dyn Claims>) {
    let of = |source: &str, id: &str| EventKey {
        source: SourceName::parse(source).unwrap(),
        id: EventId::parse(id).unwrap(),
    };
    won(&*claims, &of("p", "q:r"), TERMS).await;
    won(&*claims, &of("p-q", "r"), TERMS).await;
    won(&*claims, &of("q", "r"), TERMS).await;
}

pub(crate) async fn a_probe_succeeds_and_claims_nothing(claims: Arc<dyn Claims>) {
    claims.probe().await.unwrap();
    claims.probe().await.unwrap();
}

pub(crate) async fn a_done_mark_of_another_epoch_is_void(claims: Arc<dyn Claims>) {
    let (done, claimed) = (key("evt_restored"), key("evt_claimed_before"));
    claims.mark_done(&done, TERMS.ttl, claims.epoch()).await.unwrap();
    let before = won(&*claims, &claimed, TERMS).await;

    claims.set_epoch(Epoch {
        configured: 0,
        timeline: 2,
    });
    assert_eq!(claims.look(&done).await.unwrap(), Sight::Free);
    let winners = winners(rush(&claims, &done).await);
    assert_eq!(winners.len(), 1, "one of many replaces a void mark");
    assert!(!winners[0].taken_over, "nobody was working on it");

    // A claim of the old epoch is still in flight; finished late, its mark says nothing about the new one.
    assert!(matches!(
        claims.claim(&claimed, TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(claims.finish(&before).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.look(&claimed).await.unwrap(), Sight::Free);
}

pub(crate) async fn a_mark_of_the_epoch_before_a_promotion_is_void_after_it(claims: Arc<dyn Claims>) {
    let key = key("evt_promoted");
    let before = claims.epoch();
    let promoted = Epoch {
        timeline: before.timeline + 1,
        ..before
    };
    claims.set_epoch(promoted);
    assert_eq!(claims.epoch(), promoted);

    claims.mark_done(&key, TERMS.ttl, before).await.unwrap();
    assert_eq!(claims.look(&key).await.unwrap(), Sight::Free);
    won(&*claims, &key, TERMS).await;

    claims.mark_done(&key, TERMS.ttl, promoted).await.unwrap();
    assert!(matches!(claims.claim(&key, TERMS).await.unwrap(), Claim::Done));
}
