//! Replay, redrive and discard of one event: a compare-and-set, written down, done once however many ask.

use std::sync::Arc;

use futures_util::future::join_all;
use hookgate_ledger::{
    Change, Changed, Effects, Ledger, Operations, Outcome, Queue, Reason, Settled, State, StoredBody,
};
use hookgate_webhook::EventKey;
use tokio::sync::Barrier;

use crate::database::{Database, until};
use crate::on_both;
use crate::sample::{LONG, SHORT, event, fetch, fetch_one, key};

on_both!(
    a_redriven_event_has_all_its_tries_and_its_attempts_go_on,
    a_second_death_shows_its_own_reason,
    a_replayed_event_is_the_next_generation,
    a_discarded_event_rests,
    a_change_from_another_state_is_refused,
    a_change_to_nothing_finds_nothing,
    a_change_to_another_generation_is_refused,
    of_redrives_at_once_one_wins,
    of_replays_at_once_one_wins,
    redrive_and_discard_at_once_do_one_of_both,
    a_pruned_event_cannot_run_again,
    a_forwards_event_becomes_the_workers,
    a_redriven_event_whose_worker_dies_is_rescued,
    who_and_why_are_written_down_with_the_change,
    a_change_that_cannot_be_written_down_is_not_made,
    an_event_shows_its_runs_and_its_headers,
    a_body_comes_back_byte_for_byte,
);

pub(crate) fn reason(why: &str) -> Reason {
    Reason {
        actor: "cli:maria".into(),
        why: why.into(),
    }
}

async fn settle(ledger: &dyn Ledger, outcome: Outcome) {
    let job = fetch_one(ledger, LONG).await;
    let settled = ledger
        .settle(&job.lease, outcome, Effects::default())
        .await
        .unwrap();
    assert_eq!(settled, Settled::Committed);
}

fn dead(error: &str) -> Outcome {
    Outcome::Dead { error: error.into() }
}

/// An event in that state after one run.
async fn ended(ledger: &dyn Ledger, id: &str, outcome: Outcome) -> EventKey {
    let _ = ledger.append(event(id), Queue::ForWorker).await.unwrap();
    settle(ledger, outcome).await;
    key(id)
}

async fn change(desk: &dyn Operations, key: &EventKey, change: Change) -> Changed {
    desk.change(key, change, None, &reason("the target is mended"))
        .await
        .unwrap()
}

async fn a_redriven_event_has_all_its_tries_and_its_attempts_go_on(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    db.run("UPDATE webhook_events SET deadline_at = received_at")
        .await;
    assert_eq!(
        change(&*desk, &key, Change::Redrive).await,
        Changed::Done { generation: 0 }
    );
    let shown = desk.event(&key).await.unwrap().unwrap().summary;
    assert_eq!((shown.state, shown.attempts, shown.tries), (State::Queued, 1, 0));
    assert_eq!(shown.processed_at, None);
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_events WHERE deadline_at IS NULL")
            .await,
        "1"
    );
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!((job.lease.attempt, job.tries, job.lease.generation), (2, 1, 0));
}

async fn a_second_death_shows_its_own_reason(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    assert_eq!(
        change(&*desk, &key, Change::Redrive).await,
        Changed::Done { generation: 0 }
    );
    settle(&*ledger, dead("answered 404")).await;
    let shown = desk.event(&key).await.unwrap().unwrap();
    assert_eq!(shown.summary.state, State::Dead);
    assert_eq!(shown.summary.last_error.as_deref(), Some("answered 404"));
    let errors: Vec<_> = shown.attempts.iter().map(|run| run.error.as_deref()).collect();
    assert_eq!(errors, [Some("answered 410"), Some("answered 404")]);
}

async fn a_replayed_event_is_the_next_generation(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", Outcome::Done).await;
    for generation in 1..=2 {
        assert_eq!(
            change(&*desk, &key, Change::Replay).await,
            Changed::Done { generation }
        );
        let job = fetch_one(&*ledger, LONG).await;
        assert_eq!(
            (job.lease.attempt, job.tries, job.lease.generation),
            (1, 1, generation)
        );
        let settled = ledger
            .settle(&job.lease, Outcome::Done, Effects::default())
            .await
            .unwrap();
        assert_eq!(settled, Settled::Committed);
    }
    let runs = desk.event(&key).await.unwrap().unwrap().attempts;
    let runs: Vec<_> = runs.iter().map(|run| (run.generation, run.attempt)).collect();
    assert_eq!(runs, [(0, 1), (1, 1), (2, 1)]);
}

