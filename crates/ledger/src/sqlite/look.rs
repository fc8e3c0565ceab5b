//! Looking, without touching.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::SqliteConnection;

use crate::rows::{COUNT_MAX, DEPTH, Seen, by_state};
use crate::{Entry, State};

pub(super) const ENTRY: &str = "
    SELECT state, attempts, last_error, state = 'running' AND lease_until < (SELECT now FROM clock) AS lease_ended
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

/// The head of each lane: a jump from source to source instead of a walk over all that waits.
pub(super) const OLDEST: &str = "
    WITH RECURSIVE lane (source) AS (
        SELECT min(source) FROM webhook_events WHERE state IN ('queued', 'parked')
        UNION ALL
        SELECT (SELECT min(e.source) FROM webhook_events AS e
                WHERE e.state IN ('queued', 'parked') AND e.source > lane.source)
        FROM lane WHERE lane.source IS NOT NULL
    ), head (due) AS (
        SELECT (SELECT next_attempt_at FROM webhook_events AS e
                WHERE e.source = lane.source AND (attempts > 0 OR generation > 0) = kind.value
                  AND state IN ('queued', 'parked')
                ORDER BY next_attempt_at LIMIT 1)
        FROM lane, json_each('[0, 1]') AS kind
    )
    SELECT COALESCE(max((SELECT now FROM clock) - min(due), 0), 0) FROM head";

/// One row, if it is there.
pub(super) async fn entry(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<Entry>> {
    let found: Option<Seen> = sqlx::query_as(ENTRY)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await?;
    found.map(Seen::entry).transpose()
}

/// Unfinished rows by state, and how long the oldest has been due.
pub(super) async fn depth(conn: &mut SqliteConnection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)> {
    let counts = sqlx::query_as(DEPTH)
        .bind(COUNT_MAX)
        .fetch_all(&mut *conn)
        .await?;
    let oldest: i64 = sqlx::query_scalar(OLDEST).fetch_one(conn).await?;
    Ok((by_state(counts)?, Duration::from_millis(oldest.unsigned_abs())))
}

/// A lease that nobody holds: a row that may be written by everybody.
const WRITE: &str = "
    INSERT INTO leases (name, owner, lease_until) VALUES ('probe', x'', (SELECT now FROM clock))
    ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until";

/// Whether a row is kept now.
pub(super) async fn probe_writing(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query(WRITE).execute(conn).await?;
    Ok(())
}

/// Whether the table can be read now.
pub(super) async fn probe(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM webhook_events LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}
