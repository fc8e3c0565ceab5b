//! Upkeep on any SQL database. It runs on the desk's connections, so that it takes none from the path.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::Provider;

use super::{Dialect, SqlLedger};
use crate::columns::key;
use crate::{
    Death, Deaths, DeliveryId, Elected, Finding, LedgerError, Retention, SweepPlace, Swept, UnixMicros,
    Upkeep,
};

/// Rows that one statement of a sweep touches: few enough that it holds locks, and writes to the log, for a few
/// milliseconds only.
pub(crate) const SWEPT_AT_ONCE: u32 = 250;

/// Counts of one minute, by source and name.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// The acts of upkeep in one database's SQL. Each is atomic, and may come again when the outcome of an earlier
/// try is unknown.
#[async_trait]
pub(crate) trait UpkeepDialect: Dialect {
    /// As [`Upkeep::elect`].
    async fn elect(conn: &mut Self::Connection, ask: &Candidacy<'_>) -> sqlx::Result<Elected>;

    /// As [`Upkeep::conclude`].
    async fn conclude(
        conn: &mut Self::Connection,
        ask: &Candidacy<'_>,
        done_until: Option<UnixMicros>,
    ) -> sqlx::Result<bool>;

    /// Empties at most [`SWEPT_AT_ONCE`] rows that came to rest longer ago than this, but not before `from`.
    /// Says when each came to rest.
    async fn prune(conn: &mut Self::Connection, age: Duration, from: i64) -> sqlx::Result<Vec<i64>>;

    /// Deletes some emptied rows of each provider that are older than its may become. Says whose they were and
    /// when each came to rest.
    async fn delete(conn: &mut Self::Connection, ages: &[Age]) -> sqlx::Result<Vec<(String, i64)>>;

    /// Deletes some counts of minutes longer ago than this.
    async fn forget_minutes(conn: &mut Self::Connection, age: Duration) -> sqlx::Result<u64>;

    /// As [`Upkeep::record_minute`].
    async fn record_minute(
        conn: &mut Self::Connection,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &Counts,
    ) -> sqlx::Result<()>;

    /// As [`Upkeep::done_until`], in microseconds since 1970.
    async fn done_until(conn: &mut Self::Connection, name: &str) -> sqlx::Result<Option<i64>>;

    /// As [`Upkeep::checkup`], as far as a connection tells.
    async fn checkup(_conn: &mut Self::Connection) -> sqlx::Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    /// As [`Upkeep::checkup`], as far as it was found out by connecting.
    fn found_by_connecting(&self) -> Option<Finding> {
        None
    }

    /// As [`Upkeep::deaths_since`], the latest one of each source.
    async fn deaths_since(conn: &mut Self::Connection, since: UnixMicros) -> sqlx::Result<Vec<SourceDeaths>>;
}

/// Who asks for which job, and for how long.
pub(crate) struct Candidacy<'a> {
    pub(crate) name: &'a str,
    pub(crate) owner: DeliveryId,
    pub(crate) span: Duration,
}

/// The latest death of a source, and how many there were.
#[derive(sqlx::FromRow)]
pub(crate) struct SourceDeaths {
    source: String,
    event_id: String,
    last_error: Option<String>,
    /// Microseconds since 1970.
    died_at: i64,
    deaths: i64,
}

/// How long emptied rows of a provider stay, and from where on they are looked through.
pub(crate) struct Age {
    pub(crate) provider: &'static str,
    pub(crate) age: Duration,
    /// Microseconds since 1970.
    pub(crate) from: i64,
}

fn ages(rows: Duration, place: &SweepPlace) -> Vec<Age> {
    Provider::stored_names()
        .map(|(provider, _, window)| Age {
            provider,
            age: rows.max(window),
            from: place.rows.get(provider).copied().unwrap_or_default(),
        })
        .collect()
}

impl SweepPlace {
    fn pass(&mut self, pruned: &[i64], deleted: &[(String, i64)]) {
        self.bodies = pruned.iter().copied().fold(self.bodies, i64::max);
        for (provider, at) in deleted {
            let place = self.rows.entry(provider.clone()).or_default();
            *place = (*place).max(*at);
        }
    }
}

