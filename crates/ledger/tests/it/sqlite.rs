//! What only a file can suffer.

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hookgate_ledger::{Appended, Bulk, Change, Filter, LedgerError, Limits, Queue, SqliteLedger};

use crate::change::reason;
use crate::database::Database;
use crate::sample::event;

#[test]
fn a_missing_folder_is_named() {
    let opened = SqliteLedger::open(Path::new("/no/such/folder/hookgate.db"), Limits::default());
    let Err(LedgerError::Unusable(text)) = opened else {
        panic!("opened")
    };
    assert!(
        text.contains("/no/such/folder") && text.contains("DATABASE_URL"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let Err(LedgerError::Unusable(text)) = SqliteLedger::open(directory.path(), Limits::default()) else {
        panic!("opened")
    };
    assert!(text.contains("cannot be written"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hookgate.db");
    std::fs::write(
        &path,
        "Dear diary, today I was taken for a database. ".repeat(100),
    )
    .unwrap();
    let ledger = Database::Sqlite {
        path,
        _directory: directory,
    }
    .replica();
    let migrated = ledger.migrate().await;
    assert!(matches!(migrated, Err(LedgerError::Unusable(_))), "{migrated:?}");
}

#[tokio::test]
async fn a_file_that_somebody_holds_is_unavailable_and_comes_back() {
    let db = Database::sqlite();
    let limits = Limits {
        append: Duration::from_millis(600),
        lock: Duration::from_millis(100),
        ..Limits::default()
    };
    let ledger = db.ledger_with(limits).await;
    let standstill = db.standstill().await;
    let began = Instant::now();
    let appended = ledger.append(event("evt_1"), Queue::ForWorker).await;
    assert!(
        matches!(appended, Err(LedgerError::Unavailable(_))),
        "{appended:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(10), "bounded");
    standstill.end().await;
    assert_eq!(
        ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap(),
        Appended::Accepted
    );
}

/// As three processes would: each has its own connections, and only SQLite's lock between them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_holders_of_one_file_accept_each_event_once() {
    let db = Database::sqlite();
    let holders = [db.ledger().await, db.replica(), db.replica()];
    let ids: Vec<String> = (0..50).map(|n| format!("evt_{n}")).collect();
    let appends = ids.iter().flat_map(|id| {
        holders
            .iter()
            .map(move |ledger| ledger.append(event(id), Queue::ForWorker))
    });
    let found = join_all(appends).await;
    let accepted = found
        .into_iter()
        .filter(|found| matches!(found, Ok(Appended::Accepted)))
        .count();
    assert_eq!(accepted, 50);
}

/// Appends wait for whoever writes, so a change writes only when it knows what.
#[tokio::test]
async fn a_bulk_change_searches_without_keeping_others_from_writing() {
    let db = Database::sqlite();
    let ledger = db.ledger().await;
    let _ = ledger
        .append(event("evt_1"), Queue::Finished("no_consumer"))
        .await
        .unwrap();
    let desk = db.desk().await;
    let standstill = db.standstill().await;
    let mut bulk = Bulk {
        change: Change::Replay,
        filter: Filter {
            event_type: Some("no.such.type".into()),
            ..Filter::default()
        },
        after: None,
        limit: 10,
        dry_run: false,
        first_in: Duration::ZERO,
        spacing: Duration::ZERO,
    };
    let none = desk.change_many(&bulk, &reason("mended")).await.unwrap();
    assert_eq!(none.events, 0, "found while another one writes");
    standstill.end().await;
    bulk.filter = Filter::default();
    assert_eq!(
        desk.change_many(&bulk, &reason("mended")).await.unwrap().events,
        1
    );
}
