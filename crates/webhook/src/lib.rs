//! What do they say?
//!
//! Reads from a verified delivery what identifies its event (id, type, object, account, mode, the
//! provider's own time) and no more. One file per provider under `provider/` holds all that is special
//! about that provider, with the source of each rule. No I/O, no clock, no storage.

mod content;
pub mod doctor;
mod event;
mod fields;
mod form;
mod identity;
mod knowledge;
mod provider;
mod provider_time;
mod reading;
mod sample;
mod unreadable;
mod value;
pub mod vectors;

pub use event::{Batch, Dropped, Event, Mode};
pub use identity::{BadName, EventId, EventKey, Field, SourceName};
pub use knowledge::{Knowledge, Places, Success, UrlUse};
pub use provider::{Custom, Description, Kind, Place, Provider, Sending, Signed, UnknownProvider};
pub use provider_time::ProviderTime;
pub use reading::{Answer, Reading};
pub use sample::{Sample, UnknownType};
pub use unreadable::Unreadable;
