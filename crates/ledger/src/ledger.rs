//! The seam between the path and whatever keeps the events.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::{EventKey, SourceName};
use tokio::sync::watch;

use crate::{
    Appended, Begun, Effects, Entry, Fetch, History, Job, Lease, LedgerError, NewEvent, OnFailure, Outcome,
    Queue, Rescued, Settled, State, TriesMax,
};

/// The bounds of a ledger. Beyond them it answers [`LedgerError::Unavailable`] instead of queueing on.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A whole append, from call to answer. `HOOKGATE_LEDGER_TIMEOUT`, 2 s.
    pub append: Duration,
    /// Waiting for a pooled connection, 500 ms.
    pub pool_wait: Duration,
    /// Waiting for a lock, 500 ms.
    pub lock: Duration,
    /// One statement, 1 s.
    pub statement: Duration,
    /// One statement of a search or of upkeep, 5 s.
    pub search: Duration,
    /// Pooled connections, 8.
    pub connections: u32,
    /// Rows of one group commit, 64.
    pub batch_rows: usize,
    /// Bytes of bodies of one group commit, 8 MiB.
    pub batch_bytes: usize,
    /// Appends waiting for a group, 4,096; beyond: unavailable at once.
    pub waiters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            append: Duration::from_secs(2),
            pool_wait: Duration::from_millis(500),
            lock: Duration::from_millis(500),
            statement: Duration::from_secs(1),
            search: Duration::from_secs(5),
            connections: 8,
            batch_rows: 64,
            batch_bytes: 8 << 20,
            waiters: 4096,
        }
    }
}

impl Limits {
    /// The limits of what people and upkeep do: a search over many rows may take longer than an append.
    pub(crate) fn at_the_desk(self) -> Self {
        Self {
            append: self.append.max(Duration::from_secs(10)),
            pool_wait: self.pool_wait.max(Duration::from_secs(2)),
            statement: self.search,
            ..self
        }
    }
}

/// The durable record of events.
///
/// Guarantee: when a call returns `Ok`, what it says is committed and survives a crash of anything but
/// the disk. One key has one row for ever; at most one lease on it is valid at a time; `settle`, `finish`
/// and `release` by anyone but the lease's owner change nothing.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Brings the schema up to date, under a lock: replicas that start together migrate once.
    async fn migrate(&self) -> Result<(), LedgerError>;

    /// Appends one event, grouped with others that wait at the same time.
    async fn append(&self, event: NewEvent, queue: Queue) -> Result<Appended, LedgerError>;

    /// Begins a forward: inserts the row as running, or takes over a failed or expired one.
    async fn begin(&self, event: &NewEvent, lease: Duration) -> Result<Begun, LedgerError>;

    /// Makes a forward's row that is not finished the workers' own: a failed one is queued, a running one will
    /// be if it fails or dies. For an inbox that meets it: its 200 must not rest on somebody else's next try.
    async fn adopt(&self, key: &EventKey) -> Result<(), LedgerError>;

    /// Ends a forward that took effect.
    async fn finish(&self, lease: &Lease) -> Result<Settled, LedgerError>;

    /// Ends a forward that failed.
    async fn release(&self, lease: &Lease, error: &str, next: OnFailure) -> Result<Settled, LedgerError>;

    /// Leases events that are due; attempts rise here. They come in the order of their turns: the first of each
    /// source, then the second of each, and so on; [`Fetch`] says how a source mixes its own.
    async fn fetch(&self, want: Fetch) -> Result<Vec<Job>, LedgerError>;

    /// Extends a lease while its run goes on.
    async fn heartbeat(&self, lease: &Lease, extend: Duration) -> Result<Settled, LedgerError>;

    /// Ends a run: its state, its attempt row and its effects commit together or not at all.
    async fn settle(&self, lease: &Lease, outcome: Outcome, effects: Effects)
    -> Result<Settled, LedgerError>;

    /// Frees rows whose owner died: inbox rows are queued again, or die if their tries are used up; forward rows
    /// fail, or are queued where the provider never tries again.
    async fn rescue(&self, tries_max: &TriesMax) -> Result<Rescued, LedgerError>;

    /// Writes down which targets there are, so that people can be told when they misspell one.
    async fn introduce_targets(&self, names: &[String]) -> Result<(), LedgerError>;

    /// Writes down that a target is away, if nobody did yet, and says for how long it has been.
    async fn target_down(&self, target: &str) -> Result<Duration, LedgerError>;

    /// Writes down that a target is there.
    async fn target_up(&self, target: &str) -> Result<(), LedgerError>;

    /// Names of the targets that a person has paused.
    async fn paused_targets(&self) -> Result<Vec<String>, LedgerError>;

    /// Buries events that nobody could try for 72 h, since their target was away all that time. Says how many.
    async fn bury_held(&self, target: &str, sources: &[SourceName]) -> Result<u64, LedgerError>;

    /// Changes whenever events may have become due: appended here or, as far as the database passes such news
    /// on, by another process. A hint, not a promise: who waits must also look by itself from time to time.
    fn arrivals(&self) -> watch::Receiver<u64>;

    /// Looks at one row.
    async fn entry(&self, key: &EventKey) -> Result<Option<Entry>, LedgerError>;

    /// Rows per state that are not finished, and the age of the oldest that is due: for gauges. Counts stop at
    /// 100,000, with `queued` and `parked` counted together: a gauge that stands there means "or more".
    async fn depth(&self) -> Result<(BTreeMap<State, u64>, Duration), LedgerError>;

    /// Whether it would answer now.
    async fn probe(&self) -> Result<(), LedgerError>;

    /// Whether it would keep an event now: writes, and waits for the disk. One that is full, or a standby, still
    /// answers what only looks.
    async fn probe_writing(&self) -> Result<(), LedgerError>;

    /// The Postgres timeline seen at the latest connect; 0 for SQLite.
    fn timeline(&self) -> u32;

    /// Which history is written now, from now on watched by a connection of its own: that a server is lost is told
    /// at once where connections break, and after two seconds where nothing is heard. A done mark of
    /// another history is void; while this is in doubt none counts.
    fn history(&self) -> watch::Receiver<History>;

    /// Finishes what is in hand and closes the connections.
    async fn close(&self);
}
