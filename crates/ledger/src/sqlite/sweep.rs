//! Retention in SQLite, a few rows at a time and the oldest first, straight from the indexes that hold just
//! those rows. Each statement writes from its start, so several sweeps take turns by the file's lock.

use std::time::Duration;

use sqlx::SqliteConnection;

use crate::columns::milliseconds;
use crate::sql::upkeep::{Age, SWEPT_AT_ONCE};

pub(super) const PRUNE: &str = "
    UPDATE webhook_events
    SET body = x'', headers = '[]', pruned_at = (SELECT now FROM clock)
    WHERE rowid IN (
        SELECT rowid FROM webhook_events INDEXED BY webhook_events_finished
        WHERE state IN ('done', 'discarded', 'twin') AND pruned_at IS NULL
          AND processed_at < (SELECT now FROM clock) - $1 AND processed_at >= $3 / 1000
        ORDER BY processed_at
        LIMIT $2)
    RETURNING processed_at * 1000";

/// Attempts and content keys go with their event; what people did with it stays in the audit log.
pub(super) const DELETE: &str = "
    DELETE FROM webhook_events
    WHERE rowid IN (
        SELECT rowid FROM webhook_events INDEXED BY webhook_events_pruned
        WHERE pruned_at IS NOT NULL AND provider = $1 AND state IN ('done', 'discarded', 'twin')
          AND processed_at < (SELECT now FROM clock) - $2 AND processed_at >= $4 / 1000
        ORDER BY processed_at
        LIMIT $3)
    RETURNING provider, processed_at * 1000";

pub(super) const FORGET_MINUTES: &str = "
    DELETE FROM stats_minute
    WHERE (minute, source, name, replica) IN (
        SELECT minute, source, name, replica FROM stats_minute
        WHERE minute < (SELECT now FROM clock) - $1
        ORDER BY minute
        LIMIT $2)";

/// Empties rows that came to rest longer ago than `age`, beginning at `from`.
pub(super) async fn prune(conn: &mut SqliteConnection, age: Duration, from: i64) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar(PRUNE)
        .bind(milliseconds(age))
        .bind(SWEPT_AT_ONCE)
        .bind(from)
        .fetch_all(conn)
        .await
}

/// Deletes emptied rows of each provider that came to rest longer ago than its age. A statement each, since
/// the writer next in line should not wait for all of them.
pub(super) async fn delete(conn: &mut SqliteConnection, ages: &[Age]) -> sqlx::Result<Vec<(String, i64)>> {
    let mut deleted = Vec::new();
    for Age { provider, age, from } in ages {
        let some: Vec<(String, i64)> = sqlx::query_as(DELETE)
            .bind(*provider)
            .bind(milliseconds(*age))
            .bind(SWEPT_AT_ONCE)
            .bind(*from)
            .fetch_all(&mut *conn)
            .await?;
        deleted.extend(some);
    }
    Ok(deleted)
}

/// Deletes counts of minutes longer ago than `age`.
pub(super) async fn forget_minutes(conn: &mut SqliteConnection, age: Duration) -> sqlx::Result<u64> {
    let forgotten = sqlx::query(FORGET_MINUTES)
        .bind(milliseconds(age))
        .bind(SWEPT_AT_ONCE)
        .execute(conn)
        .await?;
    Ok(forgotten.rows_affected())
}
