//! What do they say?
//!
//! Reads from a verified delivery what identifies its event (id, type, object, account, mode, the
//! provider's own time) and no more. One file per provider under `provider/` holds all that is special
//! about that provider, with the source of each rule. No I/O, no clock, no storage.

mod event;
mod identity;
mod provider;
mod unreadable;

pub use event::{Dropped, Event, Mode, ProviderTime};
pub use identity::{BadName, EventId, EventKey, Field, SourceName};
pub use provider::{Knowledge, Provider, UnknownProvider};
pub use unreadable::Unreadable;
