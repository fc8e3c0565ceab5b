//! One of many does a job, and nobody needs to know the others.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::PATIENCE;
use hookgate_ledger::{DeliveryId, Elected, UnixMicros, Upkeep};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, SHORT};

on_both!(
    one_of_many_contenders_is_elected,
    a_holder_extends_and_never_shortens_its_lease,
    a_lease_that_ended_is_taken_over_with_a_higher_term,
    a_job_that_was_given_back_is_had_at_once,
    only_the_holder_can_give_a_job_back,
    a_concluded_job_rests_and_tells_the_next_holder_how_far_it_is,
    a_job_that_is_given_back_or_dropped_is_done_no_further_than_before,
    jobs_of_different_names_have_different_holders,
);

const JOB: &str = "sweep";

fn anyone() -> DeliveryId {
    DeliveryId(rand::random())
}

fn yes(term: u64, done_until: Option<i64>) -> Elected {
    Elected::Yes {
        term,
        done_until: done_until.map(UnixMicros),
    }
}

/// Asks until the lease of another one has ended.
async fn until_elected(keeper: &dyn Upkeep, owner: DeliveryId, lease: Duration) -> Elected {
    let asking = async {
        loop {
            match keeper.elect(JOB, owner, lease).await.unwrap() {
                Elected::No => tokio::time::sleep(Duration::from_millis(2)).await,
                elected @ Elected::Yes { .. } => return elected,
            }
        }
    };
    tokio::time::timeout(PATIENCE, asking)
        .await
        .expect("the lease never ended")
}

async fn one_of_many_contenders_is_elected(db: Database) {
    db.ledger().await;
    let keepers = [db.keeper(), db.keeper(), db.keeper(), db.keeper()];
    let asking = (0..24).map(|n| keepers[n % 4].elect(JOB, anyone(), LONG));
    let answers: Vec<_> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    let elected: Vec<_> = answers.iter().filter(|answer| **answer != Elected::No).collect();
    assert_eq!(elected, [&yes(1, None)]);
}

async fn a_holder_extends_and_never_shortens_its_lease(db: Database) {
    db.ledger().await;
    let (keeper, other, owner) = (db.keeper(), db.keeper(), anyone());
    for lease in [SHORT, LONG, SHORT] {
        assert_eq!(keeper.elect(JOB, owner, lease).await.unwrap(), yes(1, None));
    }
    assert_eq!(other.elect(JOB, anyone(), LONG).await.unwrap(), Elected::No);
}

async fn a_lease_that_ended_is_taken_over_with_a_higher_term(db: Database) {
    db.ledger().await;
    let (keeper, late) = (db.keeper(), anyone());
    assert_eq!(keeper.elect(JOB, late, LONG).await.unwrap(), yes(1, None));
    assert_eq!(keeper.elect(JOB, anyone(), LONG).await.unwrap(), Elected::No);
    db.run(&format!("UPDATE leases SET lease_until = {}", db.days_ago(1)))
        .await;
    // Again one of all that ask has it.
    let keepers = [db.keeper(), db.keeper(), db.keeper()];
    let asking = (0..12).map(|n| keepers[n % 3].elect(JOB, anyone(), LONG));
    let answers: Vec<_> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    let elected: Vec<_> = answers.iter().filter(|answer| **answer != Elected::No).collect();
    assert_eq!(elected, [&yes(2, None)]);
    assert_eq!(keeper.elect(JOB, late, LONG).await.unwrap(), Elected::No);
    assert!(
        !keeper
            .conclude(JOB, late, Some(UnixMicros(7)), LONG)
            .await
            .unwrap()
    );
}

async fn a_job_that_was_given_back_is_had_at_once(db: Database) {
    db.ledger().await;
    let (keeper, other, owner) = (db.keeper(), db.keeper(), anyone());
    assert_eq!(keeper.elect(JOB, owner, LONG).await.unwrap(), yes(1, None));
    for _ in 0..2 {
        keeper.resign(JOB, owner).await.unwrap();
    }
    assert_eq!(other.elect(JOB, anyone(), LONG).await.unwrap(), yes(2, None));
    assert_eq!(keeper.elect(JOB, owner, LONG).await.unwrap(), Elected::No);
}

async fn only_the_holder_can_give_a_job_back(db: Database) {
    db.ledger().await;
    let (keeper, owner) = (db.keeper(), anyone());
    keeper.resign(JOB, owner).await.unwrap();
    assert_eq!(keeper.elect(JOB, owner, LONG).await.unwrap(), yes(1, None));
    keeper.resign(JOB, anyone()).await.unwrap();
    assert!(!keeper.conclude(JOB, anyone(), None, LONG).await.unwrap());
    assert_eq!(keeper.elect(JOB, anyone(), LONG).await.unwrap(), Elected::No);
}

async fn a_concluded_job_rests_and_tells_the_next_holder_how_far_it_is(db: Database) {
    db.ledger().await;
    let (keeper, owner) = (db.keeper(), anyone());
    let far = 1_790_000_000_123_000;
    assert_eq!(keeper.elect(JOB, owner, LONG).await.unwrap(), yes(1, None));
    assert!(
        keeper
            .conclude(JOB, owner, Some(UnixMicros(far)), LONG)
            .await
            .unwrap()
    );
    for candidate in [owner, anyone()] {
        assert_eq!(keeper.elect(JOB, candidate, LONG).await.unwrap(), Elected::No);
    }
    db.run(&format!("UPDATE leases SET lease_until = {}", db.days_ago(1)))
        .await;
    let next = anyone();
    // Told twice it is told the same, as when the first answer was lost.
    for _ in 0..2 {
        assert_eq!(keeper.elect(JOB, next, LONG).await.unwrap(), yes(2, Some(far)));
    }
}

async fn a_job_that_is_given_back_or_dropped_is_done_no_further_than_before(db: Database) {
    db.ledger().await;
    let (keeper, first, dies) = (db.keeper(), anyone(), anyone());
    assert_eq!(keeper.elect(JOB, first, LONG).await.unwrap(), yes(1, None));
    assert!(
        keeper
            .conclude(JOB, first, Some(UnixMicros(5_000)), Duration::ZERO)
            .await
            .unwrap()
    );
    assert_eq!(keeper.elect(JOB, first, LONG).await.unwrap(), yes(2, Some(5_000)));
    keeper.resign(JOB, first).await.unwrap();
    assert_eq!(keeper.elect(JOB, dies, SHORT).await.unwrap(), yes(3, Some(5_000)));
    assert_eq!(until_elected(&*keeper, anyone(), LONG).await, yes(4, Some(5_000)));
}

async fn jobs_of_different_names_have_different_holders(db: Database) {
    db.ledger().await;
    let keeper = db.keeper();
    for name in ["sweep", "dead-letter-alert"] {
        assert_eq!(keeper.elect(name, anyone(), LONG).await.unwrap(), yes(1, None));
    }
}
