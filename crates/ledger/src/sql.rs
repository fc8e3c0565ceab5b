//! The ledger on any SQL database: every call is one act in its dialect, done on a connection within its
//! bounds. A dialect says only what differs.

pub(crate) mod operations;
pub(crate) mod upkeep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::{EventKey, SourceName};
use sqlx::migrate::MigrateError;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::bell::{Bell, Herald};
use crate::fault::Fault;
use crate::group::{Commit, Group, Row};
use crate::history::Witness;
use crate::migrate::migrate;
use crate::run::{Ending, Run};
use crate::sessions::{Sessions, Store as _};
use crate::settling::{Settlement, Settling};
use crate::{
    Appended, Begun, Effects, Entry, Fetch, History, Job, Lease, Ledger, LedgerError, Limits, NewEvent,
    OnFailure, Outcome, Queue, Rescued, Settled, State, TriesMax,
};

/// The acts of a ledger in one database's SQL. Each is atomic, and may come again when the outcome of an
/// earlier try is unknown.
#[async_trait]
pub(crate) trait Dialect: Herald {
    /// As [`Commit::LANES`].
    const LANES: usize;
    /// As [`Commit::ALONE`].
    const ALONE: usize;

    /// Runs the migrations that are missing, in one transaction, beside nobody.
    async fn migrate(conn: &mut Self::Connection) -> Result<(), MigrateError>;

    /// As [`Commit::commit`].
    async fn append(conn: &mut Self::Connection, rows: &[&Row]) -> sqlx::Result<Vec<Option<Appended>>>;

    /// As [`Ledger::begin`].
    async fn begin(conn: &mut Self::Connection, event: &NewEvent, lease: Duration) -> sqlx::Result<Begun>;

    /// As [`Ledger::adopt`].
    async fn adopt(conn: &mut Self::Connection, key: &EventKey) -> sqlx::Result<()>;

    /// As [`Ledger::fetch`].
    async fn fetch(conn: &mut Self::Connection, want: &Fetch) -> sqlx::Result<Vec<Job>>;

    /// What a fetch with this ticket leased, whose answer was lost; the leases are extended.
    async fn leased_before(conn: &mut Self::Connection, want: &Fetch) -> sqlx::Result<Vec<Job>>;

    /// As [`Ledger::heartbeat`].
    async fn heartbeat(conn: &mut Self::Connection, lease: &Lease, extend: Duration)
    -> sqlx::Result<Settled>;

