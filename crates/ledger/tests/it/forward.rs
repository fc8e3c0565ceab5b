//! A forward has one run at a time, and its row outranks every claim.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_ledger::{Begun, Lease, Ledger, NewEvent, OnFailure, Queue, Settled, State};

use crate::database::{Database, until};
use crate::on_both;
use crate::sample::{LONG, SHORT, event, fetch, fetch_one, key, with_body};

on_both!(
    a_forward_runs_once,
    a_begin_repeated_with_its_own_delivery_runs_on,
    of_many_begins_at_once_one_runs,
    a_failed_forward_is_the_next_trys_and_no_workers,
    a_forward_handed_over_is_the_workers,
    a_forward_that_nobody_sends_again_survives_its_owner,
    an_inbox_adopts_what_a_forward_left,
    a_forward_whose_owner_died_is_taken_over_once,
    a_workers_run_is_never_taken_over,
    a_late_owner_changes_nothing,
    of_two_bodies_the_first_is_run,
    another_body_of_a_settled_event_is_told,
);

fn settled(state: State) -> Begun {
    Begun::Settled {
        state,
        same_body: true,
    }
}

async fn begin(ledger: &dyn Ledger, id: &str, lease: Duration) -> Lease {
    match ledger.begin(&event(id), lease).await.unwrap() {
        Begun::Run {
            lease, first: None, ..
        } => lease,
        begun => panic!("{begun:?}"),
    }
}

async fn a_forward_runs_once(db: Database) {
    let ledger = db.ledger().await;
    let lease = begin(&*ledger, "evt_1", LONG).await;
    assert_eq!((lease.attempt, lease.generation), (1, 0));
    assert_eq!(
        db.replica().begin(&event("evt_1"), LONG).await.unwrap(),
        Begun::Running
    );
    assert_eq!(ledger.finish(&lease).await.unwrap(), Settled::Committed);
    assert_eq!(
        ledger.begin(&event("evt_1"), LONG).await.unwrap(),
        settled(State::Done)
    );
    assert_eq!(
        db.value("SELECT outcome FROM webhook_attempts WHERE event_id = 'evt_1' AND attempt = 1")
            .await,
        "done"
    );
}

async fn a_begin_repeated_with_its_own_delivery_runs_on(db: Database) {
    let ledger = db.ledger().await;
    let delivery = event("evt_1");
    let first = ledger.begin(&delivery, LONG).await.unwrap();
    assert!(matches!(first, Begun::Run { .. }), "{first:?}");
    let ends = async || {
        db.value("SELECT lease_until FROM webhook_events WHERE event_id = 'evt_1'")
            .await
    };
    let at_first = ends().await;
    assert_eq!(ledger.begin(&delivery, LONG * 2).await.unwrap(), first);
    assert_ne!(
        ends().await,
        at_first,
        "it has a whole lease from the answer that it heard"
    );
}

async fn of_many_begins_at_once_one_runs(db: Database) {
    let replicas = [db.ledger().await, db.replica(), db.replica()];
    let deliveries: Vec<_> = (0..32).map(|_| event("evt_1")).collect();
    let begins = deliveries
        .iter()
        .zip(replicas.iter().cycle())
        .map(|(event, ledger)| ledger.begin(event, LONG));
    let begun: Vec<_> = join_all(begins).await.into_iter().map(Result::unwrap).collect();
    let runs = begun
        .iter()
        .filter(|begun| matches!(begun, Begun::Run { .. }))
        .count();
    let waits = begun
        .iter()
        .filter(|begun| matches!(begun, Begun::Running))
        .count();
    assert_eq!((runs, waits), (1, 31), "{begun:?}");
}

async fn a_failed_forward_is_the_next_trys_and_no_workers(db: Database) {
    let ledger = db.ledger().await;
    let lease = begin(&*ledger, "evt_1", LONG).await;
    let released = ledger
        .release(&lease, "answered 500", OnFailure::ProviderRetries)
        .await
        .unwrap();
    assert_eq!(released, Settled::Committed);
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.last_error.as_deref()),
        (State::Failed, Some("answered 500"))
    );
    assert!(fetch(&*ledger, LONG).await.is_empty());
    assert_eq!(begin(&*ledger, "evt_1", LONG).await.attempt, 2);
}

async fn a_forward_handed_over_is_the_workers(db: Database) {
    let ledger = db.ledger().await;
    let lease = begin(&*ledger, "evt_1", LONG).await;
    let next = OnFailure::WorkerRetries(Duration::ZERO);
    assert_eq!(
        ledger.release(&lease, "timed out", next).await.unwrap(),
        Settled::Committed
    );
    assert_eq!(
        ledger.begin(&event("evt_1"), LONG).await.unwrap(),
        settled(State::Queued)
    );

    // The worker dies: the row goes to the next worker, not to a provider that will not come again.
    assert_eq!(fetch_one(&*ledger, SHORT).await.lease.attempt, 2);
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 1);
    assert_eq!(fetch_one(&*ledger, LONG).await.lease.attempt, 3);
}

