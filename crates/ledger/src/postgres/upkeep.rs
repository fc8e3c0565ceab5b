//! Upkeep in Postgres: who does a job, what was counted, and what died.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::PgConnection;

use super::store::Postgres;
use super::{checkup, sweep};
use crate::columns::signed;
use crate::sessions::Tenure;
use crate::sql::upkeep::{Age, Candidacy, Counts, SourceDeaths, UpkeepDialect};
use crate::{Deaths, DeliveryId, Elected, Finding, UnixMicros};

/// One statement, so that it needs no session of its own. A row that ran out is taken as it stands; of several
/// that ask at once the others find it changed and get nothing back.
const ELECT: &str = "
    INSERT INTO leases AS held (name, owner, lease_until)
    VALUES ($1, $2, now() + make_interval(secs => $3))
    ON CONFLICT (name) DO UPDATE
    SET owner = excluded.owner,
        term = held.term + CASE WHEN held.owner = excluded.owner THEN 0 ELSE 1 END,
        acquired_at = CASE WHEN held.owner = excluded.owner THEN held.acquired_at ELSE now() END,
        lease_until = greatest(held.lease_until, excluded.lease_until)
    WHERE held.owner = excluded.owner OR held.lease_until <= now()
    RETURNING term, (extract(epoch FROM done_until) * 1000000)::bigint AS done_until";

/// The row stays, so that terms go on rising. It belongs to nobody, so that nobody extends its rest.
const CONCLUDE: &str = "
    UPDATE leases
    SET owner = '', lease_until = now() + make_interval(secs => $3),
        done_until = COALESCE(timestamptz 'epoch' + $4 * interval '1 microsecond', done_until)
    WHERE name = $1 AND owner = $2";

const DONE_UNTIL: &str =
    "SELECT (extract(epoch FROM done_until) * 1000000)::bigint FROM leases WHERE name = $1";

/// Counts of a minute only rise, so the larger of two is the later.
const RECORD: &str = "
    INSERT INTO stats_minute (minute, source, name, replica, count)
    SELECT to_timestamp($1 / 1000000), source, name, $2, count
    FROM unnest($3::text[], $4::text[], $5::bigint[]) AS counted (source, name, count)
    ORDER BY source, name
    ON CONFLICT (minute, source, name, replica)
    DO UPDATE SET count = greatest(stats_minute.count, excluded.count)";

const DEATHS: &str = "
    SELECT source, event_id, last_error, died_at, deaths FROM (
        SELECT source, event_id, last_error, (extract(epoch FROM processed_at) * 1000000)::bigint AS died_at,
               count(*) OVER (PARTITION BY source) AS deaths,
               row_number() OVER (PARTITION BY source ORDER BY processed_at DESC) AS place
        FROM (
            SELECT source, event_id, last_error, processed_at FROM webhook_events
            WHERE state = 'dead' AND processed_at > timestamptz 'epoch' + $1 * interval '1 microsecond'
              AND processed_at <= now() - make_interval(secs => $3)
            ORDER BY processed_at DESC LIMIT $2
        ) AS dead
    ) AS counted
    WHERE place = 1";

#[async_trait]
impl UpkeepDialect for Postgres {
    async fn elect(conn: &mut PgConnection, ask: &Candidacy<'_>) -> sqlx::Result<Elected> {
        let row: Option<(i64, Option<i64>)> = sqlx::query_as(ELECT)
            .bind(ask.name)
            .bind(ask.owner.to_bytes())
            .bind(ask.span.as_secs_f64())
            .fetch_optional(conn)
            .await?;
        Ok(row.map_or(Elected::No, |(term, done_until)| Elected::Yes {
            term: term.unsigned_abs(),
            done_until: done_until.map(UnixMicros),
        }))
    }

    async fn conclude(
        conn: &mut PgConnection,
        ask: &Candidacy<'_>,
        done_until: Option<UnixMicros>,
    ) -> sqlx::Result<bool> {
        let ours = sqlx::query(CONCLUDE)
            .bind(ask.name)
            .bind(ask.owner.to_bytes())
            .bind(ask.span.as_secs_f64())
            .bind(done_until.map(|UnixMicros(micros)| micros))
            .execute(conn)
            .await?;
        Ok(ours.rows_affected() == 1)
    }

    async fn prune(conn: &mut PgConnection, age: Duration, from: i64) -> sqlx::Result<Vec<i64>> {
        sweep::prune(conn, age, from).await
    }

    async fn delete(conn: &mut PgConnection, ages: &[Age]) -> sqlx::Result<Vec<(String, i64)>> {
        sweep::delete(conn, ages).await
    }

    async fn forget_minutes(conn: &mut PgConnection, age: Duration) -> sqlx::Result<u64> {
        sweep::forget_minutes(conn, age).await
    }

    async fn record_minute(
        conn: &mut PgConnection,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &Counts,
    ) -> sqlx::Result<()> {
        let sources: Vec<&str> = counts.keys().map(|(source, _)| &**source).collect();
        let names: Vec<&str> = counts.keys().map(|(_, name)| &**name).collect();
        let numbers: Vec<i64> = counts.values().copied().map(signed).collect();
        sqlx::query(RECORD)
            .bind(minute.0)
            .bind(replica.to_bytes())
            .bind(sources)
            .bind(names)
            .bind(numbers)
            .execute(conn)
            .await?;
        Ok(())
    }

    async fn done_until(conn: &mut PgConnection, name: &str) -> sqlx::Result<Option<i64>> {
        let row = sqlx::query_scalar(DONE_UNTIL).bind(name).fetch_optional(conn);
        Ok(row.await?.flatten())
    }

    async fn checkup(conn: &mut PgConnection) -> sqlx::Result<Vec<Finding>> {
        checkup::checkup(conn).await
    }

    fn found_by_connecting(&self) -> Option<Finding> {
        match self.tenure() {
            None => Some(Finding::LendingUnknown),
            Some(Tenure::Lent) => Some(Finding::LentByTransaction),
            Some(Tenure::Kept) => None,
        }
    }

    async fn deaths_since(conn: &mut PgConnection, since: UnixMicros) -> sqlx::Result<Vec<SourceDeaths>> {
        sqlx::query_as(DEATHS)
            .bind(since.0)
            .bind(signed(Deaths::COUNT_MAX))
            .bind(Deaths::SETTLED_AFTER.as_secs_f64())
            .fetch_all(conn)
            .await
    }
}
