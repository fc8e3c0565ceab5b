//! What keeps the ledger small and its keepers informed. Only one replica should do each of these jobs at a
//! time; a row with a lease elects it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::{EventKey, SourceName};

use crate::{DeliveryId, LedgerError, UnixMicros};

/// Whether this process is the one that does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Elected {
    /// It is, until the lease ends.
    Yes {
        /// Rises with each new holder.
        term: u64,
        /// Up to which moment the job is done, as [`Upkeep::conclude`] last said; `None` if nobody ever did.
        done_until: Option<UnixMicros>,
    },
    /// Another one is, or the job rests.
    No,
}

/// How long finished events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Bodies and headers, counted from when the event came to rest.
    pub bodies: Duration,
    /// Rows, counted in the same way. A row stays longer where its provider can send it again for longer.
    pub rows: Duration,
    /// Counts per minute.
    pub stats: Duration,
}

/// What one step of a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Swept {
    /// Rows whose body and headers were emptied.
    pub pruned: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// Whether there may be more to do at once.
    pub more: bool,
}

/// Where a sweep is. Each begins at the oldest row, so nobody needs to keep it; to go on from it spares the
/// database what stands in its indexes of the rows that were swept just before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepPlace {
    /// When the body emptied last came to rest, microseconds since 1970.
    pub(crate) bodies: i64,
    /// When the row deleted last came to rest, by provider.
    pub(crate) rows: BTreeMap<String, i64>,
}

/// Events that died, for an alert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deaths {
    /// How many, by source. Counting stops at [`Deaths::COUNT_MAX`] in all, the latest ones.
    pub by_source: BTreeMap<SourceName, u64>,
    /// The latest one.
    pub latest: Option<Death>,
}

impl Deaths {
    /// How far deaths are counted: a number beyond this says nothing more to a person.
    pub const COUNT_MAX: u64 = 10_000;

    /// How old a death is before it is counted. Its time is that of the statement or transaction that wrote it,
    /// which others see later. After so long each has ended, whatever it waited for: so no death turns up behind
    /// one that was told before. Longer than the server bears the silence of a transaction, and two statements.
    pub const SETTLED_AFTER: Duration = Duration::from_secs(8);
}

/// An event that died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// Which one.
    pub key: EventKey,
    /// Why, as `last_error` says; empty if it does not.
    pub reason: String,
    /// When.
    pub at: UnixMicros,
}

/// What an operator of the database should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A pooler lends a session for each transaction.
    LentByTransaction,
    /// Whether one does could not be found out; everything is done as if.
    LendingUnknown,
    /// It is a standby, and keeps no events.
    Standby,
    /// Its commits do not wait for the disk by themselves; ours do. Its word for that.
    CommitsEarly(String),
    /// Standbys follow it, and no commit waits for one: a failover may lose the latest.
    StandbysBehind(u64),
    /// It is older than what is supported.
    Old {
        /// Its version.
        version: String,
        /// The oldest major version that is.
        oldest: u32,
    },
}

/// The ledger as its keepers use it.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Asks to be the one that does the job `name` for the time `lease`; asked again by the holder, it extends
    /// and never shortens. Asking twice says the same.
    async fn elect(&self, name: &str, owner: DeliveryId, lease: Duration) -> Result<Elected, LedgerError>;

    /// Gives a job back, if it is ours, so that another one need not wait for the lease to end.
    async fn resign(&self, name: &str, owner: DeliveryId) -> Result<(), LedgerError>;

    /// Gives a job back, if it is ours, as done up to a moment (`None`: not further than before), and lets it
    /// rest: for so long nobody is elected, not even we. False if it was no longer ours.
    async fn conclude(
        &self,
        name: &str,
        owner: DeliveryId,
        done_until: Option<UnixMicros>,
        rest: Duration,
    ) -> Result<bool, LedgerError>;

    /// One small step of retention: empties the bodies of events finished long ago, then deletes rows finished
    /// very long ago. Never touches a row that is not finished, nor a dead letter. Any number may sweep at
    /// once and be stopped anywhere: each step is committed by itself, and the next sweep finds what is left,
    /// also what somebody held when this one passed by.
    async fn sweep(&self, retention: Retention, place: &mut SweepPlace) -> Result<Swept, LedgerError>;

    /// Writes what this process counted in a minute, by source and name: the minute's counts so far. Written
    /// twice, or late, it says the same.
    async fn record_minute(
        &self,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &BTreeMap<(String, String), u64>,
    ) -> Result<(), LedgerError>;

    /// Up to which moment a job is done, as [`Upkeep::conclude`] last said, whoever holds it.
    async fn done_until(&self, name: &str) -> Result<Option<UnixMicros>, LedgerError>;

    /// Looks at the database as a whole. Reads no table of ours: there need be none.
    async fn checkup(&self) -> Result<Vec<Finding>, LedgerError>;

    /// Events that died after this moment and are still dead. Whoever asks again since the latest of them misses
    /// none and is told none twice: the last [`Deaths::SETTLED_AFTER`] are left for later.
    async fn deaths_since(&self, since: UnixMicros) -> Result<Deaths, LedgerError>;
}
