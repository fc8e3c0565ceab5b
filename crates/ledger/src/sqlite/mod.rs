//! The ledger in SQLite: for one machine, embedded.
//!
//! The file is written in WAL mode with `synchronous = FULL`, so a commit is on the disk when it returns. A
//! file has one writer at a time; here one connection writes and others read, and other processes that hold
//! the same file take turns by SQLite's lock. Every transaction that writes says so at its start
//! (`BEGIN IMMEDIATE`): one that reads first and writes later can be refused half way.

mod append;
mod fault;
mod forward;
mod look;
mod migrate;
mod queue;
mod settle;
mod store;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use hookgate_webhook::EventKey;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::group::{Commit, Group, Row};
use crate::run::{Ending, Run};
use crate::sessions::Sessions;
use crate::{
    Appended, Begun, Effects, Entry, Fetch, Job, Lease, Ledger, LedgerError, Limits, NewEvent, OnFailure,
    Outcome, Queue, Settled, State,
};
use store::Sqlite;

/// Connections that look. Looking is rare and short.
const READERS: usize = 2;

/// The ledger in a SQLite file.
pub struct SqliteLedger {
    writer: Arc<Sessions<Sqlite>>,
    readers: Sessions<Sqlite>,
    group: Group<Committer>,
}

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
        let writer = Sessions::new(
            store,
            1,
            Limits {
                pool_wait: limits.append,
                ..limits
            },
        );
        let writer = Arc::new(writer);
        let group = Group::new(Committer(Arc::clone(&writer)), limits);
        Ok(Self {
            writer,
            readers,
            group,
        })
    }
}

/// Commits batches through the one writer.
struct Committer(Arc<Sessions<Sqlite>>);

impl Commit for Committer {
    const LANES: usize = 1;
    const ALONE: usize = 1;

    async fn commit(&self, rows: &[&Row], deadline: Instant) -> Result<Vec<Option<Appended>>, Fault> {
        self.0
            .once(deadline, &rows, |conn, rows| append::append(conn, rows).boxed())
            .await
    }
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn migrate(&self) -> Result<(), LedgerError> {
        migrate::migrate(&self.writer).await
    }

    async fn append(&self, event: NewEvent, queue: Queue) -> Result<Appended, LedgerError> {
        self.group.append(Row { event, queue }).await
    }

    async fn begin(&self, event: &NewEvent, lease: Duration) -> Result<Begun, LedgerError> {
        self.writer
            .run(&(event, lease), |conn, &(event, lease)| {
                forward::begin(conn, event, lease).boxed()
            })
            .await
    }

    async fn finish(&self, lease: &Lease) -> Result<Settled, LedgerError> {
        self.settle(lease, Outcome::Done, Effects::default()).await
    }

    async fn release(&self, lease: &Lease, error: &str, next: OnFailure) -> Result<Settled, LedgerError> {
        let run = Run {
            lease,
            ending: Ending::released(error, next),
            effects: &[],
        };
        self.writer
            .run(&run, |conn, run| settle::settle(conn, run).boxed())
            .await
    }

    async fn fetch(&self, want: Fetch) -> Result<Vec<Job>, LedgerError> {
        self.writer
            .run(&want, |conn, want| queue::fetch(conn, want).boxed())
            .await
    }

    async fn heartbeat(&self, lease: &Lease, extend: Duration) -> Result<Settled, LedgerError> {
        self.writer
            .run(&(lease, extend), |conn, &(lease, extend)| {
                queue::heartbeat(conn, lease, extend).boxed()
            })
            .await
    }

    async fn settle(
        &self,
        lease: &Lease,
        outcome: Outcome,
        effects: Effects,
    ) -> Result<Settled, LedgerError> {
        let run = Run {
            lease,
            ending: Ending::of(&outcome),
            effects: &effects.outbox,
        };
        self.writer
            .run(&run, |conn, run| settle::settle(conn, run).boxed())
            .await
    }

    async fn rescue(&self, attempts_max: u32) -> Result<u64, LedgerError> {
        self.writer
            .run(&attempts_max, |conn, &max| queue::rescue(conn, max).boxed())
            .await
    }

    async fn entry(&self, key: &EventKey) -> Result<Option<Entry>, LedgerError> {
        self.readers
            .run(&key, |conn, key| look::entry(conn, key).boxed())
            .await
    }

    async fn depth(&self) -> Result<(BTreeMap<State, u64>, Duration), LedgerError> {
        self.readers.run(&(), |conn, ()| look::depth(conn).boxed()).await
    }

    async fn probe(&self) -> Result<(), LedgerError> {
        self.readers.run(&(), |conn, ()| look::probe(conn).boxed()).await
    }

    fn timeline(&self) -> u32 {
        0
    }

    async fn close(&self) {
        self.group.close().await;
        self.writer.close();
        self.readers.close();
    }
}
