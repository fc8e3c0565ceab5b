//! One key has one row, whoever comes and however many.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use hookgate_ledger::{Appended, LedgerError, Limits, Queue, State};

use crate::database::{Database, patient, until};
use crate::on_both;
use crate::sample::{LONG, copy_in, event, fetch, fetch_one, key, with_body};

on_both!(
    a_new_event_is_accepted_and_its_copy_is_a_duplicate,
    the_first_body_of_an_id_wins,
    an_append_repeated_with_its_own_delivery_is_accepted_again,
    of_many_copies_at_once_one_is_accepted,
    many_events_at_once_are_all_accepted,
    of_two_copies_in_one_batch_one_is_accepted,
    a_poisoned_row_fails_alone,
    an_event_without_a_consumer_is_done_at_once,
    every_byte_of_body_and_headers_survives,
    a_body_of_a_megabyte_survives,
    hostile_ids_are_kept_apart,
    more_waiters_than_allowed_are_refused_at_once,
    a_caller_that_leaves_cancels_nothing_that_was_sent,
    a_closing_ledger_finishes_what_is_in_hand,
);

async fn a_new_event_is_accepted_and_its_copy_is_a_duplicate(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(
        ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap(),
        Appended::Accepted
    );
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.attempts, entry.last_error),
        (State::Queued, 0, None)
    );

    let other = db.replica();
    assert_eq!(
        other.append(event("evt_1"), Queue::ForWorker).await.unwrap(),
        copy_in(State::Queued)
    );
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "1");
}

async fn the_first_body_of_an_id_wins(db: Database) {
    let ledger = db.ledger().await;
    let accepted = ledger
        .append(with_body("evt_1", b"first".to_vec()), Queue::ForWorker)
        .await
        .unwrap();
    assert_eq!(accepted, Appended::Accepted);
    assert_eq!(
        ledger
            .append(with_body("evt_1", b"second".to_vec()), Queue::ForWorker)
            .await
            .unwrap(),
        Appended::Duplicate {
            state: State::Queued,
            same_body: false
        }
    );
    assert_eq!(fetch_one(&*ledger, LONG).await.body, &b"first"[..]);
}

async fn an_append_repeated_with_its_own_delivery_is_accepted_again(db: Database) {
    let ledger = db.ledger().await;
    let delivery = event("evt_1");
    for _ in 0..2 {
        let appended = ledger.append(delivery.clone(), Queue::ForWorker).await.unwrap();
        assert_eq!(appended, Appended::Accepted);
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "1");
}

async fn of_many_copies_at_once_one_is_accepted(db: Database) {
    let replicas = [db.ledger().await, db.replica(), db.replica()];
    let copies = (0..64).map(|n| replicas[n % 3].append(event("evt_1"), Queue::ForWorker));
    let found: Vec<_> = join_all(copies).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        found.iter().filter(|&&found| found == Appended::Accepted).count(),
        1,
        "{found:?}"
    );
    assert_eq!(
        found
            .iter()
            .filter(|&&found| found == copy_in(State::Queued))
            .count(),
        63,
        "{found:?}"
    );
}

async fn many_events_at_once_are_all_accepted(db: Database) {
    let replicas = [db.ledger().await, db.replica(), db.replica()];
    let ids: Vec<String> = (0..64).map(|n| format!("evt_{n}")).collect();
    let appends = ids.iter().zip(replicas.iter().cycle());
    let appends = appends.map(|(id, ledger)| ledger.append(event(id), Queue::ForWorker));
    for appended in join_all(appends).await {
        assert_eq!(appended.unwrap(), Appended::Accepted);
    }
    let kept: HashSet<String> = fetch(&*replicas[0], LONG)
        .await
        .iter()
        .map(|job| job.lease.key.id.to_string())
        .collect();
    assert_eq!(kept, ids.into_iter().collect());
}

/// While all writers stand still, appends gather; the two copies then travel in one batch.
async fn of_two_copies_in_one_batch_one_is_accepted(db: Database) {
    let ledger = db.ledger().await;
    let standstill = db.standstill().await;
    let ids = ["evt_1", "evt_2", "evt_3", "evt_4", "evt_twice", "evt_twice"];
    let appends = join_all(ids.map(|id| ledger.append(event(id), Queue::ForWorker)));
    let (found, ()) = tokio::join!(appends, standstill.end());
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found[..5], [Appended::Accepted; 5]);
    assert_eq!(found[5], copy_in(State::Queued));
}

async fn a_poisoned_row_fails_alone(db: Database) {
    let ledger = db.ledger().await;
    db.poison("webhook_events", "event_id").await;
    let standstill = db.standstill().await;
    let ids: Vec<String> = (0..64)
        .map(|n| {
            if n == 40 {
                "poison".into()
            } else {
                format!("evt_{n}")
            }
        })
        .collect();
    let appends = join_all(ids.iter().map(|id| ledger.append(event(id), Queue::ForWorker)));
    let (found, ()) = tokio::join!(appends, standstill.end());
    for (id, found) in ids.iter().zip(found) {
        match id.as_str() {
            "poison" => assert!(matches!(found, Err(LedgerError::Refused(_))), "{found:?}"),
            _ => assert_eq!(found.unwrap(), Appended::Accepted),
        }
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "63");
}

