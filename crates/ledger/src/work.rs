//! Runs of an event, from the lease to the settlement.

use std::time::Duration;

use bytes::Bytes;
use hookgate_webhook::{EventKey, SourceName};

use crate::{DeliveryId, StoredHeaders};

/// The right to settle one run. A late owner changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whose run.
    pub key: EventKey,
    /// Unique per run: the fence.
    pub owner: DeliveryId,
    /// Which try this is, from 1; only rises. Sent to targets as `Hookgate-Attempt`.
    pub attempt: u32,
    /// How often a finished event was replayed; 0 at first.
    pub generation: u32,
}

/// A leased event with everything a target needs.
#[derive(Clone)]
pub struct Job {
    /// The right to settle it.
    pub lease: Lease,
    /// Name of the provider.
    pub provider: String,
    /// The provider's type.
    pub event_type: Option<String>,
    /// Tries used up, with this one. Parked runs cost none, so this may lag behind `lease.attempt`; it is
    /// what a maximum of tries is compared with.
    pub tries: u32,
    /// Headers worth keeping.
    pub headers: StoredHeaders,
    /// The raw bytes.
    pub body: Bytes,
}

/// Which rows a worker wants.
///
/// Sources take turns, so none waits behind the backlog of another. Of one source, three of four places are for
/// events that were never run and one is for those that come again; what one kind leaves is the other's. So
/// fresh events do not wait behind old retries, and those are not forgotten either.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Only rows of these sources: those that the worker has a consumer for. Others stay for workers that
    /// know them.
    pub lanes: Vec<Lane>,
    /// At most so many.
    pub limit: u32,
    /// Bodies of at most so many bytes together; but always one row, however large.
    pub bytes_max: u64,
    /// How long the lease lasts without a heartbeat.
    pub lease: Duration,
    /// Which look this is.
    pub ticket: Ticket,
}

/// Names one look of a worker, drawn at random. Every lease that the look takes is marked with it, so that one
/// whose answer was lost can be asked again: what it leased is given out then, and not left to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    number: u64,
    /// Whether it was asked before, and no answer came.
    asked: bool,
}

impl Ticket {
    /// Of a new look.
    pub fn draw() -> Self {
        Self {
            number: rand::random(),
            asked: false,
        }
    }

    /// Of the same look, asked again.
    pub fn again(self) -> Self {
        Self { asked: true, ..self }
    }

    /// Whether there may be leases of it already.
    pub(crate) fn was_asked(self) -> bool {
        self.asked
    }

    /// The first half of the owner of each of its leases.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.number.to_be_bytes()
    }
}

/// How much of one source a worker wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Which source.
    pub source: SourceName,
    /// At most so many of it.
    pub room: u32,
    /// Sources with the same number share a bound, such as that of their target.
    pub pool: u32,
    /// At most so many of all that share it; the same in all of them.
    pub pool_room: u32,
}

/// How many tries an event has before it dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriesMax {
    /// Of these sources.
    pub by_source: Vec<(SourceName, u32)>,
    /// Of all others.
    pub otherwise: u32,
}

impl TriesMax {
    /// How many an event of this source has.
    pub fn of(&self, source: &SourceName) -> u32 {
        let known = self.by_source.iter().find(|(name, _)| name == source);
        known.map_or(self.otherwise, |(_, tries)| *tries)
    }
}

impl From<u32> for TriesMax {
    fn from(otherwise: u32) -> Self {
        Self {
            by_source: Vec::new(),
            otherwise,
        }
    }
}

/// What a rescue did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Rescued {
    /// Rows taken from owners that died.
    pub freed: u64,
    /// How many of them had used up their tries, and are dead letters now.
    pub dead: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Took effect.
    Done,
    /// Finished without effect, for a reason that `last_error` keeps.
    Ignored(String),
    /// Try again after the delay.
    Retry {
        /// Counted from the database's now.
        after: Duration,
        /// Why it failed; no secret, no body.
        error: String,
    },
    /// To the dead letters.
    Dead {
        /// Why; no secret, no body.
        error: String,
    },
    /// Could not be tried, since the consumer was not there: queued again after the delay, which costs no try,
    /// until it was held for 72 h.
    Postponed {
        /// Counted from the database's now.
        after: Duration,
        /// What was not there.
        error: String,
        /// How long it has been away already. An event that was due meanwhile was held meanwhile.
        away_for: Duration,
        /// Its name. When a person has paused it, the 72 h begin anew with the end of the pause.
        target: String,
    },
    /// Was not tried, since whoever had it gave it back: queued again after the delay. It costs no try, and whether
    /// and since when the event is held stays as it was.
    GivenBack {
        /// Counted from the database's now.
        after: Duration,
        /// Why.
        reason: String,
    },
    /// Came too early; try again after the delay, until the row's deadline.
    Parked {
        /// Counted from the database's now.
        after: Duration,
        /// What is missing.
        error: String,
    },
}

/// What commits together with an event's settlement. The one seam for follow-up rows.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    /// Jobs for later, each with its own retries.
    pub outbox: Vec<OutboxRow>,
}

/// A follow-up job.
#[derive(Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// Who is to get it, e.g. the name of a target.
    pub target: String,
    /// What to do, in the target's words.
    pub kind: String,
    /// Unique per effect: the same effect written twice is one row.
    pub effect_key: String,
    /// Its payload, bytes.
    pub payload: Bytes,
}

/// Whether a settlement took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Settled {
    /// State and effects are committed.
    Committed,
    /// Committed, but the event was held for too long by now: it is a dead letter.
    Buried,
    /// This very settlement was committed before, and its answer was lost: nothing was changed now.
    Repeated {
        /// Whether it was [`Self::Buried`] then.
        buried: bool,
    },
    /// The lease was lost to another owner or ended; nothing was changed.
    Lost,
}

/// Who runs a failed forward next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The provider will try again: `failed`.
    ProviderRetries,
    /// No try will come: `queued` for our workers after the delay.
    WorkerRetries(Duration),
}
