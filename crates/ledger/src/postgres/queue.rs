//! The queue: leasing what is due, keeping leases, and freeing those whose owners died.

use std::time::Duration;

use sqlx::PgConnection;

use crate::columns::signed;
use crate::rows::Leased;
use crate::run::never_retrying;
use crate::{Fetch, Job, Lane, Lease, Rescued, Settled, TriesMax};

/// Rows freed by one statement; few enough that it holds no lock for long.
const RESCUED_AT_ONCE: i64 = 500;

/// Rows that another worker is taking are skipped, so workers never wait for each other. The length of a body
/// is known without reading it. Every row gets an owner of its own.
///
/// Each lane is read at two ends of the index: rows that were never run, and rows that come again. `turn` mixes
/// the two, three to one; the first of the second kind stands anywhere among the first four, so that it has its
/// chance also where there is room for one only.
const FETCH: &str = "
    WITH lanes AS (
        SELECT * FROM unnest($1::text[], $2::int[], $3::int[], $4::int[]) AS lane (source, room, pool, pool_room)
    ), due AS (
        SELECT lanes.*, kind.again, row.event_id, row.next_attempt_at, row.bytes
        FROM lanes
        CROSS JOIN (VALUES (false), (true)) AS kind (again)
        CROSS JOIN LATERAL (
            SELECT e.event_id, e.next_attempt_at, octet_length(e.body) AS bytes FROM webhook_events AS e
            WHERE e.source = lanes.source AND (e.attempts > 0 OR e.generation > 0) = kind.again
              AND e.state IN ('queued', 'parked') AND e.next_attempt_at <= now()
            ORDER BY e.next_attempt_at
            LIMIT lanes.room
            FOR UPDATE SKIP LOCKED
        ) AS row
    ), placed AS (
        SELECT *, row_number() OVER (PARTITION BY source, again ORDER BY next_attempt_at, event_id) AS place
        FROM due
    ), mixed AS (
        SELECT *, row_number() OVER (PARTITION BY source ORDER BY
            CASE WHEN again THEN (place - random()) * 4 ELSE (place - 0.5) * 4 / 3 END) AS turn
        FROM placed
    ), pooled AS (
        SELECT *, row_number() OVER (PARTITION BY pool ORDER BY turn, next_attempt_at, source) AS pool_place
        FROM mixed
        WHERE turn <= room
    ), summed AS (
        SELECT source, event_id, row_number() OVER so_far AS place, sum(bytes) OVER so_far AS bytes
        FROM pooled
        WHERE pool_place <= pool_room
        WINDOW so_far AS (ORDER BY turn, next_attempt_at, source, event_id)
    ), leased AS (
        UPDATE webhook_events AS e
        SET state = 'running', attempts = e.attempts + 1, tries = e.tries + 1,
            lease_owner = $8::bytea || substr(uuid_send(gen_random_uuid()), 9), leased_at = now(),
            lease_until = now() + make_interval(secs => $5)
        FROM summed
        WHERE e.source = summed.source AND e.event_id = summed.event_id
          AND summed.place <= $6 AND (summed.place = 1 OR summed.bytes <= $7)
        RETURNING e.*, summed.place
    )
    SELECT source, event_id, lease_owner, attempts::bigint, generation::bigint, tries::bigint,
           provider, event_type, headers, body
    FROM leased
    ORDER BY place";

/// Running rows are few, and stand in an index of their own.
const LEASED_BEFORE: &str = "
    UPDATE webhook_events
    SET lease_until = greatest(lease_until, now() + make_interval(secs => $2))
    WHERE state = 'running' AND substr(lease_owner, 1, 8) = $1
    RETURNING source, event_id, lease_owner, attempts::bigint, generation::bigint, tries::bigint,
              provider, event_type, headers, body";

const HEARTBEAT: &str = "
    UPDATE webhook_events
    SET lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $4))
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

