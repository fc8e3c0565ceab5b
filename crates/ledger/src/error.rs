//! Why the ledger could not do what was asked.

/// The ledger's errors. A caller on the path acts on three of them; the rest is for the operator.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// Not reachable, too slow, or its own queue is full: nothing is promised, try again later.
    /// The outcome of a commit may be unknown; repeating the same call is safe.
    #[error("the ledger cannot answer in time: {0}")]
    Unavailable(String),
    /// Somebody held this one row for too long; nothing was done, and other events are not concerned.
    #[error("the event's row is held by somebody else: {0}")]
    Locked(String),
    /// The database refuses this one row, and will refuse it again.
    #[error("the database refuses this event: {0}")]
    Refused(String),
    /// What a person asked for takes longer than a statement may; nothing was done, and the ledger is well. Ask
    /// for less: a shorter time, one source, one object. Only [`crate::Operations`] says this.
    #[error("the question takes the database too long: {0}")]
    TooSlow(String),
    /// The database cannot be used as configured. Says what to change.
    #[error("{0}")]
    Unusable(String),
    /// A migration failed; the schema is as before it.
    #[error("migrating the ledger failed: {0}")]
    Migration(String),
}
