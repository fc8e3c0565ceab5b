//! Looking, without touching.

use std::collections::BTreeMap;
use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::SqliteConnection;

use crate::columns::{count, state};
use crate::{Entry, State};

const ENTRY: &str = "
    SELECT state, attempts, last_error, state = 'running' AND lease_until < (SELECT now FROM clock)
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

/// Each state is counted in the partial index that holds it.
const DEPTH: &str = "
    SELECT state, count(*) FROM webhook_events WHERE state IN ('queued', 'parked') GROUP BY state
    UNION ALL SELECT 'running', count(*) FROM webhook_events WHERE state = 'running'
    UNION ALL SELECT 'dead', count(*) FROM webhook_events WHERE state = 'dead'
    UNION ALL SELECT 'failed', count(*) FROM webhook_events WHERE state = 'failed'";

const OLDEST: &str = "
    SELECT COALESCE(max((SELECT now FROM clock) - min(next_attempt_at), 0), 0)
    FROM webhook_events WHERE state IN ('queued', 'parked')";

/// One row, if it is there.
pub(super) async fn entry(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<Entry>> {
    let found: Option<(String, i64, Option<String>, bool)> = sqlx::query_as(ENTRY)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await?;
    let entry = |(name, attempts, last_error, lease_ended): (String, _, _, _)| {
        Ok(Entry {
            state: state(&name)?,
            attempts: count(attempts)?,
            last_error,
            lease_ended,
        })
    };
    found.map(entry).transpose()
}

/// Unfinished rows by state, and how long the oldest has been due.
pub(super) async fn depth(conn: &mut SqliteConnection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)> {
    let counts: Vec<(String, i64)> = sqlx::query_as(DEPTH).fetch_all(&mut *conn).await?;
    let oldest: i64 = sqlx::query_scalar(OLDEST).fetch_one(conn).await?;
    let counts = counts.into_iter().filter(|&(_, number)| number > 0);
    let counts = counts.map(|(name, number)| Ok((state(&name)?, number.unsigned_abs())));
    Ok((
        counts.collect::<sqlx::Result<_>>()?,
        Duration::from_millis(oldest.unsigned_abs()),
    ))
}

/// Whether the table can be read now.
pub(super) async fn probe(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query("SELECT 1 FROM webhook_events LIMIT 1")
        .fetch_optional(conn)
        .await?;
    Ok(())
}