    /// As [`Ledger::settle`], for a worker's run and for a forward's.
    async fn settle(conn: &mut Self::Connection, run: &Run<'_>) -> sqlx::Result<Settled>;

    /// The same for several runs, whose keys are sorted, in one transaction.
    async fn settle_all(conn: &mut Self::Connection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>>;

    /// As [`Ledger::rescue`], but may leave some for the next time.
    async fn rescue(conn: &mut Self::Connection, tries_max: &TriesMax) -> sqlx::Result<Rescued>;

    /// As [`Ledger::introduce_targets`].
    async fn introduce_targets(conn: &mut Self::Connection, names: &[String]) -> sqlx::Result<()>;

    /// As [`Ledger::target_down`].
    async fn target_down(conn: &mut Self::Connection, target: &str) -> sqlx::Result<Duration>;

    /// As [`Ledger::target_up`].
    async fn target_up(conn: &mut Self::Connection, target: &str) -> sqlx::Result<()>;

    /// As [`Ledger::paused_targets`].
    async fn paused_targets(conn: &mut Self::Connection) -> sqlx::Result<Vec<String>>;

    /// As [`Ledger::bury_held`], but may leave some for the next time.
    async fn bury_held(conn: &mut Self::Connection, target: &str, sources: &[&str]) -> sqlx::Result<u64>;

    /// As [`Ledger::entry`].
    async fn entry(conn: &mut Self::Connection, key: &EventKey) -> sqlx::Result<Option<Entry>>;

    /// As [`Ledger::depth`].
    async fn depth(conn: &mut Self::Connection) -> sqlx::Result<(BTreeMap<State, u64>, Duration)>;

    /// As [`Ledger::probe_writing`].
    async fn probe_writing(conn: &mut Self::Connection) -> sqlx::Result<()>;

    /// As [`Ledger::probe`].
    async fn probe(conn: &mut Self::Connection) -> sqlx::Result<()>;
}

/// What a ledger works with.
pub(crate) struct Parts<D: Dialect> {
    writers: Arc<Sessions<D>>,
    readers: Arc<Sessions<D>>,
    /// For people and upkeep: few, and with limits of their own.
    pub(crate) desk: Arc<Sessions<D>>,
    group: Group<Committer<D>>,
    settling: Settling<D>,
    bell: Arc<Bell<D>>,
    witness: Witness,
}

impl<D: Dialect> Parts<D> {
    /// All three may be the same.
    pub(crate) fn new(
        writers: Arc<Sessions<D>>,
        readers: Arc<Sessions<D>>,
        desk: Arc<Sessions<D>>,
        limits: Limits,
    ) -> Self {
        let bell = Bell::new(Arc::clone(&writers));
        Self {
            group: Group::new(
                Committer {
                    writers: Arc::clone(&writers),
                    bell: Arc::clone(&bell),
                },
                limits,
            ),
            settling: Settling::new(Arc::clone(&writers)),
            bell,
            witness: Witness::default(),
            writers,
            readers,
            desk,
        }
    }
}

/// A ledger that is made of such parts.
pub(crate) trait SqlLedger: Send + Sync + 'static {
    type Dialect: Dialect;

    fn parts(&self) -> &Parts<Self::Dialect>;
}

/// A fetch, and whether it was tried.
struct Look<'a> {
    want: &'a Fetch,
    tried: AtomicBool,
}

impl<'a> Look<'a> {
    fn new(want: &'a Fetch) -> Self {
        Self {
            want,
            tried: AtomicBool::new(want.ticket.was_asked()),
        }
    }

    async fn at<D: Dialect>(&self, conn: &mut D::Connection) -> sqlx::Result<Vec<Job>> {
        if self.tried.swap(true, Ordering::Relaxed) {
            let before = D::leased_before(conn, self.want).await?;
            if !before.is_empty() {
                return Ok(before);
            }
        }
        D::fetch(conn, self.want).await
    }
}

/// Commits batches on the ledger's own connections.
struct Committer<D: Dialect> {
    writers: Arc<Sessions<D>>,
    bell: Arc<Bell<D>>,
}

impl<D: Dialect> Commit for Committer<D> {
    const LANES: usize = D::LANES;
    const ALONE: usize = D::ALONE;

    async fn commit(&self, rows: &[&Row], deadline: Instant) -> Result<Vec<Option<Appended>>, Fault> {
        let found = self
            .writers
            .once(deadline, &rows, |conn, rows| D::append(conn, rows))
            .await?;
        let waits = |(row, found): (&&Row, &Option<Appended>)| {
            row.queue == Queue::ForWorker && matches!(found, Some(Appended::Accepted | Appended::Alike(_)))
        };
        if rows.iter().zip(&found).any(waits) {
            self.bell.ring();
        }
        Ok(found)
    }
}

#[async_trait]
impl<L: SqlLedger> Ledger for L {
    async fn migrate(&self) -> Result<(), LedgerError> {
        migrate(&self.parts().writers).await
    }

    async fn append(&self, event: NewEvent, queue: Queue) -> Result<Appended, LedgerError> {
        self.parts().group.append(Row { event, queue }).await
    }

    async fn begin(&self, event: &NewEvent, lease: Duration) -> Result<Begun, LedgerError> {
        let begin = &(event, lease);
        self.parts()
            .writers
            .run(begin, |conn, &(event, lease)| {
                L::Dialect::begin(conn, event, lease)
            })
            .await
    }

    async fn adopt(&self, key: &EventKey) -> Result<(), LedgerError> {
        self.parts()
            .writers
            .run(key, |conn, key| L::Dialect::adopt(conn, key))
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
        self.parts()
            .writers
            .run(&run, |conn, run| L::Dialect::settle(conn, run))
            .await
    }

