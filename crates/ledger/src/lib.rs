//! What must never be lost?
//!
//! One table of events is inbox, queue, dead letters and audit trail at once. The unique key
//! `(source, event_id)` is the judge of duplicates; everything else saves it work. This crate owns every
//! table and every line of SQL, in two dialects behind one trait: Postgres for many replicas, SQLite for
//! one machine. Times of leases and retries are the database's own.

mod error;
mod ledger;
mod records;

pub use error::LedgerError;
pub use ledger::{Ledger, Limits};
pub use records::{
    Appended, Begun, DeliveryId, Effects, Entry, Fetch, Job, Lease, NewEvent, OnFailure, OutboxRow, Outcome,
    Path, Queue, Settled, State, StoredHeaders,
};
