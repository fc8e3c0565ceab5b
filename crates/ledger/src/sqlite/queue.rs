//! The queue: leasing what is due, keeping leases, and freeing those whose owners died.

use std::time::Duration;

use hookgate_webhook::SourceName;
use sqlx::{Connection, FromRow, Row, SqliteConnection};

use crate::columns::{milliseconds, signed};
use crate::rows::Leased;
use crate::run::never_retrying;
use crate::{Fetch, Job, Lease, Settled};

/// One statement that writes from its start, so no two workers take one row. The length of a body is known
/// without reading it. Every row gets an owner of its own.
const FETCH: &str = "
    WITH due AS (
        SELECT rowid AS row, next_attempt_at, octet_length(body) AS bytes
        FROM webhook_events INDEXED BY webhook_events_lanes
        WHERE state IN ('queued', 'parked') AND next_attempt_at <= (SELECT now FROM clock)
          AND source IN (SELECT value FROM json_each($3))
        ORDER BY next_attempt_at
        LIMIT $1
    ), summed AS (
        SELECT row, row_number() OVER so_far AS place, sum(bytes) OVER so_far AS bytes
        FROM due
        WINDOW so_far AS (ORDER BY next_attempt_at, row)
    )
    UPDATE webhook_events
    SET state = 'running', attempts = attempts + 1, tries = tries + 1, lease_owner = randomblob(16),
        leased_at = (SELECT now FROM clock), lease_until = (SELECT now FROM clock) + $2
    WHERE rowid IN (SELECT row FROM summed WHERE place = 1 OR bytes <= $4)
    RETURNING source, event_id, lease_owner, attempts, generation, tries, provider, event_type, headers, body,
              next_attempt_at";

const HEARTBEAT: &str = "
    UPDATE webhook_events
    SET lease_until = max(lease_until, (SELECT now FROM clock) + $4)
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

const LOST: &str = "
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, lease_owner, leased_at, 'lost', $2
    FROM webhook_events WHERE state = 'running' AND lease_until < $1";

/// A forward fails, whatever its tries: the provider's next try must run, and not be told that the event is
/// dealt with. Where no try will come, it becomes the workers'.
const RESCUE: &str = "
    UPDATE webhook_events
    SET state = CASE WHEN path = 'forward' AND provider NOT IN (SELECT value FROM json_each($4)) THEN 'failed'
                     WHEN path = 'inbox' AND tries >= $3 THEN 'dead' ELSE 'queued' END,
        path = CASE WHEN provider IN (SELECT value FROM json_each($4)) THEN 'inbox' ELSE path END,
        processed_at = CASE WHEN path = 'inbox' AND tries >= $3 THEN $1 END,
        next_attempt_at = $1, last_error = $2,
        lease_owner = NULL, lease_until = NULL
    WHERE state = 'running' AND lease_until < $1";

const LOST_RUN: &str = "the run did not end: its process stopped or was cut off";

/// Leases what is due, oldest first.
pub(super) async fn fetch(conn: &mut SqliteConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    let mut rows = sqlx::query(FETCH)
        .bind(want.limit)
        .bind(milliseconds(want.lease))
        .bind(serde_json::Value::from_iter(want.sources.iter().map(SourceName::as_str)).to_string())
        .bind(signed(want.bytes_max))
        .fetch_all(conn)
        .await?;
    rows.sort_by_key(|row| row.get::<i64, _>("next_attempt_at"));
    rows.iter().map(|row| Leased::from_row(row)?.job()).collect()
}

/// Extends a lease, never shortens it.
pub(super) async fn heartbeat(
    conn: &mut SqliteConnection,
    lease: &Lease,
    extend: Duration,
) -> sqlx::Result<Settled> {
    let extended = sqlx::query(HEARTBEAT)
        .bind(lease.key.source.as_str())
        .bind(lease.key.id.as_str())
        .bind(&lease.owner.to_bytes()[..])
        .bind(milliseconds(extend))
        .execute(conn)
        .await?;
    match extended.rows_affected() {
        0 => Ok(Settled::Lost),
        _ => Ok(Settled::Committed),
    }
}

/// Frees rows whose lease has ended, and writes down the runs that were lost. Both by one reading of the
/// clock, so that they mean the same rows.
pub(super) async fn rescue(conn: &mut SqliteConnection, attempts_max: u32) -> sqlx::Result<u64> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let now: i64 = sqlx::query_scalar("SELECT now FROM clock")
        .fetch_one(&mut *tx)
        .await?;
    sqlx::query(LOST)
        .bind(now)
        .bind(LOST_RUN)
        .execute(&mut *tx)
        .await?;
    let freed = sqlx::query(RESCUE)
        .bind(now)
        .bind(LOST_RUN)
        .bind(attempts_max)
        .bind(serde_json::Value::from_iter(never_retrying()).to_string())
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(freed.rows_affected())
}