async fn a_discarded_event_rests(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    assert_eq!(
        change(&*desk, &key, Change::Discard).await,
        Changed::Done { generation: 0 }
    );
    let shown = desk.event(&key).await.unwrap().unwrap().summary;
    assert_eq!(shown.state, State::Discarded);
    assert_eq!(shown.last_error.as_deref(), Some("answered 410"));
    assert!(shown.processed_at.is_some());
    assert!(fetch(&*ledger, LONG).await.is_empty());
}

async fn a_change_from_another_state_is_refused(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let done = ended(&*ledger, "evt_done", Outcome::Done).await;
    let dead = ended(&*ledger, "evt_dead", dead("answered 410")).await;
    let _ = ledger
        .append(event("evt_queued"), Queue::ForWorker)
        .await
        .unwrap();
    for (key, wrong, state) in [
        (&done, Change::Redrive, State::Done),
        (&done, Change::Discard, State::Done),
        (&dead, Change::Replay, State::Dead),
        (&key("evt_queued"), Change::Replay, State::Queued),
        (&key("evt_queued"), Change::Redrive, State::Queued),
    ] {
        assert_eq!(change(&*desk, key, wrong).await, Changed::WrongState(state));
        assert_eq!(ledger.entry(key).await.unwrap().unwrap().state, state);
    }
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "0");
}

async fn a_change_to_nothing_finds_nothing(db: Database) {
    let desk = db.desk().await;
    for what in [Change::Replay, Change::Redrive, Change::Discard] {
        assert_eq!(change(&*desk, &key("evt_1"), what).await, Changed::NotFound);
    }
    assert!(desk.event(&key("evt_1")).await.unwrap().is_none());
    assert!(desk.body(&key("evt_1")).await.unwrap().is_none());
}

async fn a_change_to_another_generation_is_refused(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", Outcome::Done).await;
    let why = reason("a bug is mended");
    let first = desk.change(&key, Change::Replay, Some(0), &why).await.unwrap();
    assert_eq!(first, Changed::Done { generation: 1 });
    settle(&*ledger, Outcome::Done).await;
    let late = desk.change(&key, Change::Replay, Some(0), &why).await.unwrap();
    assert_eq!(late, Changed::OtherGeneration(1));
    assert_eq!(ledger.entry(&key).await.unwrap().unwrap().state, State::Done);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
}

/// Eight people on replicas of their own press at the same time.
async fn race(db: &Database, key: &EventKey, changes: &[Change]) -> Vec<Changed> {
    let mut desks: Vec<Arc<dyn Operations>> = Vec::new();
    for _ in 0..8 {
        desks.push(db.desk().await);
    }
    let barrier = Barrier::new(desks.len());
    let race = desks.iter().enumerate().map(|(n, desk)| {
        let barrier = &barrier;
        async move {
            barrier.wait().await;
            change(&**desk, key, changes[n % changes.len()]).await
        }
    });
    join_all(race).await
}

fn won(changes: &[Changed]) -> usize {
    let done = |changed: &&Changed| matches!(changed, Changed::Done { .. });
    changes.iter().filter(done).count()
}

async fn of_redrives_at_once_one_wins(db: Database) {
    let ledger = db.ledger().await;
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    let changes = race(&db, &key, &[Change::Redrive]).await;
    assert_eq!(won(&changes), 1, "{changes:?}");
    let refused = changes
        .iter()
        .filter(|&one| *one == Changed::WrongState(State::Queued));
    assert_eq!(refused.count(), 7, "{changes:?}");
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
    assert_eq!(fetch(&*ledger, LONG).await.len(), 1);
}

async fn of_replays_at_once_one_wins(db: Database) {
    let ledger = db.ledger().await;
    let key = ended(&*ledger, "evt_1", Outcome::Done).await;
    let changes = race(&db, &key, &[Change::Replay]).await;
    assert_eq!(won(&changes), 1, "{changes:?}");
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(job.lease.generation, 1);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
}

async fn redrive_and_discard_at_once_do_one_of_both(db: Database) {
    let ledger = db.ledger().await;
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    let changes = race(&db, &key, &[Change::Redrive, Change::Discard]).await;
    assert_eq!(won(&changes), 1, "{changes:?}");
    let state = ledger.entry(&key).await.unwrap().unwrap().state;
    let expected = match db.value("SELECT action FROM audit_log").await.as_str() {
        "redrive" => State::Queued,
        _ => State::Discarded,
    };
    assert_eq!(state, expected);
}

