//! Changes to many events: bounded steps, oldest first, at a rate, and counted before they are made.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_ledger::{Bulk, Change, Filter, Ledger, LedgerError, Operations, Queue, State, UnixMicros};
use tokio::sync::Barrier;

use crate::change::reason;
use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, event, fetch, key, source};

on_both!(
    a_bulk_change_goes_from_the_oldest_to_the_newest,
    a_dry_run_counts_exactly_and_changes_nothing,
    a_step_is_bounded_whatever_is_asked,
    a_bulk_change_gives_events_at_a_rate,
    a_bulk_change_means_only_what_the_filter_says,
    a_bulk_change_leaves_out_what_was_pruned,
    bulk_changes_at_once_change_each_event_once,
    every_event_of_a_bulk_change_is_written_down,
    a_step_that_cannot_be_written_down_changes_nothing,
);

const BASE: UnixMicros = UnixMicros(1_767_225_610_000_000);

/// So many events in that state, a second apart, except that each fifth came with the one before it.
async fn events(db: &Database, ledger: &dyn Ledger, state: State, count: i64) {
    for n in 0..count {
        let id = format!("evt_{n:04}");
        let _ = ledger
            .append(event(&id), Queue::Finished("no_consumer"))
            .await
            .unwrap();
    }
    let times = (0..count).map(|n| {
        let received_at = UnixMicros(BASE.0 + (n - i64::from(n % 5 == 4)) * 1_000_000);
        format!(
            "UPDATE webhook_events SET state = '{state}', received_at = {} WHERE event_id = 'evt_{n:04}';\n",
            db.moment(received_at)
        )
    });
    db.run(&times.collect::<String>()).await;
}

fn bulk(change: Change) -> Bulk {
    Bulk {
        change,
        filter: Filter::default(),
        after: None,
        limit: 100,
        dry_run: false,
        first_in: Duration::ZERO,
        spacing: Duration::ZERO,
    }
}

/// Repeats steps to the end, and counts.
async fn all_steps(desk: &dyn Operations, mut bulk: Bulk) -> Result<u64, LedgerError> {
    let mut events = 0;
    loop {
        let step = desk.change_many(&bulk, &reason("the target is mended")).await?;
        events += step.events;
        bulk.after = step.next;
        if bulk.after.is_none() {
            return Ok(events);
        }
    }
}

async fn states(db: &Database, state: State) -> String {
    db.value(&format!(
        "SELECT count(*) FROM webhook_events WHERE state = '{state}'"
    ))
    .await
}

async fn a_bulk_change_goes_from_the_oldest_to_the_newest(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Dead, 7).await;
    let step = Bulk {
        limit: 3,
        ..bulk(Change::Redrive)
    };
    let first = desk.change_many(&step, &reason("mended")).await.unwrap();
    assert_eq!(first.events, 3);
    let mut ids: Vec<_> = fetch(&*ledger, LONG)
        .await
        .into_iter()
        .map(|job| job.lease.key)
        .collect();
    ids.sort();
    assert_eq!(ids, [key("evt_0000"), key("evt_0001"), key("evt_0002")]);
    let rest = Bulk {
        after: first.next,
        ..step
    };
    assert_eq!(all_steps(&*desk, rest).await.unwrap(), 4);
    assert_eq!(fetch(&*ledger, LONG).await.len(), 4);
}

async fn a_dry_run_counts_exactly_and_changes_nothing(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Dead, 23).await;
    let filter = Filter {
        since: Some(UnixMicros(BASE.0 + 4_000_000)),
        ..Filter::default()
    };
    for limit in [1, 4, 23, 100] {
        let dry = Bulk {
            dry_run: true,
            limit,
            filter: filter.clone(),
            ..bulk(Change::Redrive)
        };
        assert_eq!(all_steps(&*desk, dry).await.unwrap(), 18, "steps of {limit}");
    }
    assert_eq!(states(&db, State::Dead).await, "23");
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "0");
    let real = Bulk {
        limit: 4,
        filter,
        ..bulk(Change::Redrive)
    };
    assert_eq!(all_steps(&*desk, real).await.unwrap(), 18);
    assert_eq!(states(&db, State::Queued).await, "18");
}

async fn a_step_is_bounded_whatever_is_asked(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Done, 501).await;
    let greedy = Bulk {
        limit: u32::MAX,
        ..bulk(Change::Replay)
    };
    let step = desk.change_many(&greedy, &reason("all")).await.unwrap();
    assert_eq!(step.events, 500);
    let rest = Bulk {
        after: step.next,
        ..greedy
    };
    let step = desk.change_many(&rest, &reason("all")).await.unwrap();
    assert_eq!((step.events, step.next), (1, None));
    let none = Bulk {
        limit: 0,
        ..bulk(Change::Replay)
    };
    assert_eq!(desk.change_many(&none, &reason("all")).await.unwrap().events, 0);
}