fn summed(rows: Vec<SourceDeaths>) -> sqlx::Result<Deaths> {
    let mut deaths = Deaths::default();
    for row in rows {
        let death = Death {
            key: key(&row.source, &row.event_id)?,
            reason: row.last_error.unwrap_or_default(),
            at: UnixMicros(row.died_at),
        };
        deaths
            .by_source
            .insert(death.key.source.clone(), row.deaths.unsigned_abs());
        if deaths.latest.as_ref().is_none_or(|latest| latest.at < death.at) {
            deaths.latest = Some(death);
        }
    }
    Ok(deaths)
}

#[async_trait]
impl<L: SqlLedger> Upkeep for L
where
    L::Dialect: UpkeepDialect,
{
    async fn checkup(&self) -> Result<Vec<Finding>, LedgerError> {
        let desk = &self.parts().desk;
        let mut found = desk.run(&(), |conn, ()| L::Dialect::checkup(conn)).await?;
        found.extend(desk.store().found_by_connecting());
        Ok(found)
    }

    async fn elect(&self, name: &str, owner: DeliveryId, lease: Duration) -> Result<Elected, LedgerError> {
        let ask = Candidacy {
            name,
            owner,
            span: lease,
        };
        self.parts()
            .desk
            .run(&ask, |conn, ask| L::Dialect::elect(conn, ask))
            .await
    }

    async fn resign(&self, name: &str, owner: DeliveryId) -> Result<(), LedgerError> {
        self.conclude(name, owner, None, Duration::ZERO).await.map(drop)
    }

    async fn conclude(
        &self,
        name: &str,
        owner: DeliveryId,
        done_until: Option<UnixMicros>,
        rest: Duration,
    ) -> Result<bool, LedgerError> {
        let ask = Candidacy {
            name,
            owner,
            span: rest,
        };
        self.parts()
            .desk
            .run(&(ask, done_until), |conn, (ask, done_until)| {
                L::Dialect::conclude(conn, ask, *done_until)
            })
            .await
    }

    /// Three statements, each committed by itself. When a connection breaks, what the one before it did may go
    /// uncounted.
    async fn sweep(&self, retention: Retention, place: &mut SweepPlace) -> Result<Swept, LedgerError> {
        let desk = &self.parts().desk;
        let pruned = desk
            .run(&(retention.bodies, place.bodies), |conn, &(age, from)| {
                L::Dialect::prune(conn, age, from)
            })
            .await?;
        let deleted = desk
            .run(&ages(retention.rows, place), |conn, ages| {
                L::Dialect::delete(conn, ages)
            })
            .await?;
        let forgotten = desk
            .run(&retention.stats, |conn, &age| {
                L::Dialect::forget_minutes(conn, age)
            })
            .await?;
        place.pass(&pruned, &deleted);
        let full = SWEPT_AT_ONCE as usize;
        Ok(Swept {
            pruned: pruned.len() as u64,
            deleted: deleted.len() as u64,
            more: pruned.len() >= full || deleted.len() >= full || forgotten >= u64::from(SWEPT_AT_ONCE),
        })
    }

    async fn record_minute(
        &self,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &Counts,
    ) -> Result<(), LedgerError> {
        self.parts()
            .desk
            .run(&(minute, replica, counts), |conn, &(minute, replica, counts)| {
                L::Dialect::record_minute(conn, minute, replica, counts)
            })
            .await
    }

    async fn done_until(&self, name: &str) -> Result<Option<UnixMicros>, LedgerError> {
        let done_until = self
            .parts()
            .desk
            .run(&name, |conn, name| L::Dialect::done_until(conn, name))
            .await?;
        Ok(done_until.map(UnixMicros))
    }

    async fn deaths_since(&self, since: UnixMicros) -> Result<Deaths, LedgerError> {
        let rows = self.parts().desk.run(&since, |conn, &since| {
            Box::pin(async move { summed(L::Dialect::deaths_since(conn, since).await?) })
        });
        rows.await
    }
}