async fn an_event_without_a_consumer_is_done_at_once(db: Database) {
    let ledger = db.ledger().await;
    let appended = ledger
        .append(event("evt_1"), Queue::Finished("no_consumer"))
        .await
        .unwrap();
    assert_eq!(appended, Appended::Accepted);
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.last_error.as_deref()),
        (State::Done, Some("no_consumer"))
    );
    assert!(fetch(&*ledger, LONG).await.is_empty());
    let copy = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    assert_eq!(copy, copy_in(State::Done));
}

async fn every_byte_of_body_and_headers_survives(db: Database) {
    let ledger = db.ledger().await;
    let all: Vec<u8> = (0..=255).collect();
    let mut sent = with_body("evt_1", all.clone());
    sent.headers = vec![
        ("x-signature".into(), b"t=1,v1=\"quoted\\\"".to_vec()),
        ("x-all".into(), all),
        ("x-name".into(), "Grüße 🦀".as_bytes().to_vec()),
        ("x-signature".into(), Vec::new()),
    ];
    let appended = ledger.append(sent.clone(), Queue::ForWorker).await.unwrap();
    assert_eq!(appended, Appended::Accepted);
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!((job.body, job.headers), (sent.body, sent.headers));
    assert_eq!(
        (job.provider.as_str(), job.event_type.as_deref()),
        ("stripe", Some("invoice.paid"))
    );
}

async fn a_body_of_a_megabyte_survives(db: Database) {
    let ledger = db.ledger().await;
    // Noise, so that no compression makes it small.
    let noise: Vec<u8> = (0..1 << 20).map(|_| rand::random()).collect();
    let appended = ledger
        .append(with_body("evt_1", noise.clone()), Queue::ForWorker)
        .await
        .unwrap();
    assert_eq!(appended, Appended::Accepted);
    assert_eq!(fetch_one(&*ledger, LONG).await.body, noise);
}

async fn hostile_ids_are_kept_apart(db: Database) {
    let ledger = db.ledger().await;
    let long = "x".repeat(254);
    let (long_a, long_b) = (format!("{long}a"), format!("{long}b"));
    let ids = [
        &*long_a,
        &*long_b,
        "evt_🦀",
        "evt_'; DROP TABLE webhook_events; --",
        "evt_\"",
        "evt_%",
        "evt__",
        "evt_\\",
        "EVT_1",
        "evt_1",
        " evt_1",
        "evt_1 ",
        "evt_1  ",
        "..",
        "*",
        "a:b",
        "é",
        "e\u{301}",
        "NULL",
        "{}",
    ];
    for expected in [Appended::Accepted, copy_in(State::Queued)] {
        let found = join_all(ids.map(|id| ledger.append(event(id), Queue::ForWorker))).await;
        for (id, found) in ids.iter().zip(found) {
            assert_eq!(found.unwrap(), expected, "{id}");
        }
    }
    let kept: HashSet<String> = fetch(&*ledger, LONG)
        .await
        .iter()
        .map(|job| job.lease.key.id.to_string())
        .collect();
    assert_eq!(kept, ids.iter().map(ToString::to_string).collect());
}

async fn more_waiters_than_allowed_are_refused_at_once(db: Database) {
    let ledger = db
        .ledger_with(Limits {
            waiters: 3,
            ..patient()
        })
        .await;
    let standstill = db.standstill().await;
    let mut in_hand = Vec::new();
    // Fill until one is refused at its first poll, without waiting for anything.
    let refused = loop {
        let (ledger, id) = (ledger.clone(), format!("evt_{}", in_hand.len()));
        let mut appending = Box::pin(async move { ledger.append(event(&id), Queue::ForWorker).await });
        match (&mut appending).now_or_never() {
            Some(refused) => break refused,
            None => in_hand.push(appending),
        }
        tokio::task::yield_now().await;
    };
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    // Three wait; each of two lanes may have taken up to three before them.
    assert!((3..=9).contains(&in_hand.len()), "{} in hand", in_hand.len());
    standstill.end().await;
    for appending in in_hand {
        assert_eq!(appending.await.unwrap(), Appended::Accepted);
    }
}

async fn a_caller_that_leaves_cancels_nothing_that_was_sent(db: Database) {
    let ledger = db.ledger().await;
    let standstill = db.standstill().await;
    let left = tokio::time::timeout(
        Duration::from_millis(100),
        ledger.append(event("evt_1"), Queue::ForWorker),
    );
    assert!(left.await.is_err(), "the writers stand still");
    standstill.end().await;
    until(&*ledger, &key("evt_1"), |entry| entry.state == State::Queued).await;
}

async fn a_closing_ledger_finishes_what_is_in_hand(db: Database) {
    let ledger = db.ledger().await;
    let standstill = db.standstill().await;
    let ids: Vec<String> = (0..10).map(|n| format!("evt_{n}")).collect();
    let appends = join_all(ids.iter().map(|id| ledger.append(event(id), Queue::ForWorker)));
    let (found, (), ()) = tokio::join!(appends, ledger.close(), standstill.end());
    for found in found {
        assert_eq!(found.unwrap(), Appended::Accepted);
    }
    let late = ledger.append(event("evt_late"), Queue::ForWorker).await;
    assert!(matches!(late, Err(LedgerError::Unavailable(_))), "{late:?}");
}
