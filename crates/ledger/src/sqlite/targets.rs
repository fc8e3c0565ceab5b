//! What is known about a target: that it is away, or that a person has paused it.

use std::time::Duration;

use sqlx::SqliteConnection;

use crate::bell::Herald;
use crate::columns::{milliseconds, signed};
use crate::fault::Fault;
use crate::run::{HELD_MAX, TARGET_DOWN};

use super::store::Sqlite;

/// Rows buried by one call; few enough that others get their turn soon.
const BURIED_AT_ONCE: u64 = 500;

const INTRODUCE: &str = "
    INSERT INTO targets (name) SELECT value FROM json_each($1) WHERE true ON CONFLICT (name) DO NOTHING";

const DOWN: &str = "
    INSERT INTO targets (name, down_since) VALUES ($1, (SELECT now FROM clock))
    ON CONFLICT (name) DO UPDATE SET down_since = COALESCE(down_since, excluded.down_since)
    RETURNING (SELECT now FROM clock) - down_since";

const UP: &str = "UPDATE targets SET down_since = NULL WHERE name = $1 AND down_since IS NOT NULL";

const PAUSED: &str = "SELECT name FROM targets WHERE paused_at IS NOT NULL ORDER BY name";

/// Whether anything can be held for too long for its sake. A target that a person paused waits for that person.
pub(super) const LONG_AWAY: &str = "
    SELECT EXISTS (SELECT 1 FROM targets
                   WHERE name = $1 AND paused_at IS NULL AND down_since < (SELECT now FROM clock) - $2
                     AND COALESCE(resumed_at, 0) < (SELECT now FROM clock) - $2)";

/// One end of one lane, as a fetch reads it, and the target first: it may have come back meanwhile. Nobody
/// could try these, so there is no run to write down.
pub(super) const BURY: &str = "
    UPDATE webhook_events
    SET state = 'dead', processed_at = (SELECT now FROM clock),
        last_error = $6 || COALESCE(last_error, 'it was not called')
    WHERE rowid IN (
        SELECT e.rowid FROM targets AS t CROSS JOIN webhook_events AS e INDEXED BY webhook_events_lanes
        WHERE t.name = $1 AND t.paused_at IS NULL AND t.down_since < (SELECT now FROM clock) - $2
          AND COALESCE(t.resumed_at, 0) < (SELECT now FROM clock) - $2
          AND e.source = $3 AND (e.attempts > 0 OR e.generation > 0) = $4
          AND e.state IN ('queued', 'parked') AND e.next_attempt_at < (SELECT now FROM clock) - $2
          AND e.state = 'queued'
        ORDER BY e.next_attempt_at
        LIMIT $5)";

/// Writes down that they are there.
pub(super) async fn introduce(conn: &mut SqliteConnection, names: &[String]) -> sqlx::Result<()> {
    sqlx::query(INTRODUCE)
        .bind(serde_json::Value::from_iter(names.iter().map(String::as_str)).to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// Writes down that it is away, and says since how long.
pub(super) async fn down(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<Duration> {
    let milliseconds: i64 = sqlx::query_scalar(DOWN).bind(target).fetch_one(conn).await?;
    Ok(Duration::from_millis(milliseconds.max(0).unsigned_abs()))
}

/// Writes down that it is there.
pub(super) async fn up(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<()> {
    sqlx::query(UP).bind(target).execute(conn).await?;
    Ok(())
}

/// Names of those that are paused.
pub(super) async fn paused(conn: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar(PAUSED).fetch_all(conn).await
}

/// Buries what was held for too long without a try. Each end of a lane is buried by itself; the file is not
/// locked to find that the target is there.
pub(super) async fn bury(conn: &mut SqliteConnection, target: &str, sources: &[&str]) -> sqlx::Result<u64> {
    let long_away: bool = sqlx::query_scalar(LONG_AWAY)
        .bind(target)
        .bind(milliseconds(HELD_MAX))
        .fetch_one(&mut *conn)
        .await?;
    let mut buried = 0;
    let ends = sources
        .iter()
        .flat_map(|source| [(source, false), (source, true)]);
    for (source, again) in ends.filter(|_| long_away) {
        let left = BURIED_AT_ONCE.saturating_sub(buried);
        if left > 0 {
            buried += bury_end(conn, target, source, again, left).await?;
        }
    }
    Ok(buried)
}

/// Buries at most `left` events at one end of a lane.
async fn bury_end(
    conn: &mut SqliteConnection,
    target: &str,
    source: &str,
    again: bool,
    left: u64,
) -> sqlx::Result<u64> {
    let buried = sqlx::query(BURY)
        .bind(target)
        .bind(milliseconds(HELD_MAX))
        .bind(source)
        .bind(again)
        .bind(signed(left))
        .bind(TARGET_DOWN)
        .execute(conn)
        .await?;
    Ok(buried.rows_affected())
}

/// One process uses the file as a rule; others look at intervals.
impl Herald for Sqlite {
    const SHARED: bool = false;

    async fn tell(_conn: &mut SqliteConnection) -> Result<(), Fault> {
        Ok(())
    }

    async fn hear(&self, _heard: impl Fn() + Send) -> Fault {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Executor};

    use super::*;
    use crate::{Ledger, Limits, SqliteLedger};

    /// Held for 73 hours, by two sources.
    const HELD: &str = "
        INSERT INTO targets (name, down_since) SELECT 'crm', now - 73 * 3600000 FROM clock;
        INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at, delivery_id,
                                    body_sha256, headers, body)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300)
        SELECT value, 'evt_' || n, value, 'inbox', 'queued', now - 73 * 3600000, x'00', zeroblob(32), '[]', x'00'
        FROM json_each('[\"stripe\", \"github\"]'), numbers, clock";

    #[tokio::test]
    async fn one_step_buries_a_bounded_number_over_all_sources() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hookgate.db");
        let ledger = SqliteLedger::open(&path, Limits::default()).unwrap();
        ledger.migrate().await.unwrap();
        let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
        conn.execute(HELD).await.unwrap();
        let sources = ["stripe", "github"];
        let mut steps = Vec::new();
        for _ in 0..3 {
            steps.push(bury(&mut conn, "crm", &sources).await.unwrap());
        }
        assert_eq!(steps, [500, 100, 0]);
    }
}
