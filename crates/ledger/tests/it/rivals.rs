//! What only sessions of a server can suffer from each other: rows held by a transaction that stays open.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::PATIENCE;
use hookgate_ledger::{Appended, Ledger, LedgerError, Limits};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::database::{Database, patient};
use crate::postgres::{append, connect};

/// A session that has inserted the event and does not commit.
async fn open_insert(url: &str, id: &str) -> PgConnection {
    let mut rival = PgConnection::connect(url).await.unwrap();
    let sql = format!(
        "BEGIN;
         INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at,
                                     delivery_id, body_sha256, headers, body)
         VALUES ('stripe', '{id}', 'stripe', 'inbox', 'queued', now(),
                 '', decode(repeat('00', 32), 'hex'), '[]', '')"
    );
    rival.execute(AssertSqlSafe(sql)).await.unwrap();
    rival
}

/// Another session has inserted the same key and does not commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_somebody_holds_delays_no_other() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let limits = Limits {
        append: PATIENCE,
        lock: Duration::from_millis(300),
        ..patient()
    };
    let ledger = connect(url, limits);
    ledger.migrate().await.unwrap();
    let mut holder = open_insert(url, "evt_held").await;
    let ids: Vec<String> = (0..64)
        .map(|n| {
            if n == 31 {
                "evt_held".into()
            } else {
                format!("evt_{n}")
            }
        })
        .collect();
    for (id, found) in ids
        .iter()
        .zip(join_all(ids.iter().map(|id| append(&ledger, id))).await)
    {
        match id.as_str() {
            "evt_held" => assert!(matches!(found, Err(LedgerError::Locked(_))), "{found:?}"),
            _ => assert_eq!(found.unwrap(), Appended::Accepted, "{id}"),
        }
    }
    // It rolls back, so the provider's next try is the first.
    holder.execute("ROLLBACK").await.unwrap();
    assert_eq!(append(&ledger, "evt_held").await.unwrap(), Appended::Accepted);
}

/// The winner of the key rolls back after the loser lost: the loser is neither accepted nor a duplicate yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_waits_for_an_open_rival_and_wins_if_it_rolls_back() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let ledger = connect(url, patient());
    ledger.migrate().await.unwrap();
    let mut rival = open_insert(url, "evt_1").await;
    let rolls_back = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while db.value(waiting).await == "0" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rival.execute("ROLLBACK").await.unwrap();
    };
    let (found, ()) = tokio::join!(append(&ledger, "evt_1"), rolls_back);
    assert_eq!(found.unwrap(), Appended::Accepted);
}
