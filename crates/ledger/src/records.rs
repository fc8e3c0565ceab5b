//! What goes into the ledger and what comes out, in the words of the domain.

use std::fmt;

use bytes::Bytes;
use hookgate_webhook::{EventKey, Field, Mode, ProviderTime};

use crate::{Alike, ContentKey, Lease};

/// How the event is handled: by a worker later, or by a POST before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Path {
    /// Stored, answered, delivered by a worker.
    Inbox,
    /// Posted to the user's service before the answer.
    Forward,
}

impl Path {
    /// As stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Forward => "forward",
        }
    }

    /// The path of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Inbox, Self::Forward]
            .into_iter()
            .find(|path| path.as_str() == name)
    }
}

/// State of a row. Drawn as arrows:
///
/// ```text
/// append ─▶ queued ─▶ running ─▶ done            begin ─▶ running ─▶ done
///             ▲          │ └────▶ dead ─▶ discarded          │
///             ├─ retry ──┤                                   └────▶ failed ─▶ running (the provider's next try)
///             └─ parked ◀┘                                                └─▶ queued  (no try will come: ours)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Waits for a worker.
    Queued,
    /// Somebody holds a lease on it.
    Running,
    /// Finished.
    Done,
    /// Given up; a person decides.
    Dead,
    /// Given up for good by a person.
    Discarded,
    /// Came too early; waits by deadline, not by tries.
    Parked,
    /// A second event object for a change that is already here.
    Twin,
    /// A forward that failed; the provider's next try owns it, no worker takes it.
    Failed,
}

impl State {
    /// All states, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Done,
        Self::Dead,
        Self::Discarded,
        Self::Parked,
        Self::Twin,
        Self::Failed,
    ];

    /// As stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Discarded => "discarded",
            Self::Parked => "parked",
            Self::Twin => "twin",
            Self::Failed => "failed",
        }
    }

    /// Whether it is due at some time.
    pub fn waits(self) -> bool {
        match self {
            Self::Queued | Self::Parked => true,
            Self::Running | Self::Done | Self::Dead | Self::Discarded | Self::Twin | Self::Failed => false,
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names one delivery, drawn at random by the receiver. Two copies in one batch cannot both win by it,
/// and a repeated append recognises its own row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryId(pub u128);

impl DeliveryId {
    /// As stored: sixteen bytes.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// As read back.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

/// Request headers worth keeping: the provider's signature headers, content type, `traceparent`. Pairs in
/// order, values as bytes, so that a target receives exactly what the provider sent.
pub type StoredHeaders = Vec<(Box<str>, Vec<u8>)>;

/// A row to be appended or begun.
#[derive(Clone)]
pub struct NewEvent {
    /// Identity.
    pub key: EventKey,
    /// Name of the provider.
    pub provider: &'static str,
    /// The provider's account.
    pub account: Option<Field>,
    /// Live or test.
    pub mode: Mode,
    /// The provider's type.
    pub event_type: Option<Field>,
    /// Object the event is about.
    pub object_id: Option<Field>,
    /// The provider's own time.
    pub provider_time: Option<ProviderTime>,
    /// SHA-256 of the body.
    pub body_sha256: [u8; 32],
    /// Headers worth keeping.
    pub headers: StoredHeaders,
    /// The raw bytes.
    pub body: Bytes,
    /// This delivery.
    pub delivery: DeliveryId,
    /// By what else than its id it may turn out to be known, if its source asks for that.
    pub content_keys: Vec<ContentKey>,
}

/// Where an appended event waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// `queued`: a worker will take it.
    ForWorker,
    /// `done` at once, with this reason in `last_error`, e.g. `no_consumer`.
    Finished(&'static str),
}

impl Queue {
    /// What `last_error` keeps of it.
    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            Self::ForWorker => None,
            Self::Finished(reason) => Some(reason),
        }
    }
}

/// What an append found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// One committed row, and it is ours.
    Accepted,
    /// The same; but content of it came before under another id, and the row says which. It is run all the same.
    Alike(Alike),
    /// One committed row, and it is ours; but another event is the original of it, and this one is not run.
    Twin(Alike),
    /// The row was there before.
    Duplicate {
        /// Its state.
        state: State,
        /// Whether the stored body is the same; the first one wins either way.
        same_body: bool,
    },
}

/// What `begin` found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Begun {
    /// Ours to run.
    Run {
        /// The right to do so.
        lease: Lease,
        /// What the row came with, if that was another body. The first one wins: this is to be run.
        first: Option<Box<Stored>>,
        /// What of its content came before under another id. The row says which.
        alike: Alike,
    },
    /// Not ours to run: another event is the original of it, and is finished or durably kept.
    Twin(Alike),
    /// Another copy runs, whose lease has not ended; or an event that this one may be a twin of. Then there is no row
    /// of ours.
    Running,
    /// Finished, or durably somebody's.
    Settled {
        /// `done`, `queued`, `dead`, `discarded`, `twin` or `parked`.
        state: State,
        /// Whether the stored body is the same; the first one wins either way.
        same_body: bool,
    },
}

/// The stored side of an event that came again with another body.
#[derive(Clone, PartialEq, Eq)]
pub struct Stored {
    /// The provider's type.
    pub event_type: Option<Field>,
    /// Headers worth keeping.
    pub headers: StoredHeaders,
    /// The raw bytes.
    pub body: Bytes,
}

/// What a look at a row shows: for waiters, tests and the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// State.
    pub state: State,
    /// Tries so far.
    pub attempts: u32,
    /// Why the last try failed.
    pub last_error: Option<String>,
    /// Whether a `running` row's lease has ended.
    pub lease_ended: bool,
}
