//! Looking, without touching.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::PgConnection;

use crate::columns::{COUNT_MAX, state};
use crate::rows::Seen;
use crate::{Entry, State};

const ENTRY: &str = "
    SELECT state, attempts::bigint, last_error,
           COALESCE(state = 'running' AND lease_until < now(), false) AS lease_ended
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

/// Each state is counted in the partial index that holds it, in the order of that index, and only so far.
const DEPTH: &str = "
    SELECT state, count(*) FROM (
        SELECT state FROM webhook_events WHERE state IN ('queued', 'parked') ORDER BY next_attempt_at LIMIT $1
    ) AS waiting GROUP BY state
    UNION ALL SELECT 'running', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'running' ORDER BY source LIMIT $1) AS running
    UNION ALL SELECT 'dead', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'dead' ORDER BY processed_at LIMIT $1) AS dead
    UNION ALL SELECT 'failed', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'failed' ORDER BY received_at LIMIT $1) AS failed";

const OLDEST: &str = "
    SELECT COALESCE(greatest(extract(epoch FROM now() - min(next_attempt_at)), 0), 0)::float8
    FROM webhook_events WHERE state IN ('queued', 'parked')";

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
    let counts: Vec<(String, i64)> = sqlx::query_as(DEPTH)
        .bind(COUNT_MAX)
        .fetch_all(&mut *conn)
        .await?;
    let oldest: f64 = sqlx::query_scalar(OLDEST).fetch_one(conn).await?;
    let counts = counts.into_iter().filter(|&(_, number)| number > 0);
    let counts = counts.map(|(name, number)| Ok((state(&name)?, number.unsigned_abs())));
    Ok((
        counts.collect::<sqlx::Result<_>>()?,
        Duration::from_secs_f64(oldest),
    ))
}

/// Whether the table can be read now.
pub(super) async fn probe(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT FROM webhook_events LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}
