//! The queue: leasing what is due, keeping leases, and freeing those whose owners died.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, FromRow, Row, SqliteConnection};

use crate::columns::{milliseconds, signed};
use crate::rows::Leased;
use crate::run::never_retrying;
use crate::{Fetch, Job, Lane, Lease, Rescued, Settled, TriesMax};

/// Chooses rows and says them in the order of their turns. The length of a body is known without reading it.
/// What stands for `{due}` is written by [`due`]; how the rows are mixed is told beside the twin of this
/// statement for Postgres.
pub(super) const CHOOSE: &str = "
    WITH lanes AS (
        SELECT value ->> 0 AS source, value ->> 1 AS room, value ->> 2 AS pool, value ->> 3 AS pool_room
        FROM json_each($1)
    ), due AS ({due}
    ), placed AS (
        SELECT *, row_number() OVER (PARTITION BY source, again ORDER BY next_attempt_at, row) AS place
        FROM due
    ), mixed AS (
        SELECT *, row_number() OVER (PARTITION BY source ORDER BY
            iif(again, place * 4 - (random() & 1023) / 256.0, (place - 0.5) * 4 / 3)) AS turn
        FROM placed
    ), pooled AS (
        SELECT *, row_number() OVER (PARTITION BY pool ORDER BY turn, next_attempt_at, source) AS pool_place
        FROM mixed JOIN lanes USING (source)
        WHERE turn <= room
    ), summed AS (
        SELECT row, row_number() OVER so_far AS place, sum(bytes) OVER so_far AS bytes
        FROM pooled
        WHERE pool_place <= pool_room
        WINDOW so_far AS (ORDER BY turn, next_attempt_at, row)
    )
    SELECT row FROM summed WHERE place <= $2 AND (place = 1 OR bytes <= $3) ORDER BY place";

/// Every row gets an owner of its own. An update returns rows in no order that could be named.
pub(super) const LEASE: &str = "
    UPDATE webhook_events
    SET state = 'running', attempts = attempts + 1, tries = tries + 1, lease_owner = unhex(hex($3) || hex(randomblob(8))),
        leased_at = (SELECT now FROM clock), lease_until = (SELECT now FROM clock) + $2
    WHERE rowid IN (SELECT value FROM json_each($1))
    RETURNING rowid AS row, source, event_id, lease_owner, attempts, generation, tries, provider, event_type,
              headers, body";

/// Running rows are few, and stand in an index of their own.
pub(super) const LEASED_BEFORE: &str = "
    UPDATE webhook_events
    SET lease_until = max(lease_until, (SELECT now FROM clock) + $2)
    WHERE state = 'running' AND substr(lease_owner, 1, 8) = $1
    RETURNING source, event_id, lease_owner, attempts, generation, tries, provider, event_type, headers, body";

/// One end of one lane. SQLite has no lateral joins, so each is a part of its own.
const DUE: &str = "
        SELECT * FROM (
            SELECT rowid AS row, source, {again} AS again, next_attempt_at, octet_length(body) AS bytes
            FROM webhook_events INDEXED BY webhook_events_lanes
            WHERE source = $1 ->> '$[{lane}][0]' AND (attempts > 0 OR generation > 0) = {again}
              AND state IN ('queued', 'parked') AND next_attempt_at <= (SELECT now FROM clock)
            ORDER BY next_attempt_at
            LIMIT $1 ->> '$[{lane}][1]')";

pub(super) const HEARTBEAT: &str = "
    UPDATE webhook_events
    SET lease_until = max(lease_until, (SELECT now FROM clock) + $4)
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

pub(super) const LOST: &str = "
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, lease_owner, leased_at, 'lost', $2
    FROM webhook_events WHERE state = 'running' AND lease_until < $1";

/// A forward fails, whatever its tries: the provider's next try must run, and not be told that the event is
/// dealt with. Where no try will come, it becomes the workers'.
pub(super) const RESCUE: &str = "
    UPDATE webhook_events
    SET state = CASE WHEN path = 'forward' AND provider NOT IN (SELECT value FROM json_each($4)) THEN 'failed'
                     WHEN path = 'inbox' AND tries >= COALESCE($5 -> source, $3) THEN 'dead'
                     ELSE 'queued' END,
        path = CASE WHEN provider IN (SELECT value FROM json_each($4)) THEN 'inbox' ELSE path END,
        processed_at = CASE WHEN path = 'inbox' AND tries >= COALESCE($5 -> source, $3) THEN $1 END,
        next_attempt_at = $1, last_error = $2,
        lease_owner = NULL, lease_until = NULL
    WHERE state = 'running' AND lease_until < $1
    RETURNING state = 'dead'";

