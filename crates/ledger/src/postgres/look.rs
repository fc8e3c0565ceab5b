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
    let counts = sqlx::query_as(DEPTH)
        .bind(COUNT_MAX)
        .fetch_all(&mut *conn)
        .await?;
    let oldest: f64 = sqlx::query_scalar(OLDEST).fetch_one(conn).await?;
    Ok((by_state(counts)?, Duration::from_secs_f64(oldest)))
}

/// Whether the table can be read now.
pub(super) async fn probe(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT FROM webhook_events LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}
