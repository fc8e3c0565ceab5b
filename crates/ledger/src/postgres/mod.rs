//! The ledger in Postgres: for many replicas.
//!
//! Only primitives that survive a transaction pooler are used: rows and their locks. Each call is one statement
//! where one can do it, so that it costs one round trip and one commit; behind such a pooler it is a transaction.

mod append;
mod checkup;
mod fault;
mod forward;
mod herald;
mod lending;
mod look;
mod migrate;
mod operations;
mod queue;
mod settle;
mod store;
mod sweep;
mod targets;
mod twins;
mod upkeep;
mod witness;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::EventKey;
use secrecy::SecretString;
use sqlx::PgConnection;
use sqlx::migrate::MigrateError;

use crate::group::Row;
use crate::run::Run;
use crate::sessions::Sessions;
use crate::sql::{Dialect, Parts, SqlLedger};
use crate::{
    Appended, Begun, Entry, Fetch, Job, Lease, LedgerError, Limits, NewEvent, Rescued, Settled, State,
    TriesMax,
};
use store::Postgres;

/// Connections for people and upkeep, opened when first needed.
const DESK_CONNECTIONS: usize = 3;

/// The ledger in Postgres 13 or later.
pub struct PostgresLedger(Parts<Postgres>);

impl PostgresLedger {
    /// Prepares to connect; nothing is opened before the first call, so a database that is away or hangs does
    /// not stop a start. Each call answers for itself.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] if the URL is none of Postgres's. The text does not repeat it.
    pub fn connect(url: &SecretString, limits: Limits) -> Result<Self, LedgerError> {
        let store = Postgres::parse(url, &limits)?;
        let desk_limits = limits.at_the_desk();
        let desk = Sessions::new(store.within(desk_limits), DESK_CONNECTIONS, desk_limits);
        let sessions = Arc::new(Sessions::new(store, limits.connections as usize, limits));
        Ok(Self(Parts::new(
            Arc::clone(&sessions),
            sessions,
            Arc::new(desk),
            limits,
        )))
    }
}

impl SqlLedger for PostgresLedger {
    type Dialect = Postgres;

    fn parts(&self) -> &Parts<Postgres> {
        &self.0
    }
}

#[async_trait]
impl Dialect for Postgres {
    /// While one batch waits for the disk, the next is on its way.
    const LANES: usize = 2;
    /// A row that waits for a lock takes half a second; the others of its batch should not wait behind it.
    const ALONE: usize = 3;

    async fn migrate(conn: &mut PgConnection) -> Result<(), MigrateError> {
        migrate::migrate(conn).await
    }

    async fn append(conn: &mut PgConnection, rows: &[&Row]) -> sqlx::Result<Vec<Option<Appended>>> {
        append::append(conn, rows).await
    }

    async fn begin(conn: &mut PgConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Begun> {
        forward::begin(conn, event, lease).await
    }

    async fn adopt(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<()> {
        forward::adopt(conn, key).await
    }

    async fn fetch(conn: &mut PgConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
        queue::fetch(conn, want).await
    }

    async fn leased_before(conn: &mut PgConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
        queue::leased_before(conn, want).await
    }

    async fn heartbeat(conn: &mut PgConnection, lease: &Lease, extend: Duration) -> sqlx::Result<Settled> {
        queue::heartbeat(conn, lease, extend).await
    }

    async fn settle(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
        settle::settle(conn, run).await
    }

    async fn settle_all(conn: &mut PgConnection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>> {
        settle::settle_all(conn, runs).await
    }

    async fn rescue(conn: &mut PgConnection, tries_max: &TriesMax) -> sqlx::Result<Rescued> {
        queue::rescue(conn, tries_max).await
    }

    async fn introduce_targets(conn: &mut PgConnection, names: &[String]) -> sqlx::Result<()> {
        targets::introduce(conn, names).await
    }

    async fn target_down(conn: &mut PgConnection, target: &str) -> sqlx::Result<Duration> {
        targets::down(conn, target).await
    }

    async fn target_up(conn: &mut PgConnection, target: &str) -> sqlx::Result<()> {
        targets::up(conn, target).await
    }

    async fn paused_targets(conn: &mut PgConnection) -> sqlx::Result<Vec<String>> {
        targets::paused(conn).await
    }

    async fn bury_held(conn: &mut PgConnection, target: &str, sources: &[&str]) -> sqlx::Result<u64> {
        targets::bury(conn, target, sources).await
    }

    async fn entry(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<Entry>> {
        look::entry(conn, key).await
    }

    async fn depth(conn: &mut PgConnection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)> {
        look::depth(conn).await
    }

    async fn probe_writing(conn: &mut PgConnection) -> sqlx::Result<()> {
        look::probe_writing(conn).await
    }

    async fn probe(conn: &mut PgConnection) -> sqlx::Result<()> {
        look::probe(conn).await
    }
}
