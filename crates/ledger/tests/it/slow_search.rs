//! A question that takes the database too long is an answer of its own: the ledger is well.

use std::time::Duration;

use hookgate_ledger::{Filter, LedgerError, Limits, Queue};
use sqlx::{Connection, Executor, PgConnection};

use crate::database::{Database, patient};
use crate::sample::event;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_ends_a_search_that_takes_too_long() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let limits = Limits {
        search: Duration::from_secs(1),
        ..patient()
    };
    let desk = db.desk_with(limits).await;
    let mut holder = PgConnection::connect(url).await.unwrap();
    holder
        .execute("BEGIN; LOCK TABLE webhook_events IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let found = desk.list(&Filter::default(), None, 10).await;
    assert!(matches!(found, Err(LedgerError::TooSlow(_))), "{found:?}");
    holder.execute("ROLLBACK").await.unwrap();
    assert!(
        desk.list(&Filter::default(), None, 10)
            .await
            .unwrap()
            .events
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_ends_a_search_that_takes_too_long_and_answers_the_next() {
    let db = Database::sqlite();
    let ledger = db.ledger().await;
    for n in 0..300 {
        let _ = ledger
            .append(event(&format!("evt_{n}")), Queue::ForWorker)
            .await
            .unwrap();
    }
    let limits = Limits {
        search: Duration::from_nanos(1),
        ..patient()
    };
    let desk = db.desk_with(limits).await;
    let nowhere = Filter {
        event_type: Some("no.such.type".into()),
        ..Filter::default()
    };
    let found = desk.list(&nowhere, None, 10).await;
    assert!(matches!(found, Err(LedgerError::TooSlow(_))), "{found:?}");
    // The limit was that statement's alone: what is small needs fewer steps than are between two looks.
    assert!(desk.targets().await.unwrap().is_empty());
    let patient = db.desk().await;
    assert!(patient.list(&nowhere, None, 10).await.unwrap().events.is_empty());
}
