//! Retention in Postgres, a few rows at a time and the oldest first, straight from the indexes that hold just
//! those rows. What another session has locked is left for the next step, so a sweep waits for nobody and
//! several share the work.

use std::time::Duration;

use sqlx::PgConnection;

use crate::sql::upkeep::SWEPT_AT_ONCE;

const PRUNE: &str = "
    WITH old AS (
        SELECT source, event_id FROM webhook_events
        WHERE state IN ('done', 'discarded', 'twin') AND pruned_at IS NULL
          AND processed_at < now() - make_interval(secs => $1)
        ORDER BY processed_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_events AS e
    SET body = '', headers = '[]', pruned_at = now()
    FROM old
    WHERE e.source = old.source AND e.event_id = old.event_id";

/// Attempts and content keys go with their event; what people did with it stays in the audit log.
const DELETE: &str = "
    WITH old AS (
        SELECT found.source, found.event_id
        FROM unnest($1::text[], $2::float8[]) AS kept (provider, seconds)
        CROSS JOIN LATERAL (
            SELECT source, event_id FROM webhook_events
            WHERE pruned_at IS NOT NULL AND provider = kept.provider
              AND state IN ('done', 'discarded', 'twin')
              AND processed_at < now() - make_interval(secs => kept.seconds)
            ORDER BY processed_at
            LIMIT $3
            FOR UPDATE SKIP LOCKED
        ) AS found
        LIMIT $3
    )
    DELETE FROM webhook_events AS e
    USING old
    WHERE e.source = old.source AND e.event_id = old.event_id";

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

/// Empties rows that came to rest longer ago than `age`.
pub(super) async fn prune(conn: &mut PgConnection, age: Duration) -> sqlx::Result<u64> {
    let pruned = sqlx::query(PRUNE)
        .bind(age.as_secs_f64())
        .bind(i64::from(SWEPT_AT_ONCE))
        .execute(conn)
        .await?;
    Ok(pruned.rows_affected())
}

/// Deletes emptied rows of each provider that came to rest longer ago than its age.
pub(super) async fn delete(conn: &mut PgConnection, ages: &[(&'static str, Duration)]) -> sqlx::Result<u64> {
    let (providers, seconds): (Vec<&str>, Vec<f64>) = ages
        .iter()
        .map(|(provider, age)| (*provider, age.as_secs_f64()))
        .unzip();
    let deleted = sqlx::query(DELETE)
        .bind(providers)
        .bind(seconds)
        .bind(i64::from(SWEPT_AT_ONCE))
        .execute(conn)
        .await?;
    Ok(deleted.rows_affected())
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
