//! Retention in SQLite, a few rows at a time and the oldest first, straight from the indexes that hold just
//! those rows. Each statement writes from its start, so several sweeps take turns by the file's lock.

use std::time::Duration;

use sqlx::SqliteConnection;

use crate::columns::milliseconds;
use crate::sql::upkeep::SWEPT_AT_ONCE;

const PRUNE: &str = "
    UPDATE webhook_events
    SET body = x'', headers = '[]', pruned_at = (SELECT now FROM clock)
    WHERE rowid IN (
        SELECT rowid FROM webhook_events INDEXED BY webhook_events_finished
        WHERE state IN ('done', 'discarded', 'twin') AND pruned_at IS NULL
          AND processed_at < (SELECT now FROM clock) - $1
        ORDER BY processed_at
        LIMIT $2)";

/// Attempts and content keys go with their event; what people did with it stays in the audit log.
const DELETE: &str = "
    DELETE FROM webhook_events
    WHERE rowid IN (
        SELECT rowid FROM webhook_events INDEXED BY webhook_events_pruned
        WHERE pruned_at IS NOT NULL AND provider = $1 AND state IN ('done', 'discarded', 'twin')
          AND processed_at < (SELECT now FROM clock) - $2
        ORDER BY processed_at
        LIMIT $3)";

const FORGET_MINUTES: &str = "
    DELETE FROM stats_minute
    WHERE (minute, source, name, replica) IN (
        SELECT minute, source, name, replica FROM stats_minute
        WHERE minute < (SELECT now FROM clock) - $1
        ORDER BY minute
        LIMIT $2)";

/// Empties rows that came to rest longer ago than `age`.
pub(super) async fn prune(conn: &mut SqliteConnection, age: Duration) -> sqlx::Result<u64> {
    let pruned = sqlx::query(PRUNE)
        .bind(milliseconds(age))
        .bind(SWEPT_AT_ONCE)
        .execute(conn)
        .await?;
    Ok(pruned.rows_affected())
}

/// Deletes emptied rows of each provider that came to rest longer ago than its age. A statement each, since
/// the writer next in line should not wait for all of them.
pub(super) async fn delete(
    conn: &mut SqliteConnection,
    ages: &[(&'static str, Duration)],
) -> sqlx::Result<u64> {
    let mut deleted = 0;
    for &(provider, age) in ages {
        let some = sqlx::query(DELETE)
            .bind(provider)
            .bind(milliseconds(age))
            .bind(SWEPT_AT_ONCE)
            .execute(&mut *conn)
            .await?;
        deleted += some.rows_affected();
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
