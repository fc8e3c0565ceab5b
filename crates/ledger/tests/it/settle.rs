//! A run's end: state, attempt and effects together or not at all.

use std::time::Duration;

use bytes::Bytes;
use hookgate_ledger::{Effects, Job, Ledger, LedgerError, OutboxRow, Outcome, Queue, Settled, State};

use crate::database::{Database, until};
use crate::on_both;
use crate::sample::{LONG, SHORT, event, fetch, fetch_one, key};

on_both!(
    state_attempt_and_effects_commit_together,
    an_effect_written_twice_is_one_row,
    a_lost_lease_leaves_no_effects,
    a_failing_effect_takes_the_settlement_back,
    a_settlement_repeated_is_committed_once,
    another_outcome_after_the_settlement_is_lost,
    a_retry_waits_its_time,
    a_retry_without_delay_is_due_at_once,
    an_ignored_event_is_done_with_its_reason,
    a_parked_event_gives_its_try_back,
);

async fn leased(db: &Database, ledger: &dyn Ledger) -> Job {
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    assert_eq!(db.value("SELECT state FROM webhook_events").await, "queued");
    fetch_one(ledger, LONG).await
}

fn effects(keys: &[&str]) -> Effects {
    let row = |key: &&str| OutboxRow {
        target: "mailer".into(),
        kind: "receipt".into(),
        effect_key: (*key).into(),
        payload: Bytes::from_static(b"\0\xff payload"),
    };
    Effects {
        outbox: keys.iter().map(row).collect(),
    }
}

async fn state(ledger: &dyn Ledger) -> State {
    ledger.entry(&key("evt_1")).await.unwrap().unwrap().state
}

async fn state_attempt_and_effects_commit_together(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    let settled = ledger
        .settle(&job.lease, Outcome::Done, effects(&["b", "a"]))
        .await
        .unwrap();
    assert_eq!(settled, Settled::Committed);
    assert_eq!(state(&*ledger).await, State::Done);
    assert_eq!(
        db.value(
            "SELECT count(*) FROM webhook_attempts
             WHERE event_id = 'evt_1' AND generation = 0 AND attempt = 1 AND outcome = 'done'
               AND started_at <= finished_at"
        )
        .await,
        "1"
    );
    let due = "SELECT count(*) FROM outbox WHERE state = 'queued' AND event_id = 'evt_1'
               AND length(payload) = 10 AND next_attempt_at IS NOT NULL";
    assert_eq!(db.value(due).await, "2");
}

async fn an_effect_written_twice_is_one_row(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    let again = Outcome::Retry {
        after: Duration::ZERO,
        error: "half done".into(),
    };
    let settled = ledger
        .settle(&job.lease, again, effects(&["a", "a"]))
        .await
        .unwrap();
    assert_eq!(settled, Settled::Committed);
    let job = fetch_one(&*ledger, LONG).await;
    let settled = ledger
        .settle(&job.lease, Outcome::Done, effects(&["a", "b"]))
        .await
        .unwrap();
    assert_eq!(settled, Settled::Committed);
    assert_eq!(db.value("SELECT count(*) FROM outbox").await, "2");
}

async fn a_lost_lease_leaves_no_effects(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    let late = fetch_one(&*ledger, SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 1);
    let present = fetch_one(&*ledger, LONG).await;

    let lost = ledger
        .settle(&late.lease, Outcome::Done, effects(&["a"]))
        .await
        .unwrap();
    assert_eq!(lost, Settled::Lost);
    assert_eq!(state(&*ledger).await, State::Running);
    assert_eq!(db.value("SELECT count(*) FROM outbox").await, "0");
    assert_eq!(
        ledger.heartbeat(&present.lease, LONG).await.unwrap(),
        Settled::Committed
    );
}

