//! What the database itself says about a run's events, past the gateway and every proxy.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use crate::evidence::{Attempt, Key, Row, Source};

/// Every event's row.
pub(crate) async fn events(session: &mut PgConnection) -> sqlx::Result<BTreeMap<Key, Row>> {
    const ALL: &str = "
        SELECT source, event_id, state, attempts, generation, (extract(epoch FROM received_at) * 1000000)::bigint
        FROM webhook_events";
    let rows: Vec<(String, String, String, i32, i32, i64)> = sqlx::query_as(ALL).fetch_all(session).await?;
    let row =
        |(source, id, state, attempts, generation, received_us): (String, String, String, i32, i32, i64)| {
            let row = Row {
                state,
                attempts: attempts.unsigned_abs(),
                generation: generation.unsigned_abs(),
                received_us,
            };
            Some((key(&source, id)?, row))
        };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// Every run that came to an end.
pub(crate) async fn attempts(session: &mut PgConnection) -> sqlx::Result<BTreeMap<(Key, u32), Attempt>> {
    const ALL: &str = "SELECT source, event_id, attempt, outcome, COALESCE(error, '') FROM webhook_attempts";
    let rows: Vec<(String, String, i32, String, String)> = sqlx::query_as(ALL).fetch_all(session).await?;
    let attempt = |(source, id, number, outcome, error): (String, String, i32, String, String)| {
        Some((
            (key(&source, id)?, number.unsigned_abs()),
            Attempt { outcome, error },
        ))
    };
    Ok(rows.into_iter().filter_map(attempt).collect())
}

/// Events that are not at rest. A forward that failed waits for the provider's next try, so it rests as far as we
/// are concerned.
pub(crate) async fn restless(session: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    const ALL: &str = "
        SELECT source || ':' || event_id || ' is ' || state || ' after ' || attempts || ' runs'
        FROM webhook_events WHERE state NOT IN ('done', 'failed', 'dead') ORDER BY 1";
    sqlx::query_scalar(ALL).fetch_all(session).await
}

fn key(source: &str, id: String) -> Option<Key> {
    Some(Key {
        source: Source::named(source)?,
        id,
    })
}
