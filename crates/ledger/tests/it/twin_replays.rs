//! A twin that a person wants to run after all: the same compare-and-set as for a finished event. Of many, twins are
//! meant only if the filter names their state.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_ledger::{
    Appended, Bulk, Change, Changed, Effects, Filter, Ledger, Operations, Outcome, Settled, State,
};
use tokio::sync::Barrier;

use crate::change::reason;
use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, copy_in, fetch, fetch_one, key};
use crate::twins::{TWIN, append, says, state, twin_of};

on_both!(
    a_replayed_twin_is_the_next_generation_and_keeps_its_link,
    of_replays_of_a_twin_at_once_one_wins,
    a_twin_can_be_replayed_and_nothing_else,
    a_pruned_twin_cannot_run,
    a_replayed_twin_takes_no_key_and_its_copies_stay_copies,
    many_replays_mean_twins_only_if_they_are_named,
);

/// An original that is done, and so many twins of it, `evt_2` the first.
async fn twins(ledger: &dyn Ledger, count: usize) {
    assert_eq!(append(ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    settle(ledger).await;
    for n in 2..2 + count {
        assert_eq!(append(ledger, says(&format!("evt_{n}"), 1, 1)).await, TWIN);
    }
}

/// Runs the one event that is due.
async fn settle(ledger: &dyn Ledger) {
    let job = fetch_one(ledger, LONG).await;
    let settled = ledger.settle(&job.lease, Outcome::Done, Effects::default());
    assert_eq!(settled.await.unwrap(), Settled::Committed);
}

async fn replay(desk: &dyn Operations, id: &str, generation: u32) -> Changed {
    let why = reason("it was an event of its own");
    desk.change(&key(id), Change::Replay, Some(generation), &why)
        .await
        .unwrap()
}

async fn a_replayed_twin_is_the_next_generation_and_keeps_its_link(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    twins(&*ledger, 1).await;
    for generation in 1..=2 {
        assert_eq!(
            replay(&*desk, "evt_2", generation - 1).await,
            Changed::Done { generation }
        );
        let job = fetch_one(&*ledger, LONG).await;
        assert_eq!(job.lease.key, key("evt_2"));
        assert_eq!(
            (job.lease.attempt, job.tries, job.lease.generation),
            (1, 1, generation)
        );
        let settled = ledger.settle(&job.lease, Outcome::Done, Effects::default());
        assert_eq!(settled.await.unwrap(), Settled::Committed);
        assert_eq!(twin_of(&db, "evt_2").await, "evt_1");
    }
    let shown = desk.event(&key("evt_2")).await.unwrap().unwrap();
    let audit: Vec<_> = shown
        .audit
        .iter()
        .map(|row| (row.action.as_str(), row.generation))
        .collect();
    assert_eq!(audit, [("replay", Some(1)), ("replay", Some(2))]);
    assert_eq!(shown.summary.state, State::Done);
}

async fn of_replays_of_a_twin_at_once_one_wins(db: Database) {
    let ledger = db.ledger().await;
    twins(&*ledger, 10).await;
    let mut desks: Vec<Arc<dyn Operations>> = Vec::new();
    for _ in 0..4 {
        desks.push(db.desk().await);
    }
    for n in 2..12 {
        let (id, barrier) = (format!("evt_{n}"), Barrier::new(desks.len()));
        let race = desks.iter().map(async |desk| {
            barrier.wait().await;
            replay(&**desk, &id, 0).await
        });
        let changed = join_all(race).await;
        let won = changed
            .iter()
            .filter(|changed| **changed == Changed::Done { generation: 1 });
        assert_eq!(won.count(), 1, "{changed:?}");
        let late = changed
            .iter()
            .filter(|changed| **changed == Changed::OtherGeneration(1));
        assert_eq!(late.count(), 3, "{changed:?}");
    }
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "10");
    assert_eq!(fetch(&*ledger, LONG).await.len(), 10);
}

async fn a_twin_can_be_replayed_and_nothing_else(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    twins(&*ledger, 1).await;
    for change in [Change::Redrive, Change::Discard] {
        let refused = desk.change(&key("evt_2"), change, None, &reason("x")).await;
        assert_eq!(refused.unwrap(), Changed::WrongState(State::Twin));
    }
    assert_eq!(replay(&*desk, "evt_2", 1).await, Changed::OtherGeneration(0));
    assert_eq!(state(&*ledger, "evt_2").await, State::Twin);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "0");
}

async fn a_pruned_twin_cannot_run(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    twins(&*ledger, 2).await;
    db.run("UPDATE webhook_events SET pruned_at = received_at WHERE event_id = 'evt_2'")
        .await;
    assert_eq!(replay(&*desk, "evt_2", 0).await, Changed::Pruned);
    assert_eq!(state(&*ledger, "evt_2").await, State::Twin);
    assert_eq!(many(&*desk, &[State::Twin], true).await, 1);
    assert_eq!(many(&*desk, &[State::Twin], false).await, 1);
    assert_eq!(state(&*ledger, "evt_3").await, State::Queued);
}

async fn a_replayed_twin_takes_no_key_and_its_copies_stay_copies(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    twins(&*ledger, 1).await;
    assert_eq!(replay(&*desk, "evt_2", 0).await, Changed::Done { generation: 1 });
    assert_eq!(
        append(&*ledger, says("evt_2", 1, 1)).await,
        copy_in(State::Queued)
    );
    assert_eq!(append(&*ledger, says("evt_3", 1, 2)).await, TWIN);
    assert_eq!(twin_of(&db, "evt_3").await, "evt_1");
    settle(&*ledger).await;
    assert_eq!(append(&*ledger, says("evt_2", 1, 1)).await, copy_in(State::Done));
    assert!(fetch(&*ledger, LONG).await.is_empty());
}

/// Replays all in these states, in steps of two, and counts.
async fn many(desk: &dyn Operations, states: &[State], dry_run: bool) -> u64 {
    let filter = Filter {
        states: states.to_vec(),
        ..Filter::default()
    };
    let mut bulk = Bulk {
        change: Change::Replay,
        filter,
        after: None,
        limit: 2,
        dry_run,
        first_in: Duration::ZERO,
        spacing: Duration::ZERO,
    };
    let mut events = 0;
    loop {
        let step = desk
            .change_many(&bulk, &reason("the rule was wrong"))
            .await
            .unwrap();
        events += step.events;
        bulk.after = step.next;
        if bulk.after.is_none() {
            return events;
        }
    }
}

async fn many_replays_mean_twins_only_if_they_are_named(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    twins(&*ledger, 3).await;
    for (states, count) in [
        (&[][..], 1),
        (&[State::Done], 1),
        (&[State::Twin], 3),
        (&[State::Twin, State::Done], 4),
        (&[State::Twin, State::Dead], 3),
        (&[State::Dead], 0),
    ] {
        assert_eq!(many(&*desk, states, true).await, count, "{states:?}");
    }
    assert_eq!(many(&*desk, &[State::Dead], false).await, 0);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "0");
    assert_eq!(many(&*desk, &[], false).await, 1);
    assert_eq!(state(&*ledger, "evt_2").await, State::Twin);
    assert_eq!(many(&*desk, &[State::Twin], false).await, 3);
    assert_eq!(fetch(&*ledger, LONG).await.len(), 4);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "4");
}
