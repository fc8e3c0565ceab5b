//! What is known about a target: that it is away, or that a person has paused it.

use std::time::Duration;

use sqlx::SqliteConnection;

use crate::bell::Herald;
use crate::columns::milliseconds;
use crate::fault::Fault;
use crate::run::{HELD_MAX, TARGET_DOWN};

use super::store::Sqlite;

/// Rows buried by one statement; few enough that others get their turn soon.
const BURIED_AT_ONCE: i64 = 500;

const INTRODUCE: &str = "
    INSERT INTO targets (name) SELECT value FROM json_each($1) WHERE true ON CONFLICT (name) DO NOTHING";

const DOWN: &str = "
    INSERT INTO targets (name, down_since) VALUES ($1, (SELECT now FROM clock))
    ON CONFLICT (name) DO UPDATE SET down_since = COALESCE(down_since, excluded.down_since)
    RETURNING (SELECT now FROM clock) - down_since";

const UP: &str = "UPDATE targets SET down_since = NULL WHERE name = $1 AND down_since IS NOT NULL";

const PAUSED: &str = "SELECT name FROM targets WHERE paused_at IS NOT NULL ORDER BY name";

/// Nobody could try these, so there is no run to write down. Those of a paused target wait for whoever paused it.
const BURY: &str = "
    UPDATE webhook_events
    SET state = 'dead', processed_at = (SELECT now FROM clock),
        last_error = $5 || COALESCE(last_error, 'it was not called')
    WHERE rowid IN (
        SELECT rowid FROM webhook_events
        WHERE state = 'queued' AND source IN (SELECT value FROM json_each($2))
          AND next_attempt_at < (SELECT now FROM clock) - $3
          AND EXISTS (SELECT 1 FROM targets
                      WHERE name = $1 AND paused_at IS NULL AND down_since < (SELECT now FROM clock) - $3)
        LIMIT $4)";

/// Writes down that they are there.
pub(super) async fn introduce(conn: &mut SqliteConnection, names: &[String]) -> sqlx::Result<()> {
    sqlx::query(INTRODUCE)
        .bind(serde_json::Value::from_iter(names.iter().map(String::as_str)).to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes down that it is away, and says since how long.
pub(super) async fn down(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<Duration> {
    let milliseconds: i64 = sqlx::query_scalar(DOWN).bind(target).fetch_one(conn).await?;
    Ok(Duration::from_millis(milliseconds.max(0).unsigned_abs()))
}

/// Writes down that it is there.
pub(super) async fn up(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<()> {
    sqlx::query(UP).bind(target).execute(conn).await?;
    Ok(())
}

/// Names of those that are paused.
pub(super) async fn paused(conn: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(PAUSED).fetch_all(conn).await
}

/// Buries what was held for too long without a try.
pub(super) async fn bury(conn: &mut SqliteConnection, target: &str, sources: &[&str]) -> sqlx::Result<u64> {
    let buried = sqlx::query(BURY)
        .bind(target)
        .bind(serde_json::Value::from_iter(sources.iter().copied()).to_string())
        .bind(milliseconds(HELD_MAX))
        .bind(BURIED_AT_ONCE)
        .bind(TARGET_DOWN)
        .execute(conn)
        .await?;
    Ok(buried.rows_affected())
}

/// One process uses the file as a rule; others look at intervals.
impl Herald for Sqlite {
    const SHARED: bool = false;

    async fn tell(_conn: &mut SqliteConnection) -> Result<(), Fault> {
        Ok(())
    }

    async fn hear(&self, _heard: impl Fn() + Send) -> Fault {
        std::future::pending().await
    }
}
