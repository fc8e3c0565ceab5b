//! How SQLite finds what the workers and the keepers ask for. It keeps no statistics unless told to, and without
//! them takes a source, of which there may be a million rows, for a good way to find one.

use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use super::{SqliteLedger, look, queue, sweep, targets, upkeep};
use crate::rows::DEPTH;
use crate::{Ledger, Limits};

/// What each does again and again, whatever there is to do.
fn statements() -> Vec<String> {
    let mut all = vec![queue::CHOOSE.replace("{due}", &queue::due(2))];
    let others = [
        queue::LEASE,
        queue::HEARTBEAT,
        queue::LOST,
        queue::RESCUE,
        targets::LONG_AWAY,
        targets::BURY,
        upkeep::DEATHS,
        sweep::PRUNE,
        sweep::DELETE,
        sweep::FORGET_MINUTES,
        look::ENTRY,
        look::OLDEST,
        DEPTH,
    ];
    all.extend(others.map(str::to_owned));
    all
}

/// Each step of how it is done.
async fn plan(conn: &mut SqliteConnection, sql: &str) -> Vec<String> {
    let rows = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}")))
        .fetch_all(conn)
        .await
        .unwrap();
    rows.iter().map(|row| row.get("detail")).collect()
}

/// Whether a step walks over all rows of the table, or of a source.
fn walks(step: &str) -> bool {
    let whole = ["SCAN webhook_events", "SCAN e"].contains(&step);
    whole || (step.contains("sqlite_autoindex_webhook_events_1") && !step.contains("event_id=?"))
}

#[tokio::test]
async fn what_is_asked_all_the_time_never_walks_over_a_table_or_a_source() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hookgate.db");
    let ledger = SqliteLedger::open(&path, Limits::default()).unwrap();
    ledger.migrate().await.unwrap();
    let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    for sql in statements() {
        let plan = plan(&mut conn, &sql).await;
        assert!(!plan.is_empty(), "{sql}");
        assert!(!plan.iter().any(|step| walks(step)), "{sql}\n{plan:#?}");
    }
    let wrong = "SELECT 1 FROM webhook_events AS e WHERE state = 'queued'";
    for condition in ["", " AND source = $1"] {
        let plan = plan(&mut conn, &format!("{wrong}{condition}")).await;
        assert!(plan.iter().any(|step| walks(step)), "it would be seen: {plan:?}");
    }
}
