//! What keeps the ledger small and its keepers informed. Only one replica should do each of these jobs at a
//! time; a row with a lease elects it.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::{EventKey, SourceName};

use crate::{DeliveryId, LedgerError, UnixMicros};

/// Whether this process is the one that does a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Elected {
    /// It is, until the lease ends.
    Yes {
        /// Rises with each new holder.
        term: u64,
        /// When the holder before acquired it; `None` if there was none, or if it was ours already.
        before: Option<UnixMicros>,
    },
    /// Another one is.
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

/// Events that died, for an alert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deaths {
    /// How many, by source. Counting stops at 10,000 in all.
    pub by_source: BTreeMap<SourceName, u64>,
    /// The latest one and its reason.
    pub latest: Option<(EventKey, String)>,
}

/// The ledger as its keepers use it.
#[async_trait]
pub trait Upkeep: Send + Sync + 'static {
    /// Asks to be the one that does the job `name` for the time `lease`; asked again by the holder, it extends.
    async fn elect(&self, name: &str, owner: DeliveryId, lease: Duration) -> Result<Elected, LedgerError>;

    /// Gives a job back, if it is ours, so that another one need not wait for the lease to end.
    async fn resign(&self, name: &str, owner: DeliveryId) -> Result<(), LedgerError>;

    /// One small step of retention: empties the bodies of events finished long ago, then deletes rows finished
    /// very long ago. Never touches a row that is not finished, nor a dead letter.
    async fn sweep(&self, retention: Retention) -> Result<Swept, LedgerError>;

    /// Writes what this process counted in a minute, by source and name: the minute's counts so far.
    async fn record_minute(
        &self,
        minute: UnixMicros,
        replica: DeliveryId,
        counts: &BTreeMap<(String, String), u64>,
    ) -> Result<(), LedgerError>;

    /// Events that died after this moment and are still dead.
    async fn deaths_since(&self, since: UnixMicros) -> Result<Deaths, LedgerError>;
}
