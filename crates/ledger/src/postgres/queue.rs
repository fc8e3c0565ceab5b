//! The queue: leasing what is due, keeping leases, and freeing those whose owners died.

use std::time::Duration;

use hookgate_webhook::SourceName;
use sqlx::PgConnection;

use crate::columns::signed;
use crate::rows::Leased;
use crate::run::never_retrying;
use crate::{Fetch, Job, Lease, Settled};

/// Rows freed by one statement; few enough that it holds no lock for long.
const RESCUED_AT_ONCE: i64 = 500;

/// Rows that another worker is taking are skipped, so workers never wait for each other. The length of a body
/// is known without reading it. Every row gets an owner of its own.
const FETCH: &str = "
    WITH due AS (
        SELECT source, event_id, next_attempt_at, octet_length(body) AS bytes FROM webhook_events
        WHERE state IN ('queued', 'parked') AND next_attempt_at <= now() AND source = ANY ($3)
        ORDER BY next_attempt_at
        LIMIT $1
        FOR UPDATE SKIP LOCKED
    ), summed AS (
        SELECT source, event_id, row_number() OVER so_far AS place, sum(bytes) OVER so_far AS bytes
        FROM due
        WINDOW so_far AS (ORDER BY next_attempt_at, source, event_id)
    ), leased AS (
        UPDATE webhook_events AS e
        SET state = 'running', attempts = e.attempts + 1, tries = e.tries + 1,
            lease_owner = uuid_send(gen_random_uuid()), leased_at = now(),
            lease_until = now() + make_interval(secs => $2)
        FROM summed
        WHERE e.source = summed.source AND e.event_id = summed.event_id
          AND (summed.place = 1 OR summed.bytes <= $4)
        RETURNING e.*
    )
    SELECT source, event_id, lease_owner, attempts::bigint, generation::bigint, tries::bigint,
           provider, event_type, headers, body
    FROM leased
    ORDER BY next_attempt_at";

const HEARTBEAT: &str = "
    UPDATE webhook_events
    SET lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $4))
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

/// A forward fails, whatever its tries: the provider's next try must run, and not be told that the event is
/// dealt with. Where no try will come, it becomes the workers'.
const RESCUE: &str = "
    WITH expired AS (
        SELECT source, event_id, lease_owner FROM webhook_events
        WHERE state = 'running' AND lease_until < now()
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    ), freed AS (
        UPDATE webhook_events AS e
        SET state = CASE WHEN path = 'forward' AND provider <> ALL ($3) THEN 'failed'
                         WHEN path = 'inbox' AND tries >= $1 THEN 'dead' ELSE 'queued' END,
            path = CASE WHEN provider = ANY ($3) THEN 'inbox' ELSE path END,
            processed_at = CASE WHEN path = 'inbox' AND tries >= $1 THEN now() END,
            next_attempt_at = now(),
            last_error = 'the run did not end: its process stopped or was cut off',
            lease_owner = NULL, lease_until = NULL
        FROM expired
        WHERE e.source = expired.source AND e.event_id = expired.event_id
        RETURNING e.source, e.event_id, e.generation, e.attempts, expired.lease_owner, e.leased_at, e.last_error
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, lease_owner, leased_at, 'lost', last_error FROM freed";

/// Leases what is due, oldest first.
pub(super) async fn fetch(conn: &mut PgConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
    let rows: Vec<Leased> = sqlx::query_as(FETCH)
        .bind(i64::from(want.limit))
        .bind(want.lease.as_secs_f64())
        .bind(want.sources.iter().map(SourceName::as_str).collect::<Vec<_>>())
        .bind(signed(want.bytes_max))
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
pub(super) async fn rescue(conn: &mut PgConnection, attempts_max: u32) -> sqlx::Result<u64> {
    let freed = sqlx::query(RESCUE)
        .bind(i64::from(attempts_max))
        .bind(RESCUED_AT_ONCE)
        .bind(never_retrying().collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(freed.rows_affected())
}
