//! What all workers know about a target: that it is away, or that a person has paused it.

use std::time::Duration;

use sqlx::PgConnection;

use crate::run::{HELD_MAX, TARGET_DOWN};

/// Rows buried by one statement, whatever the number of lanes; few enough that it holds no lock for long.
const BURIED_AT_ONCE: i64 = 500;

/// In one order, so that workers that start together do not wait for each other in a circle.
const INTRODUCE: &str = "
    INSERT INTO targets (name) SELECT name FROM unnest($1::text[]) AS known (name) ORDER BY name
    ON CONFLICT (name) DO NOTHING";

const DOWN: &str = "
    INSERT INTO targets (name, down_since) VALUES ($1, now())
    ON CONFLICT (name) DO UPDATE SET down_since = COALESCE(targets.down_since, excluded.down_since)
    RETURNING extract(epoch FROM now() - down_since)::float8";

const UP: &str = "UPDATE targets SET down_since = NULL WHERE name = $1 AND down_since IS NOT NULL";

const PAUSED: &str = "SELECT name FROM targets WHERE paused_at IS NOT NULL ORDER BY name";

/// Nobody could try these, so there is no run to write down. Those of a paused target wait for whoever paused it.
const BURY: &str = "
    WITH held AS (
        SELECT e.source, e.event_id
        FROM targets AS t
        CROSS JOIN unnest($2::text[]) AS lane (source)
        CROSS JOIN (VALUES (false), (true)) AS kind (again)
        CROSS JOIN LATERAL (
            SELECT source, event_id FROM webhook_events
            WHERE source = lane.source AND (attempts > 0 OR generation > 0) = kind.again
              AND state IN ('queued', 'parked') AND next_attempt_at < now() - make_interval(secs => $3)
              AND state = 'queued'
            ORDER BY next_attempt_at
            LIMIT $4
            FOR UPDATE SKIP LOCKED
        ) AS e
        WHERE t.name = $1 AND t.paused_at IS NULL AND t.down_since < now() - make_interval(secs => $3)
          AND (t.resumed_at IS NULL OR t.resumed_at < now() - make_interval(secs => $3))
        LIMIT $4
    )
    UPDATE webhook_events AS e
    SET state = 'dead', processed_at = now(), last_error = $5 || COALESCE(last_error, 'it was not called')
    FROM held
    WHERE e.source = held.source AND e.event_id = held.event_id";

/// Writes down that they are there.
pub(super) async fn introduce(conn: &mut PgConnection, names: &[String]) -> sqlx::Result<()> {
    sqlx::query(INTRODUCE).bind(names).execute(conn).await?;
    Ok(())
}

/// Writes down that it is away, and says since how long.
pub(super) async fn down(conn: &mut PgConnection, target: &str) -> sqlx::Result<Duration> {
    let seconds: f64 = sqlx::query_scalar(DOWN).bind(target).fetch_one(conn).await?;
    Ok(Duration::from_secs_f64(seconds.max(0.0)))
}

/// Writes down that it is there.
pub(super) async fn up(conn: &mut PgConnection, target: &str) -> sqlx::Result<()> {
    sqlx::query(UP).bind(target).execute(conn).await?;
    Ok(())
}

/// Names of those that are paused.
pub(super) async fn paused(conn: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(PAUSED).fetch_all(conn).await
}

/// Buries what was held for too long without a try.
pub(super) async fn bury(conn: &mut PgConnection, target: &str, sources: &[&str]) -> sqlx::Result<u64> {
    let buried = sqlx::query(BURY)
        .bind(target)
        .bind(sources)
        .bind(HELD_MAX.as_secs_f64())
        .bind(BURIED_AT_ONCE)
        .bind(TARGET_DOWN)
        .execute(conn)
        .await?;
    Ok(buried.rows_affected())
}

#[cfg(test)]
mod tests {
    use hookgate_harness::PostgresServer;
    use sqlx::{Connection, Executor};

    use super::*;
    use crate::{Ledger, Limits, PostgresLedger};

    /// Held for 73 hours, by two sources.
    const HELD: &str = "
        INSERT INTO targets (name, down_since) VALUES ('crm', now() - interval '73 h');
        INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at, delivery_id,
                                    body_sha256, headers, body)
        SELECT source, 'evt_' || n, source, 'inbox', 'queued', now() - interval '73 h', '\\x00',
               decode(repeat('00', 32), 'hex'), '[]', '\\x00'
        FROM unnest(ARRAY['stripe', 'github']) AS lane (source), generate_series(1, 300) AS n";

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_step_buries_a_bounded_number_over_all_sources() {
        let url = PostgresServer::shared().await.create_database().await;
        let ledger = PostgresLedger::connect(&url.clone().into(), Limits::default()).unwrap();
        ledger.migrate().await.unwrap();
        let mut conn = PgConnection::connect(&url).await.unwrap();
        conn.execute(HELD).await.unwrap();
        let sources = ["stripe", "github"];
        let mut steps = Vec::new();
        for _ in 0..3 {
            steps.push(bury(&mut conn, "crm", &sources).await.unwrap());
        }
        assert_eq!(steps, [500, 100, 0]);
    }
}
