//! Upkeep in SQLite: who does a job, what was counted, and what died. Several processes may hold the file.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::{Connection, SqliteConnection};

use super::store::Sqlite;
use super::sweep;
use crate::columns::{milliseconds, signed};
use crate::sql::upkeep::{Age, Candidacy, Counts, SourceDeaths, UpkeepDialect};
use crate::{Deaths, DeliveryId, Elected, UnixMicros};

/// One statement that writes from its start: of several that ask at once the others find the row changed and
/// get nothing back.
const ELECT: &str = "
    INSERT INTO leases (name, owner, lease_until)
    VALUES ($1, $2, (SELECT now FROM clock) + $3)
    ON CONFLICT (name) DO UPDATE
    SET owner = excluded.owner,
        term = term + (owner <> excluded.owner),
        acquired_at = iif(owner = excluded.owner, acquired_at, (SELECT now FROM clock)),
        lease_until = max(lease_until, excluded.lease_until)
    WHERE owner = excluded.owner OR lease_until <= (SELECT now FROM clock)
    RETURNING term, done_until * 1000 AS done_until";

/// The row stays, so that terms go on rising. It belongs to nobody, so that nobody extends its rest.
const CONCLUDE: &str = "
    UPDATE leases
    SET owner = x'', lease_until = (SELECT now FROM clock) + $3,
        done_until = COALESCE($4 / 1000, done_until)
    WHERE name = $1 AND owner = $2";

const DONE_UNTIL: &str = "SELECT done_until * 1000 FROM leases WHERE name = $1";

/// Counts of a minute only rise, so the larger of two is the later.
const RECORD: &str = "
    INSERT INTO stats_minute (minute, source, name, replica, count)
    VALUES ($1 / 1000, $2, $3, $4, $5)
    ON CONFLICT (minute, source, name, replica) DO UPDATE SET count = max(count, excluded.count)";

pub(super) const DEATHS: &str = "
    SELECT source, event_id, last_error, died_at, deaths FROM (
        SELECT source, event_id, last_error, processed_at * 1000 AS died_at,
               count(*) OVER (PARTITION BY source) AS deaths,
               row_number() OVER (PARTITION BY source ORDER BY processed_at DESC) AS place
        FROM (
            SELECT source, event_id, last_error, processed_at FROM webhook_events
            WHERE state = 'dead' AND processed_at > $1 / 1000
              AND processed_at <= (SELECT now FROM clock) - $3
            ORDER BY processed_at DESC LIMIT $2
        )
    )
    WHERE place = 1";

#[async_trait]
impl UpkeepDialect for Sqlite {
    async fn elect(conn: &mut SqliteConnection, ask: &Candidacy<'_>) -> sqlx::Result<Elected> {
        let row: Option<(i64, Option<i64>)> = sqlx::query_as(ELECT)
            .bind(ask.name)
            .bind(&ask.owner.to_bytes()[..])
            .bind(milliseconds(ask.span))
            .fetch_optional(conn)
            .await?;
        Ok(row.map_or(Elected::No, |(term, done_until)| Elected::Yes {
            term: term.unsigned_abs(),
            done_until: done_until.map(UnixMicros),
        }))
    }

    async fn conclude(
        conn: &mut SqliteConnection,
        ask: &Candidacy<'_>,
        done_until: Option<UnixMicros>,
    ) -> sqlx::Result<bool> {
        let ours = sqlx::query(CONCLUDE)
            .bind(ask.name)
            .bind(&ask.owner.to_bytes()[..])
            .bind(milliseconds(ask.span))
            .bind(done_until.map(|UnixMicros(micros)| micros))
            .execute(conn)
            .await?;
        Ok(ours.rows_affected() == 1)
    }

    async fn prune(conn: &mut SqliteConnection, age: Duration, from: i64) -> sqlx::Result<Vec<i64>> {
        sweep::prune(conn, age, from).await
    }

    async fn delete(conn: &mut SqliteConnection, ages: &[Age]) -> sqlx::Result<Vec<(String, i64)>> {
        sweep::delete(conn, ages).await
    }

    async fn forget_minutes(conn: &mut SqliteConnection, age: Duration) -> sqlx::Result<u64> {
        sweep::forget_minutes(conn, age).await
    }

    async fn record_minute(
        conn: &mut SqliteConnection,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &Counts,
    ) -> sqlx::Result<()> {
        let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
        for ((source, name), count) in counts {
            sqlx::query(RECORD)
                .bind(minute.0)
                .bind(source)
                .bind(name)
                .bind(&replica.to_bytes()[..])
                .bind(signed(*count))
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    }

    async fn done_until(conn: &mut SqliteConnection, name: &str) -> sqlx::Result<Option<i64>> {
        let row = sqlx::query_scalar(DONE_UNTIL).bind(name).fetch_optional(conn);
        Ok(row.await?.flatten())
    }

    async fn deaths_since(conn: &mut SqliteConnection, since: UnixMicros) -> sqlx::Result<Vec<SourceDeaths>> {
        sqlx::query_as(DEATHS)
            .bind(since.0)
            .bind(signed(Deaths::COUNT_MAX))
            .bind(milliseconds(Deaths::SETTLED_AFTER))
            .fetch_all(conn)
            .await
    }
}
