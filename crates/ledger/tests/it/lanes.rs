//! Whose turn it is: no source waits behind another, and no fresh event behind old retries.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate_ledger::{Fetch, Job, Lane, Ledger, Queue};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, all, event, lane, source};

on_both!(
    a_source_with_a_backlog_leaves_places_to_the_others,
    each_lane_has_its_bound_and_so_have_those_that_share_one,
    three_of_four_places_are_for_fresh_events,
    what_one_kind_leaves_is_the_others,
    a_single_place_is_not_always_a_fresh_events,
    jobs_come_in_the_order_of_their_turns,
    hundreds_of_sources_are_fetched_from_at_once,
);

async fn append(ledger: &dyn Ledger, name: &str, count: usize) {
    for n in 0..count {
        let mut event = event(&format!("evt_{n}"));
        event.key.source = source(name);
        let _ = ledger.append(event, Queue::ForWorker).await.unwrap();
    }
}

/// Of the first `count` events of the source it is as if they had been run before.
async fn run_before(db: &Database, count: usize) {
    for n in 0..count {
        db.run(&format!(
            "UPDATE webhook_events SET attempts = 1 WHERE event_id = 'evt_{n}'"
        ))
        .await;
    }
}

fn by_source(jobs: &[Job]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.lease.key.source.as_str()).or_default() += 1;
    }
    counts
}

async fn fetch(ledger: &dyn Ledger, lanes: Vec<Lane>, limit: u32) -> Vec<Job> {
    let want = Fetch {
        lanes,
        limit,
        ..all(LONG)
    };
    ledger.fetch(want).await.unwrap()
}

async fn a_source_with_a_backlog_leaves_places_to_the_others(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "stripe", 30).await;
    append(&*ledger, "github", 2).await;
    append(&*ledger, "shopify", 30).await;
    let lanes = ["stripe", "github", "shopify"].map(|name| lane(name, 0)).to_vec();
    let jobs = fetch(&*ledger, lanes, 12).await;
    assert_eq!(
        by_source(&jobs),
        [("github", 2), ("shopify", 5), ("stripe", 5)].into()
    );
}

async fn each_lane_has_its_bound_and_so_have_those_that_share_one(db: Database) {
    let ledger = db.ledger().await;
    for name in ["stripe", "github", "shopify"] {
        append(&*ledger, name, 10).await;
    }
    let bounded = |name, room, pool, pool_room| Lane {
        room,
        pool_room,
        ..lane(name, pool)
    };
    let lanes = vec![
        bounded("stripe", 10, 1, 6),
        bounded("github", 2, 1, 6),
        bounded("shopify", 5, 2, 9),
    ];
    let jobs = fetch(&*ledger, lanes, 100).await;
    assert_eq!(
        by_source(&jobs),
        [("github", 2), ("shopify", 5), ("stripe", 4)].into()
    );
    let full = vec![bounded("stripe", 10, 1, 0), bounded("shopify", 0, 2, 9)];
    assert!(fetch(&*ledger, full, 100).await.is_empty(), "no room, no row");
}

async fn three_of_four_places_are_for_fresh_events(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "stripe", 40).await;
    run_before(&db, 20).await;
    let jobs = fetch(&*ledger, vec![lane("stripe", 0)], 16).await;
    let fresh = jobs.iter().filter(|job| job.lease.attempt == 1).count();
    assert_eq!((jobs.len(), fresh), (16, 12));
}

async fn what_one_kind_leaves_is_the_others(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "stripe", 12).await;
    run_before(&db, 10).await;
    assert_eq!(fetch(&*ledger, vec![lane("stripe", 0)], 8).await.len(), 8);
    assert_eq!(fetch(&*ledger, vec![lane("stripe", 0)], 8).await.len(), 4);
}

async fn a_single_place_is_not_always_a_fresh_events(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "stripe", 100).await;
    run_before(&db, 10).await;
    let mut again = 0;
    for _ in 0..90 {
        let jobs = fetch(&*ledger, vec![lane("stripe", 0)], 1).await;
        again += usize::from(jobs[0].lease.attempt > 1);
    }
    // One in six, by chance: that none of ninety is one, is less likely than one in ten million.
    assert!((1..=10).contains(&again), "{again}");
}

async fn jobs_come_in_the_order_of_their_turns(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "stripe", 3).await;
    append(&*ledger, "github", 3).await;
    for (minutes, name) in [(9, "stripe"), (5, "github")] {
        for n in 0..3 {
            let due = db.ago(Duration::from_secs(60 * (minutes - n)));
            db.run(&format!(
                "UPDATE webhook_events SET next_attempt_at = {due}
                 WHERE source = '{name}' AND event_id = 'evt_{n}'"
            ))
            .await;
        }
    }
    let jobs = fetch(&*ledger, vec![lane("github", 0), lane("stripe", 0)], 100).await;
    let keys = jobs
        .iter()
        .map(|job| (job.lease.key.source.as_str(), job.lease.key.id.as_str()));
    let turns = [0, 1, 2].map(|n| ["stripe", "github"].map(|name| (name, format!("evt_{n}"))));
    let turns = turns.iter().flatten().map(|(name, id)| (*name, &**id));
    assert_eq!(keys.collect::<Vec<_>>(), turns.collect::<Vec<_>>());
}

async fn hundreds_of_sources_are_fetched_from_at_once(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "s0", 1).await;
    append(&*ledger, "s599", 2).await;
    let lanes = (0..600).map(|n| lane(&format!("s{n}"), n)).collect();
    let jobs = fetch(&*ledger, lanes, 100).await;
    assert_eq!(by_source(&jobs), [("s0", 1), ("s599", 2)].into());
}
