//! What must never be lost?
//!
//! One table of events is inbox, queue, dead letters and audit trail at once. The unique key
//! `(source, event_id)` is the judge of duplicates; everything else saves it work. This crate owns every
//! table and every line of SQL, in two dialects behind one trait: Postgres for many replicas, SQLite for
//! one machine. Times of leases and retries are the database's own.

mod bell;
mod columns;
mod content;
mod error;
mod fault;
mod group;
mod headers;
mod history;
mod ledger;
mod migrate;
mod operations;
mod postgres;
mod reason;
mod records;
mod redacted;
mod rows;
pub mod rules;
mod run;
mod sessions;
mod settling;
mod sql;
mod sqlite;
mod twins;
mod upkeep;
mod work;

pub use content::{Alike, ContentKey, Subject};
pub use error::LedgerError;
pub use history::History;
pub use ledger::{Ledger, Limits};
pub use operations::{
    AttemptRecord, AuditRecord, Bulk, BulkStep, Change, Changed, Cursor, EventDetail, EventSummary, Filter,
    Listing, MinuteStats, Operations, Pause, StoredBody, TargetRecord, UnixMicros,
};
pub use postgres::PostgresLedger;
pub use reason::{BadReason, Reason};
pub use records::{Appended, Begun, DeliveryId, Entry, NewEvent, Path, Queue, State, Stored, StoredHeaders};
pub use sqlite::SqliteLedger;
pub use upkeep::{Death, Deaths, Elected, Finding, Retention, SweepPlace, Swept, Upkeep};
pub use work::{
    Effects, Fetch, Job, Lane, Lease, OnFailure, OutboxRow, Outcome, Rescued, Settled, Ticket, TriesMax,
};