async fn a_forward_that_nobody_sends_again_survives_its_owner(db: Database) {
    let ledger = db.ledger().await;
    let github = NewEvent {
        provider: "github",
        ..event("evt_1")
    };
    assert!(matches!(
        ledger.begin(&github, SHORT).await.unwrap(),
        Begun::Run { .. }
    ));
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.rescue(&1.into()).await.unwrap().freed, 1);
    assert_eq!(fetch_one(&*ledger, LONG).await.lease.attempt, 2);
}

async fn an_inbox_adopts_what_a_forward_left(db: Database) {
    let ledger = db.ledger().await;
    let failed = begin(&*ledger, "evt_failed", LONG).await;
    let next = OnFailure::ProviderRetries;
    let _ = ledger.release(&failed, "answered 500", next).await.unwrap();
    ledger.adopt(&key("evt_failed")).await.unwrap();
    assert_eq!(fetch_one(&*ledger, LONG).await.lease.attempt, 2);

    let running = begin(&*ledger, "evt_running", LONG).await;
    ledger.adopt(&key("evt_running")).await.unwrap();
    assert!(fetch(&*ledger, LONG).await.is_empty(), "it runs");
    let released = ledger.release(&running, "answered 500", next).await.unwrap();
    assert_eq!(released, Settled::Committed);
    assert_eq!(fetch_one(&*ledger, LONG).await.lease.key, key("evt_running"));

    let done = begin(&*ledger, "evt_done", LONG).await;
    let _ = ledger.finish(&done).await.unwrap();
    ledger.adopt(&key("evt_done")).await.unwrap();
    assert_eq!(
        ledger.entry(&key("evt_done")).await.unwrap().unwrap().state,
        State::Done
    );
}

async fn a_forward_whose_owner_died_is_taken_over_once(db: Database) {
    let ledger = db.ledger().await;
    begin(&*ledger, "evt_1", SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    let deliveries: Vec<_> = (0..16).map(|_| event("evt_1")).collect();
    let begun = join_all(deliveries.iter().map(|event| ledger.begin(event, LONG))).await;
    let runs: Vec<_> = begun
        .into_iter()
        .filter_map(|begun| match begun.unwrap() {
            Begun::Run { lease, .. } => Some(lease.attempt),
            Begun::Running | Begun::Twin(_) | Begun::Settled { .. } => None,
        })
        .collect();
    assert_eq!(runs, [2]);
}

async fn a_workers_run_is_never_taken_over(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    fetch_one(&*ledger, SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.begin(&event("evt_1"), LONG).await.unwrap(), Begun::Running);
}

async fn a_late_owner_changes_nothing(db: Database) {
    let ledger = db.ledger().await;
    let late = begin(&*ledger, "evt_1", SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    let present = begin(&*ledger, "evt_1", LONG).await;
    let before = ledger.entry(&key("evt_1")).await.unwrap();

    assert_eq!(ledger.finish(&late).await.unwrap(), Settled::Lost);
    let released = ledger
        .release(&late, "too late", OnFailure::ProviderRetries)
        .await
        .unwrap();
    assert_eq!(released, Settled::Lost);
    assert_eq!(ledger.heartbeat(&late, LONG).await.unwrap(), Settled::Lost);
    assert_eq!(ledger.entry(&key("evt_1")).await.unwrap(), before);

    assert_eq!(ledger.finish(&present).await.unwrap(), Settled::Committed);
    assert_eq!(ledger.finish(&late).await.unwrap(), Settled::Lost);
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "1");
}

async fn of_two_bodies_the_first_is_run(db: Database) {
    let ledger = db.ledger().await;
    let lease = begin(&*ledger, "evt_1", LONG).await;
    let next = OnFailure::ProviderRetries;
    assert_eq!(
        ledger.release(&lease, "answered 500", next).await.unwrap(),
        Settled::Committed
    );
    let second = NewEvent {
        event_type: None,
        headers: vec![("x-signature".into(), b"of the second".to_vec())],
        ..with_body("evt_1", b"second".to_vec())
    };
    let first = event("evt_1");
    // Asked again, as after a lost reply, it says the same.
    for _ in 0..2 {
        let Begun::Run {
            lease,
            first: Some(stored),
            ..
        } = ledger.begin(&second, LONG).await.unwrap()
        else {
            panic!("not run, or with the second body")
        };
        assert_eq!((lease.attempt, lease.owner), (2, second.delivery));
        assert_eq!(
            (stored.event_type, stored.headers, stored.body),
            (
                first.event_type.clone(),
                first.headers.clone(),
                first.body.clone()
            )
        );
    }
    assert_eq!(
        db.value("SELECT length(body) FROM webhook_events").await,
        first.body.len().to_string()
    );
}

async fn another_body_of_a_settled_event_is_told(db: Database) {
    let ledger = db.ledger().await;
    let lease = begin(&*ledger, "evt_1", LONG).await;
    assert_eq!(ledger.finish(&lease).await.unwrap(), Settled::Committed);
    let other = with_body("evt_1", b"second".to_vec());
    let told = Begun::Settled {
        state: State::Done,
        same_body: false,
    };
    assert_eq!(ledger.begin(&other, LONG).await.unwrap(), told);
}