/// A forward fails, whatever its tries: the provider's next try must run, and not be told that the event is
/// dealt with. Where no try will come, it becomes the workers'.
const RESCUE: &str = "
    WITH expired AS (
        SELECT source, event_id, lease_owner, COALESCE(
            (SELECT of.tries_max FROM unnest($4::text[], $5::int[]) AS of (source, tries_max)
             WHERE of.source = webhook_events.source), $1) AS tries_max
        FROM webhook_events
        WHERE state = 'running' AND lease_until < now()
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ), freed AS (
        UPDATE webhook_events AS e
        SET state = CASE WHEN path = 'forward' AND provider <> ALL ($3) THEN 'failed'
                         WHEN path = 'inbox' AND tries >= tries_max THEN 'dead' ELSE 'queued' END,
            path = CASE WHEN provider = ANY ($3) THEN 'inbox' ELSE path END,
            processed_at = CASE WHEN path = 'inbox' AND tries >= tries_max THEN now() END,
            next_attempt_at = now(),
            last_error = 'the run did not end: its process stopped or was cut off',
            lease_owner = NULL, lease_until = NULL
        FROM expired
        WHERE e.source = expired.source AND e.event_id = expired.event_id
        RETURNING e.source, e.event_id, e.generation, e.attempts, expired.lease_owner, e.leased_at, e.last_error,
                  e.state
    ), written AS (
        INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
        SELECT source, event_id, generation, attempts, lease_owner, leased_at, 'lost', last_error FROM freed
    )
    SELECT count(*), count(*) FILTER (WHERE state = 'dead') FROM freed";

/// Leases what is due, oldest first.
pub(super) async fn fetch(conn: &mut PgConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    let rows: Vec<Leased> = sqlx::query_as(FETCH)
        .bind(each(want, |lane| lane.source.as_str()))
        .bind(each(want, |lane| small(lane.room)))
        .bind(each(want, |lane| small(lane.pool)))
        .bind(each(want, |lane| small(lane.pool_room)))
        .bind(want.lease.as_secs_f64())
        .bind(i64::from(want.limit))
        .bind(signed(want.bytes_max))
        .bind(&want.ticket.to_bytes()[..])
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(Leased::job).collect()
}

/// What this ticket has leased already.
pub(super) async fn leased_before(conn: &mut PgConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    let rows: Vec<Leased> = sqlx::query_as(LEASED_BEFORE)
        .bind(&want.ticket.to_bytes()[..])
        .bind(want.lease.as_secs_f64())
        .fetch_all(conn)
        .await?;
    rows.into_iter().map(Leased::job).collect()
}

/// Extends a lease, never shortens it.
pub(super) async fn heartbeat(
    conn: &mut PgConnection,
    lease: &Lease,
    extend: Duration,
) -> sqlx::Result<Settled> {
    let extended = sqlx::query(HEARTBEAT)
        .bind(lease.key.source.as_str())
        .bind(lease.key.id.as_str())
        .bind(lease.owner.to_bytes())
        .bind(extend.as_secs_f64())
        .execute(conn)
        .await?;
    match extended.rows_affected() {
        0 => Ok(Settled::Lost),
        _ => Ok(Settled::Committed),
    }
}

/// Frees rows whose lease has ended, and writes down the run that was lost.
pub(super) async fn rescue(conn: &mut PgConnection, tries_max: &TriesMax) -> sqlx::Result<Rescued> {
    let of = &tries_max.by_source;
    let (freed, dead): (i64, i64) = sqlx::query_as(RESCUE)
        .bind(small(tries_max.otherwise))
        .bind(RESCUED_AT_ONCE)
        .bind(never_retrying().collect::<Vec<_>>())
        .bind(of.iter().map(|(source, _)| source.as_str()).collect::<Vec<_>>())
        .bind(of.iter().map(|(_, max)| small(*max)).collect::<Vec<_>>())
        .fetch_one(conn)
        .await?;
    Ok(Rescued {
        freed: freed.unsigned_abs(),
        dead: dead.unsigned_abs(),
    })
}

/// One column of the lanes.
fn each<'a, T>(want: &'a Fetch, column: impl Fn(&'a Lane) -> T) -> Vec<T> {
    want.lanes.iter().map(column).collect()
}

/// A bound in 32 bits; none counts further.
fn small(bound: u32) -> i32 {
    i32::try_from(bound).unwrap_or(i32::MAX)
}
