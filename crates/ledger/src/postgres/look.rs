//! Looking, without touching.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::PgConnection;

use crate::rows::{COUNT_MAX, DEPTH, Seen, by_state};
use crate::{Entry, State};

const ENTRY: &str = "
    SELECT state, attempts::bigint, last_error,
           COALESCE(state = 'running' AND lease_until < now(), false) AS lease_ended
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

/// The head of each lane: a jump from source to source instead of a walk over all that waits.
const OLDEST: &str = "
    WITH RECURSIVE lane AS (
        (SELECT source FROM webhook_events WHERE state IN ('queued', 'parked') ORDER BY source LIMIT 1)
        UNION ALL
        SELECT (SELECT e.source FROM webhook_events AS e
                WHERE e.state IN ('queued', 'parked') AND e.source > lane.source ORDER BY e.source LIMIT 1)
        FROM lane WHERE lane.source IS NOT NULL
    )
    SELECT COALESCE(greatest(extract(epoch FROM now() - min(head.next_attempt_at)), 0), 0)::float8
    FROM lane
    CROSS JOIN (VALUES (false), (true)) AS kind (again)
    CROSS JOIN LATERAL (
        SELECT next_attempt_at FROM webhook_events
        WHERE source = lane.source AND (attempts > 0 OR generation > 0) = kind.again
          AND state IN ('queued', 'parked')
        ORDER BY next_attempt_at LIMIT 1
    ) AS head";

/// One row, if it is there.
pub(super) async fn entry(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<Entry>> {
    let found: Option<Seen> = sqlx::query_as(ENTRY)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await?;
    found.map(Seen::entry).transpose()
}

/// Unfinished rows by state, and how long the oldest has been due.
pub(super) async fn depth(conn: &mut PgConnection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)> {
    let counts = sqlx::query_as(DEPTH)
        .bind(COUNT_MAX)
        .fetch_all(&mut *conn)
        .await?;
    let oldest: f64 = sqlx::query_scalar(OLDEST).fetch_one(conn).await?;
    Ok((by_state(counts)?, Duration::from_secs_f64(oldest)))
}

/// A lease that nobody holds: a row that may be written by everybody.
const WRITE: &str = "
    INSERT INTO leases (name, owner, lease_until) VALUES ('probe', '', now())
    ON CONFLICT (name) DO UPDATE SET lease_until = excluded.lease_until";

/// Whether a row is kept now.
pub(super) async fn probe_writing(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(WRITE).execute(conn).await?;
    Ok(())
}

/// Whether the table can be read now.
pub(super) async fn probe(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT FROM webhook_events LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}