async fn a_bulk_change_gives_events_at_a_rate(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Dead, 5).await;
    let paced = Bulk {
        first_in: Duration::from_secs(3600),
        spacing: Duration::from_secs(20),
        ..bulk(Change::Redrive)
    };
    assert_eq!(all_steps(&*desk, paced).await.unwrap(), 5);
    assert!(fetch(&*ledger, LONG).await.is_empty(), "none is due yet");
    let mut shown = desk.list(&Filter::default(), None, 10).await.unwrap().events;
    shown.reverse();
    let due: Vec<i64> = shown
        .iter()
        .map(|event| event.next_attempt_at.unwrap().0)
        .collect();
    let detail = desk.event(&key("evt_0000")).await.unwrap().unwrap();
    assert_eq!(due[0] - detail.audit[0].at.0, 3_600_000_000);
    assert!(
        due.windows(2).all(|pair| pair[1] - pair[0] == 20_000_000),
        "{due:?}"
    );
}

async fn a_bulk_change_means_only_what_the_filter_says(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Dead, 10).await;
    db.run("UPDATE webhook_events SET last_error = '50% off' WHERE event_id IN ('evt_0003', 'evt_0004')")
        .await;
    db.run("UPDATE webhook_events SET state = 'done' WHERE event_id = 'evt_0004'")
        .await;
    let by_error = Filter {
        error: Some("0%".into()),
        ..Filter::default()
    };
    let of_another_state = Bulk {
        filter: Filter {
            states: vec![State::Done],
            ..by_error.clone()
        },
        ..bulk(Change::Discard)
    };
    assert_eq!(
        all_steps(&*desk, of_another_state).await.unwrap(),
        0,
        "what is done cannot be discarded"
    );
    let only = Bulk {
        filter: by_error,
        ..bulk(Change::Discard)
    };
    assert_eq!(all_steps(&*desk, only).await.unwrap(), 1);
    assert_eq!(
        db.value("SELECT event_id FROM webhook_events WHERE state = 'discarded'")
            .await,
        "evt_0003"
    );
    let elsewhere = Filter {
        source: Some(source("github")),
        ..Filter::default()
    };
    let none = Bulk {
        filter: elsewhere,
        ..bulk(Change::Discard)
    };
    assert_eq!(all_steps(&*desk, none).await.unwrap(), 0);
}

async fn a_bulk_change_leaves_out_what_was_pruned(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Done, 6).await;
    db.run("UPDATE webhook_events SET pruned_at = received_at WHERE event_id < 'evt_0002'")
        .await;
    let dry = Bulk {
        dry_run: true,
        limit: 2,
        ..bulk(Change::Replay)
    };
    assert_eq!(all_steps(&*desk, dry).await.unwrap(), 4);
    assert_eq!(
        all_steps(
            &*desk,
            Bulk {
                limit: 2,
                ..bulk(Change::Replay)
            }
        )
        .await
        .unwrap(),
        4
    );
    assert_eq!(states(&db, State::Done).await, "2");
}

async fn bulk_changes_at_once_change_each_event_once(db: Database) {
    let ledger = db.ledger().await;
    events(&db, &*ledger, State::Dead, 60).await;
    let mut desks: Vec<Arc<dyn Operations>> = Vec::new();
    for _ in 0..4 {
        desks.push(db.desk().await);
    }
    let barrier = Barrier::new(desks.len());
    let race = desks.iter().map(|desk| {
        let barrier = &barrier;
        async move {
            barrier.wait().await;
            all_steps(
                &**desk,
                Bulk {
                    limit: 7,
                    ..bulk(Change::Redrive)
                },
            )
            .await
            .unwrap()
        }
    });
    let counts = join_all(race).await;
    assert_eq!(counts.iter().sum::<u64>(), 60, "{counts:?}");
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "60");
    assert_eq!(fetch(&*ledger, LONG).await.len(), 60);
}

async fn every_event_of_a_bulk_change_is_written_down(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Done, 3).await;
    assert_eq!(all_steps(&*desk, bulk(Change::Replay)).await.unwrap(), 3);
    for n in 0..3 {
        let audit = desk
            .event(&key(&format!("evt_{n:04}")))
            .await
            .unwrap()
            .unwrap()
            .audit;
        let [row] = &audit[..] else {
            panic!("one row: {audit:?}")
        };
        assert_eq!((row.action.as_str(), row.generation), ("replay", Some(1)));
        assert_eq!(row.detail.as_deref(), Some("the target is mended"));
    }
    assert_eq!(
        db.value("SELECT count(DISTINCT request) FROM audit_log").await,
        "1"
    );
}

async fn a_step_that_cannot_be_written_down_changes_nothing(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    events(&db, &*ledger, State::Dead, 2).await;
    let _ = ledger
        .append(event("poison"), Queue::Finished("no_consumer"))
        .await
        .unwrap();
    db.run("UPDATE webhook_events SET state = 'dead'").await;
    db.poison("audit_log", "event_id").await;
    assert!(all_steps(&*desk, bulk(Change::Redrive)).await.is_err());
    assert_eq!(states(&db, State::Dead).await, "3");
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "0");
}
