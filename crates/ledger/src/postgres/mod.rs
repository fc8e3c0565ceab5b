//! The ledger in Postgres: for many replicas.
//!
//! Only primitives that survive a transaction pooler are used: rows and their locks, and settings made at
//! connect. Each call is one statement where one can do it, so that it costs one round trip and one commit.

mod append;
mod fault;
mod forward;
mod look;
mod migrate;
mod queue;
mod settle;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use hookgate_webhook::EventKey;
use secrecy::SecretString;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::group::{Commit, Group, Row};
use crate::run::{Ending, Run};
use crate::sessions::Sessions;
use crate::{
    Appended, Begun, Effects, Entry, Fetch, Job, Lease, Ledger, LedgerError, Limits, NewEvent, OnFailure,
    Outcome, Queue, Settled, State,
};
use store::Postgres;

/// The ledger in Postgres 13 or later.
pub struct PostgresLedger {
    sessions: Arc<Sessions<Postgres>>,
    group: Group<Committer>,
}

impl PostgresLedger {
    /// Prepares to connect; nothing is opened before the first call, so a database that is away or hangs does
    /// not stop a start. Each call answers for itself.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] if the URL is none of Postgres's. The text does not repeat it.
    pub fn connect(url: &SecretString, limits: Limits) -> Result<Self, LedgerError> {
        let store = Postgres::parse(url, &limits)?;
        let sessions = Arc::new(Sessions::new(store, limits.connections as usize, limits));
        let group = Group::new(Committer(Arc::clone(&sessions)), limits);
        Ok(Self { sessions, group })
    }
}

/// Commits batches on the ledger's own connections.
struct Committer(Arc<Sessions<Postgres>>);

impl Commit for Committer {
    /// While one batch waits for the disk, the next is on its way.
    const LANES: usize = 2;
    /// A row that waits for a lock takes half a second; the others of its batch should not wait behind it.
    const ALONE: usize = 3;

    async fn commit(&self, rows: &[&Row], deadline: Instant) -> Result<Vec<Option<Appended>>, Fault> {
        self.0
            .once(deadline, &rows, |conn, rows| append::append(conn, rows).boxed())
            .await
    }
}

#[async_trait]
impl Ledger for PostgresLedger {
    async fn migrate(&self) -> Result<(), LedgerError> {
        migrate::migrate(&self.sessions).await
    }

    async fn append(&self, event: NewEvent, queue: Queue) -> Result<Appended, LedgerError> {
        self.group.append(Row { event, queue }).await
    }

    async fn begin(&self, event: &NewEvent, lease: Duration) -> Result<Begun, LedgerError> {
        self.sessions
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
        self.sessions
            .run(&run, |conn, run| settle::settle(conn, run).boxed())
            .await
    }

    async fn fetch(&self, want: Fetch) -> Result<Vec<Job>, LedgerError> {
        self.sessions
            .run(&want, |conn, want| queue::fetch(conn, want).boxed())
            .await
    }

    async fn heartbeat(&self, lease: &Lease, extend: Duration) -> Result<Settled, LedgerError> {
        self.sessions
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
        self.sessions
            .run(&run, |conn, run| settle::settle(conn, run).boxed())
            .await
    }

    async fn rescue(&self, attempts_max: u32) -> Result<u64, LedgerError> {
        let mut rescued = 0;
        loop {
            let some = self
                .sessions
                .run(&attempts_max, |conn, &max| queue::rescue(conn, max).boxed())
                .await?;
            rescued += some;
            if some < queue::RESCUED_AT_ONCE {
                return Ok(rescued);
            }
        }
    }

    async fn entry(&self, key: &EventKey) -> Result<Option<Entry>, LedgerError> {
        self.sessions
            .run(&key, |conn, key| look::entry(conn, key).boxed())
            .await
    }

    async fn depth(&self) -> Result<(BTreeMap<State, u64>, Duration), LedgerError> {
        self.sessions.run(&(), |conn, ()| look::depth(conn).boxed()).await
    }

    async fn probe(&self) -> Result<(), LedgerError> {
        self.sessions.run(&(), |conn, ()| look::probe(conn).boxed()).await
    }

    fn timeline(&self) -> u32 {
        self.sessions.store().timeline()
    }

    async fn close(&self) {
        self.group.close().await;
        self.sessions.close();
    }
}
