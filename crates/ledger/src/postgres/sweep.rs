//! Retention in Postgres, a few rows at a time and the oldest first, straight from the indexes that hold just
//! those rows. A row that another session has locked is left for the next sweep, so several share the work. Content
//! keys go with their row, and there a sweep may wait for an append that holds one; if the two wait for each other, the
//! database ends one of them, and both try again. A step begins where the last one ended: before that the indexes are full of entries
//! of rows just swept, which only a vacuum takes away.

use std::time::Duration;

use sqlx::PgConnection;

use crate::sql::upkeep::{Age, SWEPT_AT_ONCE};

const PRUNE: &str = "
    WITH old AS (
        SELECT source, event_id FROM webhook_events
        WHERE state IN ('done', 'discarded', 'twin') AND pruned_at IS NULL
          AND processed_at < now() - make_interval(secs => $1)
          AND processed_at >= timestamptz 'epoch' + $3 * interval '1 microsecond'
        ORDER BY processed_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_events AS e
    SET body = '', headers = '[]', pruned_at = now()
    FROM old
    WHERE e.source = old.source AND e.event_id = old.event_id
    RETURNING (extract(epoch FROM e.processed_at) * 1000000)::bigint";

/// Attempts and content keys go with their event; what people did with it stays in the audit log.
const DELETE: &str = "
    WITH old AS (
        SELECT found.source, found.event_id
        FROM unnest($1::text[], $2::float8[], $4::bigint[]) AS kept (provider, seconds, place)
        CROSS JOIN LATERAL (
            SELECT source, event_id FROM webhook_events
            WHERE pruned_at IS NOT NULL AND provider = kept.provider
              AND state IN ('done', 'discarded', 'twin')
              AND processed_at < now() - make_interval(secs => kept.seconds)
              AND processed_at >= timestamptz 'epoch' + kept.place * interval '1 microsecond'
            ORDER BY processed_at
            LIMIT $3
            FOR UPDATE SKIP LOCKED
        ) AS found
        LIMIT $3
    )
    DELETE FROM webhook_events AS e
    USING old
    WHERE e.source = old.source AND e.event_id = old.event_id
    RETURNING e.provider, (extract(epoch FROM e.processed_at) * 1000000)::bigint";

const FORGET_MINUTES: &str = "
    WITH old AS (
        SELECT minute, source, name, replica FROM stats_minute
        WHERE minute < now() - make_interval(secs => $1)
        ORDER BY minute
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM stats_minute AS s
    USING old
    WHERE (s.minute, s.source, s.name, s.replica) = (old.minute, old.source, old.name, old.replica)";

/// Empties rows that came to rest longer ago than `age`, beginning at `from`.
pub(super) async fn prune(conn: &mut PgConnection, age: Duration, from: i64) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar(PRUNE)
        .bind(age.as_secs_f64())
        .bind(i64::from(SWEPT_AT_ONCE))
        .bind(from)
        .fetch_all(conn)
        .await
}

/// Deletes emptied rows of each provider that came to rest longer ago than its age.
pub(super) async fn delete(conn: &mut PgConnection, ages: &[Age]) -> sqlx::Result<Vec<(String, i64)>> {
    sqlx::query_as(DELETE)
        .bind(ages.iter().map(|age| age.provider).collect::<Vec<_>>())
        .bind(ages.iter().map(|age| age.age.as_secs_f64()).collect::<Vec<_>>())
        .bind(i64::from(SWEPT_AT_ONCE))
        .bind(ages.iter().map(|age| age.from).collect::<Vec<_>>())
        .fetch_all(conn)
        .await
}

/// Deletes counts of minutes longer ago than `age`.
pub(super) async fn forget_minutes(conn: &mut PgConnection, age: Duration) -> sqlx::Result<u64> {
    let forgotten = sqlx::query(FORGET_MINUTES)
        .bind(age.as_secs_f64())
        .bind(i64::from(SWEPT_AT_ONCE))
        .execute(conn)
        .await?;
    Ok(forgotten.rows_affected())
}