async fn a_pruned_event_cannot_run_again(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let done = ended(&*ledger, "evt_done", Outcome::Done).await;
    let dead = ended(&*ledger, "evt_dead", dead("answered 410")).await;
    db.run("UPDATE webhook_events SET body = substr(body, 1, 0), headers = '', pruned_at = received_at")
        .await;
    assert_eq!(change(&*desk, &done, Change::Replay).await, Changed::Pruned);
    assert_eq!(change(&*desk, &dead, Change::Redrive).await, Changed::Pruned);
    assert_eq!(
        change(&*desk, &dead, Change::Discard).await,
        Changed::Done { generation: 0 }
    );
    assert_eq!(desk.body(&done).await.unwrap(), Some(StoredBody::Pruned));
    let shown = desk.event(&done).await.unwrap().unwrap();
    assert!(shown.headers.is_empty() && shown.summary.pruned_at.is_some());
}

async fn a_forwards_event_becomes_the_workers(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let begun = ledger.begin(&event("evt_1"), LONG).await.unwrap();
    let hookgate_ledger::Begun::Run { lease, .. } = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(ledger.finish(&lease).await.unwrap(), Settled::Committed);
    assert_eq!(
        change(&*desk, &key("evt_1"), Change::Replay).await,
        Changed::Done { generation: 1 }
    );
    let job = fetch_one(&*ledger, SHORT).await;
    assert_eq!(job.lease.generation, 1);
    // It is a worker that died here, so the next worker has it, not the provider.
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 1);
    assert_eq!(
        ledger.entry(&key("evt_1")).await.unwrap().unwrap().state,
        State::Queued
    );
}

async fn a_redriven_event_whose_worker_dies_is_rescued(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    assert_eq!(
        change(&*desk, &key, Change::Redrive).await,
        Changed::Done { generation: 0 }
    );
    let lost = fetch_one(&*ledger, SHORT).await;
    until(&*ledger, &key, |entry| entry.lease_ended).await;
    assert_eq!(
        change(&*desk, &key, Change::Redrive).await,
        Changed::WrongState(State::Running)
    );
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 1);
    let next = fetch_one(&*ledger, LONG).await;
    assert_eq!((lost.lease.attempt, next.lease.attempt, next.tries), (2, 3, 2));
    let late = ledger
        .settle(&lost.lease, Outcome::Done, Effects::default())
        .await
        .unwrap();
    assert_eq!(late, Settled::Lost);
}

async fn who_and_why_are_written_down_with_the_change(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    assert_eq!(
        change(&*desk, &key, Change::Redrive).await,
        Changed::Done { generation: 0 }
    );
    settle(&*ledger, Outcome::Done).await;
    let other = Reason {
        actor: "api:ops".into(),
        why: "it's \"wrong\"; DROP TABLE audit_log --".into(),
    };
    let replayed = desk.change(&key, Change::Replay, Some(0), &other).await.unwrap();
    assert_eq!(replayed, Changed::Done { generation: 1 });
    let audit = desk.event(&key).await.unwrap().unwrap().audit;
    let said: Vec<_> = audit
        .iter()
        .map(|row| {
            (
                row.actor.as_str(),
                row.action.as_str(),
                row.generation,
                row.detail.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            ("cli:maria", "redrive", Some(0), Some("the target is mended")),
            ("api:ops", "replay", Some(1), Some(other.why.as_str())),
        ]
    );
    assert!(audit[0].at <= audit[1].at);
}

async fn a_change_that_cannot_be_written_down_is_not_made(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    db.poison("audit_log", "detail").await;
    let refused = desk.change(&key, Change::Redrive, None, &reason("poison")).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(ledger.entry(&key).await.unwrap().unwrap().state, State::Dead);
}

async fn an_event_shows_its_runs_and_its_headers(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let key = ended(&*ledger, "evt_1", dead("answered 410")).await;
    let shown = desk.event(&key).await.unwrap().unwrap();
    assert_eq!(shown.body_sha256, event("evt_1").body_sha256);
    assert_eq!(shown.headers, event("evt_1").headers);
    let [run] = &shown.attempts[..] else {
        panic!("one run: {shown:?}")
    };
    assert_eq!(
        (run.generation, run.attempt, run.outcome.as_str()),
        (0, 1, "dead")
    );
    assert!(run.started_at <= run.finished_at && shown.summary.received_at <= run.started_at);
}

async fn a_body_comes_back_byte_for_byte(db: Database) {
    let (ledger, desk) = (db.ledger().await, db.desk().await);
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let new = crate::sample::with_body("evt_1", bytes.clone());
    let _ = ledger.append(new, Queue::ForWorker).await.unwrap();
    assert_eq!(
        desk.body(&key("evt_1")).await.unwrap(),
        Some(StoredBody::Raw(bytes.into()))
    );
}
