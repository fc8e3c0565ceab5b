//! The ledger in SQLite: for one machine, embedded.
//!
//! The file is written in WAL mode with `synchronous = FULL`, so a commit is on the disk when it returns. A
//! file has one writer at a time; here one connection writes and others read, and other processes that hold
//! the same file take turns by SQLite's lock. Every transaction that writes says so at its start
//! (`BEGIN IMMEDIATE`): one that reads first and writes later can be refused half way.

mod append;
mod event;
mod fault;
mod forward;
mod look;
mod migrate;
mod operations;
#[cfg(test)]
mod plans;
mod queue;
mod settle;
mod store;
mod sweep;
mod targets;
mod twins;
mod upkeep;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::EventKey;
use sqlx::SqliteConnection;
use sqlx::migrate::MigrateError;

use crate::group::Row;
use crate::run::Run;
use crate::sessions::Sessions;
use crate::sql::{Dialect, Parts, SqlLedger};
use crate::{
    Appended, Begun, Entry, Fetch, Job, Lease, LedgerError, Limits, NewEvent, Rescued, Settled, State,
    TriesMax,
};
use store::Sqlite;

/// Connections that look. Looking is rare and short.
const READERS: usize = 2;

/// The ledger in a SQLite file.
pub struct SqliteLedger(Parts<Sqlite>);

impl SqliteLedger {
    /// Makes sure that the file can be written. Its database is opened by the first call.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] if the folder does not exist or the file cannot be written.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, LedgerError> {
        let store = Sqlite::at(path, &limits)?;
        let readers = Sessions::new(store.clone(), READERS, limits);
        // All calls share the one writer, so to wait for it is to wait for one's turn: only the limit of
        // the whole call counts.
        let one_by_one = Limits {
            pool_wait: limits.append,
            ..limits
        };
        let writer = Sessions::new(store.clone(), 1, one_by_one);
        // A long search must hold up neither the writer nor those who look; a change takes its turn by the lock.
        let desk = Sessions::new(store, 1, limits.at_the_desk());
        Ok(Self(Parts::new(
            Arc::new(writer),
            Arc::new(readers),
            Arc::new(desk),
            limits,
        )))
    }
}

impl SqlLedger for SqliteLedger {
    type Dialect = Sqlite;

    fn parts(&self) -> &Parts<Sqlite> {
        &self.0
    }
}

#[async_trait]
impl Dialect for Sqlite {
    const LANES: usize = 1;
    const ALONE: usize = 1;

    async fn migrate(conn: &mut SqliteConnection) -> Result<(), MigrateError> {
        migrate::migrate(conn).await
    }

    async fn append(conn: &mut SqliteConnection, rows: &[&Row]) -> sqlx::Result<Vec<Option<Appended>>> {
        append::append(conn, rows).await
    }

    async fn begin(conn: &mut SqliteConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Begun> {
        forward::begin(conn, event, lease).await
    }

    async fn adopt(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<()> {
        forward::adopt(conn, key).await
    }

    async fn fetch(conn: &mut SqliteConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
        queue::fetch(conn, want).await
    }

    async fn leased_before(conn: &mut SqliteConnection, want: &Fetch) -> sqlx::Result<Vec<Job>> {
        queue::leased_before(conn, want).await
    }

    async fn heartbeat(
        conn: &mut SqliteConnection,
        lease: &Lease,
        extend: Duration,
    ) -> sqlx::Result<Settled> {
        queue::heartbeat(conn, lease, extend).await
    }

    async fn settle(conn: &mut SqliteConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
        settle::settle(conn, run).await
    }

    async fn settle_all(conn: &mut SqliteConnection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>> {
        settle::settle_all(conn, runs).await
    }

    async fn rescue(conn: &mut SqliteConnection, tries_max: &TriesMax) -> sqlx::Result<Rescued> {
        queue::rescue(conn, tries_max).await
    }

    async fn introduce_targets(conn: &mut SqliteConnection, names: &[String]) -> sqlx::Result<()> {
        targets::introduce(conn, names).await
    }

    async fn target_down(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<Duration> {
        targets::down(conn, target).await
    }

    async fn target_up(conn: &mut SqliteConnection, target: &str) -> sqlx::Result<()> {
        targets::up(conn, target).await
    }

    async fn paused_targets(conn: &mut SqliteConnection) -> sqlx::Result<Vec<String>> {
        targets::paused(conn).await
    }

    async fn bury_held(conn: &mut SqliteConnection, target: &str, sources: &[&str]) -> sqlx::Result<u64> {
        targets::bury(conn, target, sources).await
    }

    async fn entry(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<Entry>> {
        look::entry(conn, key).await
    }

    async fn depth(conn: &mut SqliteConnection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)> {
        look::depth(conn).await
    }

    async fn probe_writing(conn: &mut SqliteConnection) -> sqlx::Result<()> {
        look::probe_writing(conn).await
    }

    async fn probe(conn: &mut SqliteConnection) -> sqlx::Result<()> {
        look::probe(conn).await
    }
}
