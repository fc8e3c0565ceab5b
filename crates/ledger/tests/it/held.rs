//! Events that wait by deadline: for a consumer that is away, or because they came too early.

use std::time::Duration;

use hookgate_ledger::{Effects, Job, Ledger, Outcome, Queue, Settled, State};

use crate::change::reason;
use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, event, fetch, fetch_one, key, source};

on_both!(
    a_postponed_run_is_queued_again_and_costs_no_try,
    an_event_parked_for_too_long_dies,
    an_event_whose_target_is_away_for_too_long_dies_by_that_reason,
    an_event_is_held_since_it_was_due_if_the_target_was_away_by_then,
    a_new_event_of_a_target_long_away_has_its_own_time,
    a_run_that_says_something_ends_the_holding,
    an_event_that_is_given_back_is_not_held,
    a_target_is_down_since_the_first_that_saw_it_and_up_when_anybody_did,
    what_nobody_could_try_for_too_long_is_buried_unless_a_person_paused_it,
    the_time_of_a_pause_is_not_held_against_an_event,
);

const HOUR: Duration = Duration::from_secs(3600);

fn away(away_for: Duration) -> Outcome {
    Outcome::Postponed {
        after: Duration::ZERO,
        error: "the target cannot be reached".into(),
        away_for,
        target: "crm".into(),
    }
}

fn early() -> Outcome {
    Outcome::Parked {
        after: Duration::ZERO,
        error: "its payment is not here".into(),
    }
}

async fn leased(ledger: &dyn Ledger) -> Job {
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    fetch_one(ledger, LONG).await
}

async fn settle(ledger: &dyn Ledger, job: &Job, outcome: Outcome) -> Settled {
    ledger
        .settle(&job.lease, outcome, Effects::default())
        .await
        .unwrap()
}

async fn last_error(ledger: &dyn Ledger) -> (State, String) {
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    (entry.state, entry.last_error.unwrap_or_default())
}

/// Lets `column` of the one row, or of the one target, lie so many hours back.
async fn age(db: &Database, table: &str, column: &str, hours: u32) {
    let then = match db {
        Database::Postgres { .. } => format!("now() - interval '{hours} h'"),
        Database::Sqlite { .. } => format!("(SELECT now FROM clock) - {hours} * 3600000"),
    };
    db.run(&format!("UPDATE {table} SET {column} = {then}")).await;
}

/// Hours from now to the one row's deadline.
async fn hours_left(db: &Database) -> String {
    let select = match db {
        Database::Postgres { .. } => "round(extract(epoch FROM deadline_at - now()) / 3600)",
        Database::Sqlite { .. } => "(deadline_at - (SELECT now FROM clock) + 1800000) / 3600000",
    };
    db.value(&format!("SELECT {select} FROM webhook_events")).await
}

async fn a_postponed_run_is_queued_again_and_costs_no_try(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&*ledger).await;
    assert_eq!(
        settle(&*ledger, &job, away(Duration::ZERO)).await,
        Settled::Committed
    );
    assert_eq!(last_error(&*ledger).await.0, State::Queued);
    assert_eq!(hours_left(&db).await, "72");
    let again = fetch_one(&*ledger, LONG).await;
    assert_eq!((again.lease.attempt, again.tries), (2, 1));
}

async fn an_event_parked_for_too_long_dies(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&*ledger).await;
    assert_eq!(settle(&*ledger, &job, early()).await, Settled::Committed);
    assert_eq!(hours_left(&db).await, "72");
    age(&db, "webhook_events", "deadline_at", 0).await;
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(settle(&*ledger, &job, early()).await, Settled::Buried);
    let (state, error) = last_error(&*ledger).await;
    assert_eq!(
        (state, error.as_str()),
        (State::Dead, "parked for 72 h: its payment is not here")
    );
}

async fn an_event_whose_target_is_away_for_too_long_dies_by_that_reason(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&*ledger).await;
    assert_eq!(settle(&*ledger, &job, away(HOUR)).await, Settled::Committed);
    age(&db, "webhook_events", "deadline_at", 0).await;
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(settle(&*ledger, &job, away(HOUR)).await, Settled::Buried);
    // As when the answer of the first was lost.
    let repeated = settle(&*ledger, &job, away(HOUR)).await;
    assert_eq!(repeated, Settled::Repeated { buried: true });
    let (state, error) = last_error(&*ledger).await;
    assert_eq!(state, State::Dead);
    assert_eq!(error, "target_down: held for 72 h: the target cannot be reached");
    let outcomes = "SELECT outcome FROM webhook_attempts WHERE attempt =";
    assert_eq!(db.value(&format!("{outcomes} 1")).await, "retry");
    assert_eq!(db.value(&format!("{outcomes} 2")).await, "dead");
}

async fn an_event_is_held_since_it_was_due_if_the_target_was_away_by_then(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    age(&db, "webhook_events", "next_attempt_at", 71).await;
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(settle(&*ledger, &job, away(500 * HOUR)).await, Settled::Committed);
    assert_eq!(hours_left(&db).await, "1");
}

async fn a_new_event_of_a_target_long_away_has_its_own_time(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&*ledger).await;
    assert_eq!(settle(&*ledger, &job, away(500 * HOUR)).await, Settled::Committed);
    assert_eq!(hours_left(&db).await, "72");
}