const LOST_RUN: &str = "the run did not end: its process stopped or was cut off";

const UNION_ALL: &str = "
        UNION ALL
        ";

/// Terms of one compound; SQLite allows 500.
const TERMS_MAX: usize = 200;

/// Leases what is due, in the order of turns. The transaction writes from its start, so no two workers take one
/// row.
pub(super) async fn fetch(conn: &mut SqliteConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    if want.lanes.is_empty() {
        return Ok(Vec::new());
    }
    let lane = |lane: &Lane| json!([lane.source.as_str(), lane.room, lane.pool, lane.pool_room]);
    let lanes: serde_json::Value = want.lanes.iter().map(lane).collect();
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    // Made of constants and numbers only.
    let chosen: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(CHOOSE.replace("{due}", &due(want.lanes.len()))))
        .bind(lanes.to_string())
        .bind(want.limit)
        .bind(signed(want.bytes_max))
        .fetch_all(&mut *tx)
        .await?;
    let jobs = lease(&mut tx, &chosen, want).await?;
    tx.commit().await?;
    Ok(jobs)
}

/// Leases these rows, and says them in the same order.
async fn lease(conn: &mut SqliteConnection, chosen: &[i64], want: &Fetch) -> sqlx::Result<Vec<Job>> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = sqlx::query(LEASE)
        .bind(serde_json::Value::from_iter(chosen.iter().copied()).to_string())
        .bind(milliseconds(want.lease))
        .bind(&want.ticket.to_bytes()[..])
        .fetch_all(conn)
        .await?;
    let turns: HashMap<i64, usize> = chosen.iter().copied().zip(0..).collect();
    rows.sort_by_key(|row| turns.get(&row.get::<i64, _>("row")).copied());
    rows.iter().map(|row| Leased::from_row(row)?.job()).collect()
}

/// What this ticket has leased already.
pub(super) async fn leased_before(conn: &mut SqliteConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    let rows: Vec<Leased> = sqlx::query_as(LEASED_BEFORE)
        .bind(&want.ticket.to_bytes()[..])
        .bind(milliseconds(want.lease))
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(Leased::job).collect()
}

/// Both ends of so many lanes, as a compound of compounds that are each short enough.
pub(super) fn due(lanes: usize) -> String {
    let ends = (0..lanes).flat_map(|lane| ["0", "1"].map(|again| (lane, again)));
    let parts = ends.map(|(lane, again)| DUE.replace("{lane}", &lane.to_string()).replace("{again}", again));
    let parts: Vec<String> = parts.collect();
    let compounds = parts.chunks(TERMS_MAX).map(|some| some.join(UNION_ALL));
    let compounds: Vec<String> = compounds.map(|one| format!("SELECT * FROM ({one})")).collect();
    compounds.join(UNION_ALL)
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
pub(super) async fn rescue(conn: &mut SqliteConnection, tries_max: &TriesMax) -> sqlx::Result<Rescued> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let now: i64 = sqlx::query_scalar("SELECT now FROM clock")
        .fetch_one(&mut *tx)
        .await?;
    sqlx::query(LOST)
        .bind(now)
        .bind(LOST_RUN)
        .execute(&mut *tx)
        .await?;
    let of = tries_max.by_source.iter();
    let of: serde_json::Value = of.map(|(source, max)| (source.as_str(), *max)).collect();
    let freed: Vec<bool> = sqlx::query_scalar(RESCUE)
        .bind(now)
        .bind(LOST_RUN)
        .bind(tries_max.otherwise)
        .bind(serde_json::Value::from_iter(never_retrying()).to_string())
        .bind(of.to_string())
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    let dead = freed.iter().filter(|dead| **dead).count();
    Ok(Rescued {
        freed: freed.len() as u64,
        dead: dead as u64,
    })
}