async fn a_failing_effect_takes_the_settlement_back(db: Database) {
    let ledger = db.ledger().await;
    db.poison("outbox", "effect_key").await;
    let job = leased(&db, &*ledger).await;
    let refused = ledger
        .settle(&job.lease, Outcome::Done, effects(&["a", "poison"]))
        .await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    assert_eq!(state(&*ledger).await, State::Running);
    assert_eq!(db.value("SELECT count(*) FROM outbox").await, "0");
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "0");
    let settled = ledger
        .settle(&job.lease, Outcome::Done, effects(&["a"]))
        .await
        .unwrap();
    assert_eq!(settled, Settled::Committed);
}

async fn a_settlement_repeated_is_committed_once(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    for said in [Settled::Committed, Settled::Repeated { buried: false }] {
        let settled = ledger
            .settle(&job.lease, Outcome::Done, effects(&["a"]))
            .await
            .unwrap();
        assert_eq!(settled, said);
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "1");
    assert_eq!(db.value("SELECT count(*) FROM outbox").await, "1");
}

async fn another_outcome_after_the_settlement_is_lost(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    assert_eq!(ledger.finish(&job.lease).await.unwrap(), Settled::Committed);
    let dead = Outcome::Dead {
        error: "changed my mind".into(),
    };
    assert_eq!(
        ledger.settle(&job.lease, dead, effects(&["a"])).await.unwrap(),
        Settled::Lost
    );
    assert_eq!(state(&*ledger).await, State::Done);
    assert_eq!(db.value("SELECT count(*) FROM outbox").await, "0");
}

async fn a_retry_waits_its_time(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    let later = Outcome::Retry {
        after: Duration::from_secs(60),
        error: "answered 500".into(),
    };
    assert_eq!(
        ledger
            .settle(&job.lease, later, Effects::default())
            .await
            .unwrap(),
        Settled::Committed
    );
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.last_error.as_deref()),
        (State::Queued, Some("answered 500"))
    );
    assert!(fetch(&*ledger, LONG).await.is_empty());
    // By the database's clock, counted from the end of the attempt.
    let delay = match db {
        Database::Postgres { .. } => "extract(epoch FROM next_attempt_at - finished_at)::int",
        Database::Sqlite { .. } => "(next_attempt_at - finished_at + 500) / 1000",
    };
    let select = format!("SELECT {delay} FROM webhook_events JOIN webhook_attempts USING (source, event_id)");
    assert_eq!(db.value(&select).await, "60");
}

async fn a_retry_without_delay_is_due_at_once(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    let now = Outcome::Retry {
        after: Duration::ZERO,
        error: "again".into(),
    };
    assert_eq!(
        ledger.settle(&job.lease, now, Effects::default()).await.unwrap(),
        Settled::Committed
    );
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!((job.lease.attempt, job.tries), (2, 2));
}

async fn an_ignored_event_is_done_with_its_reason(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&db, &*ledger).await;
    let ignored = Outcome::Ignored("unknown_type".into());
    assert_eq!(
        ledger
            .settle(&job.lease, ignored, Effects::default())
            .await
            .unwrap(),
        Settled::Committed
    );
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.last_error.as_deref()),
        (State::Done, Some("unknown_type"))
    );
    assert_eq!(db.value("SELECT outcome FROM webhook_attempts").await, "ignored");
}

async fn a_parked_event_gives_its_try_back(db: Database) {
    let ledger = db.ledger().await;
    let mut job = leased(&db, &*ledger).await;
    for attempt in 2..5 {
        let parked = Outcome::Parked {
            after: Duration::ZERO,
            error: "its payment is not here".into(),
        };
        assert_eq!(
            ledger
                .settle(&job.lease, parked, Effects::default())
                .await
                .unwrap(),
            Settled::Committed
        );
        assert_eq!(state(&*ledger).await, State::Parked);
        job = fetch_one(&*ledger, LONG).await;
        assert_eq!((job.lease.attempt, job.tries), (attempt, 1));
    }
}