async fn an_event_that_is_given_back_is_not_held(db: Database) {
    let ledger = db.ledger().await;
    let given_back = || Outcome::GivenBack {
        after: Duration::ZERO,
        reason: "the worker stopped".into(),
    };
    let job = leased(&*ledger).await;
    assert_eq!(settle(&*ledger, &job, given_back()).await, Settled::Committed);
    let repeated = settle(&*ledger, &job, given_back()).await;
    assert_eq!(repeated, Settled::Repeated { buried: false });
    let (state, reason) = last_error(&*ledger).await;
    assert_eq!((state, reason.as_str()), (State::Queued, "the worker stopped"));
    assert_eq!(hours_left(&db).await, "", "no deadline begins");
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!((job.lease.attempt, job.tries), (2, 1));
    assert_eq!(settle(&*ledger, &job, away(HOUR)).await, Settled::Committed);
    age(&db, "webhook_events", "deadline_at", 1).await;
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(settle(&*ledger, &job, given_back()).await, Settled::Committed);
    assert_eq!(
        last_error(&*ledger).await.0,
        State::Queued,
        "it does not die of it"
    );
    let held = "SELECT count(*) FROM webhook_events WHERE deadline_at IS NOT NULL";
    assert_eq!(db.value(held).await, "1", "whatever held it holds it still");
}

async fn a_run_that_says_something_ends_the_holding(db: Database) {
    let ledger = db.ledger().await;
    let job = leased(&*ledger).await;
    assert_eq!(
        settle(&*ledger, &job, away(Duration::ZERO)).await,
        Settled::Committed
    );
    let job = fetch_one(&*ledger, LONG).await;
    let failed = Outcome::Retry {
        after: Duration::ZERO,
        error: "the target answered 500".into(),
    };
    assert_eq!(settle(&*ledger, &job, failed).await, Settled::Committed);
    assert_eq!(hours_left(&db).await, "", "the next outage begins anew");
}

async fn a_target_is_down_since_the_first_that_saw_it_and_up_when_anybody_did(db: Database) {
    let (one, two) = (db.ledger().await, db.replica());
    assert!(one.target_down("crm").await.unwrap() < HOUR);
    age(&db, "targets", "down_since", 5).await;
    let known = two.target_down("crm").await.unwrap();
    assert!(known >= 5 * HOUR && known < 6 * HOUR, "{known:?}");
    two.target_up("crm").await.unwrap();
    two.target_up("unknown").await.unwrap();
    assert!(one.target_down("crm").await.unwrap() < HOUR);
}

async fn what_nobody_could_try_for_too_long_is_buried_unless_a_person_paused_it(db: Database) {
    let ledger = db.ledger().await;
    let mut other = event("evt_1");
    other.key.source = source("github");
    for event in [event("evt_1"), event("evt_2"), other] {
        let _ = ledger.append(event, Queue::ForWorker).await.unwrap();
    }
    age(&db, "webhook_events", "next_attempt_at", 73).await;
    db.run("UPDATE webhook_events SET attempts = 3 WHERE event_id = 'evt_2'")
        .await;
    let stripe = [source("stripe")];
    let bury = async || ledger.bury_held("crm", &stripe).await.unwrap();

    assert_eq!(bury().await, 0, "nobody has seen it away");
    ledger.target_down("crm").await.unwrap();
    assert_eq!(bury().await, 0, "it was there when they were due");
    age(&db, "targets", "down_since", 73).await;
    db.run("UPDATE targets SET paused_at = down_since, paused_by = 'maria', paused_why = 'moving'")
        .await;
    assert_eq!(ledger.paused_targets().await.unwrap(), ["crm"]);
    assert_eq!(bury().await, 0, "a person will lift the pause");
    db.run("UPDATE targets SET paused_at = NULL, paused_by = NULL, paused_why = NULL")
        .await;
    assert_eq!(bury().await, 2);
    let (state, error) = last_error(&*ledger).await;
    assert_eq!(
        (state, error.as_str()),
        (State::Dead, "target_down: held for 72 h: it was not called")
    );
    assert!(fetch(&*ledger, LONG).await.is_empty());
    assert_eq!(
        db.value("SELECT state FROM webhook_events WHERE source = 'github'")
            .await,
        "queued"
    );
}

async fn the_time_of_a_pause_is_not_held_against_an_event(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let job = leased(&*ledger).await;
    assert_eq!(
        settle(&*ledger, &job, away(Duration::ZERO)).await,
        Settled::Committed
    );
    let _ = ledger.append(event("evt_2"), Queue::ForWorker).await.unwrap();
    ledger.target_down("crm").await.unwrap();
    assert!(desk.pause("crm", &reason("they migrate")).await.unwrap());
    // Eighty hours pass.
    for column in ["next_attempt_at", "deadline_at"] {
        age(&db, "webhook_events", column, 80).await;
    }
    for column in ["down_since", "paused_at"] {
        age(&db, "targets", column, 80).await;
    }
    assert!(desk.resume("crm", &reason("they are done")).await.unwrap());
    assert_eq!(ledger.bury_held("crm", &[source("stripe")]).await.unwrap(), 0);
    for job in fetch(&*ledger, LONG).await {
        assert_eq!(settle(&*ledger, &job, away(80 * HOUR)).await, Settled::Committed);
    }
    // From the end of the pause on it counts.
    age(&db, "targets", "resumed_at", 73).await;
    age(&db, "webhook_events", "next_attempt_at", 73).await;
    age(&db, "webhook_events", "deadline_at", 1).await;
    for job in fetch(&*ledger, LONG).await {
        assert_eq!(settle(&*ledger, &job, away(80 * HOUR)).await, Settled::Buried);
    }
}
