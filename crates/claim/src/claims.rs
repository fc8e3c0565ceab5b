//! The seam between the path and whatever keeps the claims.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use hookgate_webhook::EventKey;

use crate::value::{InFlight, Value};

/// Ten years: far beyond any use, far below where clocks overflow.
const TTL_SECONDS_MAX: u64 = 315_360_000;

/// How long claims live. The same for every claim of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Life of the key from claim or done mark; 604,800 s by default. Counted in whole seconds,
    /// from one second to ten years.
    pub ttl: Duration,
    /// Age after which an unfinished claim may be taken over.
    pub lease: Duration,
}

/// What a claim attempt found. Expected outcomes, not errors.
#[derive(Debug)]
#[must_use]
pub enum Claim {
    /// Nobody had it, or its holder's lease had run out: it is ours to handle and to close.
    First(Lease),
    /// Finished before, under the present epoch.
    Done,
    /// Somebody works on it since `age`, by the store's own clock.
    InFlight {
        /// Age of the claim.
        age: Duration,
    },
}

/// What a look at a key found, without claiming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sight {
    /// No claim, an expired one, or a done mark of another epoch: a new claim may win.
    Free,
    /// Somebody works on it.
    InFlight,
    /// Finished under the present epoch.
    Done,
}

/// The right to close one claim. Its token is unique, so a late owner changes nothing of its successor's.
#[derive(Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whose claim.
    pub key: EventKey,
    /// The exact value stored; every later step compares it.
    pub(crate) claim: InFlight,
    /// The terms under which it was taken.
    pub terms: Terms,
    /// Whether an expired claim of another holder was replaced.
    pub taken_over: bool,
}

impl Terms {
    /// The life of the key as stores count it.
    pub(crate) fn ttl_seconds(&self) -> u64 {
        self.ttl.as_secs().clamp(1, TTL_SECONDS_MAX)
    }
}

impl Lease {
    /// A lease under a fresh token, not yet stored anywhere.
    pub(crate) fn new(key: &EventKey, terms: Terms, epoch: &Epoch) -> Self {
        Self::of(key.clone(), terms, InFlight::new(epoch, terms))
    }

    /// The right to close this very claim, for whoever stored it under those terms.
    pub fn of(key: EventKey, terms: Terms, claim: InFlight) -> Self {
        Self {
            key,
            claim,
            terms,
            taken_over: false,
        }
    }

    /// What the store holds of it.
    pub(crate) fn value(&self) -> String {
        Value::InFlight(self.claim).written()
    }

    /// The done mark that closes this claim. It carries the epoch of the claim, not the present one:
    /// what was handled before a restore may be missing after it.
    pub(crate) fn done_mark(&self) -> String {
        Value::Done(self.claim.epoch()).written()
    }

    /// The claim that it may close.
    pub fn claim(&self) -> &InFlight {
        &self.claim
    }
}

impl fmt::Debug for Lease {
    /// Leaves the token out: who reads it in a log could close the claim.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.key)
            .field("terms", &self.terms)
            .field("taken_over", &self.taken_over)
            .finish_non_exhaustive()
    }
}

/// Whether the caller still owned the claim at that step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Ownership {
    /// The step took effect.
    Kept,
    /// The claim was somebody else's or gone; nothing was changed. Counted by the caller.
    Lost,
}

/// Nothing is known about a claim. Never "done" and never "won".
#[derive(Debug, thiserror::Error)]
#[error("{trouble}: {cause}")]
pub struct Unavailable {
    /// Whether other keys suffer too.
    pub trouble: Trouble,
    /// What happened; holds no password.
    pub cause: String,
    /// If a claim was sent and its reply lost, it may stand: release it by this lease after a failure.
    /// Releasing it is harmless if it does not.
    pub possible: Option<Box<Lease>>,
}

/// What a server that keeps claims says of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeMemory {
    /// What it does when its memory is full; Redis's word. Only `noeviction` keeps all claims.
    pub policy: String,
    /// When that is, bytes; 0: never.
    pub bytes_max: u64,
}

/// Where the fault lies when nothing is known about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The store cannot answer: unreachable, slow, read-only, full, wrong password. So it is for every key.
    Store,
    /// A node of a cluster cannot answer, and others can. So it is for a part of the keys.
    Part,
    /// The store answers, but what stands under this one key tells nothing: a value of another type, one
    /// that cannot be read, or one that comes and goes. No reason to spare the store other questions.
    Key,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store => "the claim store cannot answer",
            Self::Part => "a part of the claim store cannot answer",
            Self::Key => "the claim's key cannot be read",
        })
    }
}

/// Names a history of the ledger. A done mark of another epoch is void: the ledger that knew the event
/// may have been restored to a time before it.
///
/// Written `<configured>-<timeline>`; compared for equality only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Epoch {
    /// `HOOKGATE_CLAIM_EPOCH`, raised by hand after a dump was restored.
    pub configured: u32,
    /// The Postgres timeline, raised by the server on promotion and point-in-time recovery; 0 without Postgres.
    pub timeline: u32,
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.configured, self.timeline)
    }
}

/// A store of claims.
///
/// Guarantee: between a `First` and the close of its lease, no other caller gets `First` for the key,
/// unless the lease ran out or the store lost the key. Every step after the first compares the stored
/// value, so a late owner can neither delete nor finish its successor's claim.
#[async_trait]
pub trait Claims: Send + Sync + 'static {
    /// Claims the key. One round trip unless an expired claim or a mark of another epoch is replaced.
    async fn claim(&self, key: &EventKey, terms: Terms) -> Result<Claim, Unavailable>;

    /// Looks without claiming.
    async fn look(&self, key: &EventKey) -> Result<Sight, Unavailable>;

    /// Extends our claim to its full terms again.
    async fn renew(&self, lease: &mut Lease) -> Result<Ownership, Unavailable>;

    /// Marks done if the claim is still ours: for `forward` without a ledger, where the claim is all there is.
    async fn finish(&self, lease: &Lease) -> Result<Ownership, Unavailable>;

    /// Marks done whoever owns the claim: for events that the ledger holds, where done is true anyway.
    ///
    /// `epoch` is that of the time before the ledger was asked. What it committed just before a promotion
    /// may be missing on the new timeline, where a mark of the epoch of this call would still count.
    async fn mark_done(&self, key: &EventKey, ttl: Duration, epoch: Epoch) -> Result<(), Unavailable>;

    /// Deletes the claim if it is still ours, so that the provider's next try runs at once.
    async fn release(&self, lease: &Lease) -> Result<Ownership, Unavailable>;

    /// Writes and reads a key of its own: whether the store would answer a claim now.
    async fn probe(&self) -> Result<(), Unavailable>;

    /// What the servers behind it say of their memory, those that keep claims, one each; none where there are none.
    async fn memory(&self) -> Result<Vec<NodeMemory>, Unavailable> {
        Ok(Vec::new())
    }

    /// The present epoch.
    fn epoch(&self) -> Epoch;

    /// Sets the epoch from now on; earlier done marks of another epoch are void.
    fn set_epoch(&self, epoch: Epoch);

    /// Ends background work and connections.
    async fn close(&self) {}
}