    async fn fetch(&self, want: Fetch) -> Result<Vec<Job>, LedgerError> {
        self.parts()
            .writers
            .run(&Look::new(&want), |conn, look| {
                Box::pin(look.at::<L::Dialect>(conn))
            })
            .await
    }

    async fn heartbeat(&self, lease: &Lease, extend: Duration) -> Result<Settled, LedgerError> {
        let heartbeat = &(lease, extend);
        self.parts()
            .writers
            .run(heartbeat, |conn, &(lease, extend)| {
                L::Dialect::heartbeat(conn, lease, extend)
            })
            .await
    }

    async fn settle(
        &self,
        lease: &Lease,
        outcome: Outcome,
        effects: Effects,
    ) -> Result<Settled, LedgerError> {
        let settlement = Settlement {
            lease: lease.clone(),
            outcome,
            effects,
        };
        self.parts().settling.settle(settlement).await
    }

    async fn rescue(&self, tries_max: &TriesMax) -> Result<Rescued, LedgerError> {
        let mut rescued = Rescued::default();
        loop {
            let some = self
                .parts()
                .writers
                .run(tries_max, |conn, max| L::Dialect::rescue(conn, max))
                .await?;
            if some.freed == 0 {
                return Ok(rescued);
            }
            rescued.freed += some.freed;
            rescued.dead += some.dead;
        }
    }

    async fn introduce_targets(&self, names: &[String]) -> Result<(), LedgerError> {
        self.parts()
            .writers
            .run(&names, |conn, names| L::Dialect::introduce_targets(conn, names))
            .await
    }

    async fn target_down(&self, target: &str) -> Result<Duration, LedgerError> {
        self.parts()
            .writers
            .run(&target, |conn, target| L::Dialect::target_down(conn, target))
            .await
    }

    async fn target_up(&self, target: &str) -> Result<(), LedgerError> {
        self.parts()
            .writers
            .run(&target, |conn, target| L::Dialect::target_up(conn, target))
            .await
    }

    async fn paused_targets(&self) -> Result<Vec<String>, LedgerError> {
        self.parts()
            .readers
            .run(&(), |conn, ()| L::Dialect::paused_targets(conn))
            .await
    }

    async fn bury_held(&self, target: &str, sources: &[SourceName]) -> Result<u64, LedgerError> {
        let sources: Vec<&str> = sources.iter().map(SourceName::as_str).collect();
        let mut buried = 0;
        loop {
            let some = self
                .parts()
                .writers
                .run(&(target, sources.as_slice()), |conn, &(target, sources)| {
                    L::Dialect::bury_held(conn, target, sources)
                })
                .await?;
            if some == 0 {
                return Ok(buried);
            }
            buried += some;
        }
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.parts().bell.listen()
    }

    async fn entry(&self, key: &EventKey) -> Result<Option<Entry>, LedgerError> {
        self.parts()
            .readers
            .run(key, |conn, key| L::Dialect::entry(conn, key))
            .await
    }

    async fn depth(&self) -> Result<(BTreeMap<State, u64>, Duration), LedgerError> {
        self.parts()
            .readers
            .run(&(), |conn, ()| L::Dialect::depth(conn))
            .await
    }

    async fn probe(&self) -> Result<(), LedgerError> {
        self.parts()
            .readers
            .run(&(), |conn, ()| L::Dialect::probe(conn))
            .await
    }

    async fn probe_writing(&self) -> Result<(), LedgerError> {
        self.parts()
            .writers
            .run(&(), |conn, ()| L::Dialect::probe_writing(conn))
            .await
    }

    fn timeline(&self) -> u32 {
        self.parts().writers.store().timeline()
    }

    fn history(&self) -> watch::Receiver<History> {
        let parts = self.parts();
        parts.witness.watch(&parts.writers)
    }

    async fn close(&self) {
        let parts = self.parts();
        parts.group.close().await;
        parts.bell.close();
        parts.witness.close();
        parts.writers.close();
        parts.readers.close();
        parts.desk.close();
    }
}
