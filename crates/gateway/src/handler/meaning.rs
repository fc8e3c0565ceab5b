//! What the stores' answers mean for an event: every decision between claim and close, as pure functions.
//!
//! The path asks, waits and acts; what it concludes from an answer stands here, without a store, a clock or a
//! metric. So the model that tries every order of steps and faults runs these very decisions.

use hookgate_claim::{Claim, Lease, Sight, Unavailable};
use hookgate_ledger::{Appended, Begun, Entry, LedgerError, OnFailure, Settled, State};

use super::{DecidedBy, Handled, Hold, Witness};
use crate::config::WithoutStore;

/// How a claim is closed once its event is handled.
#[derive(Debug)]
#[must_use]
pub enum Closing {
    /// Mark it done whoever owns it: the ledger holds the event.
    MarkDone,
    /// Mark it done if it is ours; tell it until it is heard.
    Finish(Lease),
    /// Mark it done if it was ever set.
    FinishPossible(Box<Lease>),
    /// Delete it if it is ours, so that the provider's next try runs at once.
    Release(Lease),
    /// Delete it if it was ever set.
    ReleasePossible(Box<Lease>),
    /// Leave it alone.
    Nothing,
}

/// Whether a copy may run its event where no ledger decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Right {
    /// It holds the claim.
    Run,
    /// It holds nothing, and the operator allowed that.
    Unguarded,
    /// Somebody else may.
    Wait,
    /// Nobody knows.
    Refuse,
}

/// What one look at an event that somebody else works on found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is still worked on, as far as one can know.
    InFlight,
    /// Its holder released it, or lost it.
    Free,
    /// It is done, as this layer knows.
    Done(DecidedBy),
}

impl Hold {
    /// What we hold after a claim was tried; `None` if the event was found done.
    pub fn after(claimed: Result<Claim, Unavailable>) -> Option<Self> {
        match claimed {
            Ok(Claim::First(lease)) => Some(Self::Ours(lease)),
            Ok(Claim::InFlight { .. }) => Some(Self::Others),
            Ok(Claim::Done) => None,
            Err(unavailable) => Some(Self::Unknown(unavailable.possible)),
        }
    }

    /// Whether it is a right to run, where the claim is all there is.
    pub fn right(&self, without_store: WithoutStore) -> Right {
        match (self, without_store) {
            (Self::Ours(_), _) => Right::Run,
            (Self::Others, _) => Right::Wait,
            (Self::Unknown(_) | Self::Unclaimed, WithoutStore::Reject) => Right::Refuse,
            (Self::Unknown(_) | Self::Unclaimed, WithoutStore::Unguarded) => Right::Unguarded,
        }
    }
}

impl Witness {
    /// Who can tell us of the others.
    pub fn of(hold: &Hold) -> Self {
        match hold {
            Hold::Others | Hold::Unclaimed => Self::Claim,
            Hold::Ours(_) | Hold::Unknown(_) => Self::Ledger,
        }
    }
}

impl Seen {
    /// By the row, before anything else is asked: whether the ledger knows the event as settled. It outranks a claim
    /// that says otherwise.
    pub fn at_first(entry: &Result<Option<Entry>, LedgerError>) -> Self {
        match entry {
            Ok(Some(entry)) if !matches!(entry.state, State::Running | State::Failed) => {
                Self::Done(DecidedBy::Ledger)
            }
            Ok(_) | Err(_) => Self::InFlight,
        }
    }

    /// By the claim.
    pub fn by_claim(sight: Sight) -> Self {
        match sight {
            Sight::InFlight => Self::InFlight,
            Sight::Free => Self::Free,
            Sight::Done => Self::Done(DecidedBy::Claim),
        }
    }

    /// By the row.
    pub fn by_row(entry: &Result<Option<Entry>, LedgerError>) -> Self {
        match entry {
            Ok(Some(entry)) if entry.state == State::Running && !entry.lease_ended => Self::InFlight,
            Ok(Some(entry)) if matches!(entry.state, State::Running | State::Failed) => Self::Free,
            Ok(Some(_)) => Self::Done(DecidedBy::Ledger),
            Ok(None) => Self::Free,
            Err(_) => Self::InFlight,
        }
    }
}

impl Handled {
    /// Whether it is answered 200: the event took effect, or is durably kept.
    pub fn is_promised(self) -> bool {
        match self {
            Self::Accepted | Self::AcceptedUnrecorded | Self::Duplicate(_) => true,
            Self::InFlight | Self::Failed | Self::Unavailable => false,
        }
    }

    /// After an append. A duplicate whose row somebody else owns has to be [adopted](Self::needs_adoption) first.
    pub fn appended(appended: &Result<Appended, LedgerError>) -> Self {
        match appended {
            Ok(Appended::Accepted | Appended::Alike(_)) => Self::Accepted,
            Ok(Appended::Twin(_)) => Self::Duplicate(DecidedBy::Content),
            Ok(Appended::Duplicate { .. }) => Self::Duplicate(DecidedBy::Ledger),
            Err(LedgerError::Refused(_)) => Self::Failed,
            Err(
                LedgerError::Unavailable(_)
                | LedgerError::Locked(_)
                | LedgerError::TooSlow(_)
                | LedgerError::Unusable(_)
                | LedgerError::Migration(_),
            ) => Self::Unavailable,
        }
    }

    /// Whether a row in this state may wait for a provider that is about to be told that all is well.
    pub fn needs_adoption(state: State) -> bool {
        match state {
            State::Failed | State::Running => true,
            State::Queued | State::Done | State::Dead | State::Discarded | State::Parked | State::Twin => {
                false
            }
        }
    }

    /// After the row of a duplicate was adopted.
    pub fn adopted(adopted: &Result<(), LedgerError>) -> Self {
        match adopted {
            Ok(()) => Self::Duplicate(DecidedBy::Ledger),
            Err(_) => Self::Unavailable,
        }
    }

    /// After a begin that gave us nothing to run. `None`: somebody else runs it, or, unless this is the `last` time to
    /// ask, a ledger that `is_up` was too busy to say: a crowd of copies may have taken all connections, and there is
    /// time to wait for one of them.
    pub fn not_begun(begun: &Result<Begun, LedgerError>, last: bool, is_up: bool) -> Option<Self> {
        match begun {
            Ok(Begun::Running | Begun::Run { .. }) => None,
            Ok(Begun::Settled { .. }) => Some(Self::Duplicate(DecidedBy::Ledger)),
            Ok(Begun::Twin(_)) => Some(Self::Duplicate(DecidedBy::Content)),
            Err(_) if !last && is_up => None,
            Err(_) => Some(Self::Unavailable),
        }
    }

    /// After the target took it and the ledger was told. One that could not be told must be told again, or a later
    /// copy runs once the lease has ended.
    pub fn finished(finished: &Result<Settled, LedgerError>) -> Self {
        match finished {
            // A finish holds nothing, so it buries nothing.
            Ok(Settled::Committed | Settled::Buried | Settled::Repeated { .. }) => Self::Accepted,
            Ok(Settled::Lost) | Err(_) => Self::AcceptedUnrecorded,
        }
    }

    /// After the target did not take it and the ledger was told: the provider's next try owns it, or, where none will
    /// come, our workers do.
    pub fn released(released: &Result<Settled, LedgerError>, next: OnFailure) -> Self {
        match (released, next) {
            (Ok(Settled::Committed | Settled::Repeated { .. }), OnFailure::WorkerRetries(_)) => {
                Self::Accepted
            }
            (Ok(_), _) => Self::Failed,
            (Err(_), _) => Self::Unavailable,
        }
    }
}

impl Closing {
    /// How the claim of an event is closed that was handled so, while this was held of it.
    pub fn of(handled: Handled, hold: Hold, has_ledger: bool) -> Self {
        match (handled, hold) {
            // Its holder will mark it; a crowd of copies need not.
            (Handled::Duplicate(DecidedBy::Ledger), Hold::Others) => Self::Nothing,
            (Handled::Accepted | Handled::Duplicate(DecidedBy::Ledger | DecidedBy::Content), _)
                if has_ledger =>
            {
                Self::MarkDone
            }
            (Handled::Accepted, Hold::Ours(lease)) => Self::Finish(lease),
            (Handled::Accepted, Hold::Unknown(Some(possible))) => Self::FinishPossible(possible),
            (Handled::InFlight | Handled::Failed | Handled::Unavailable, Hold::Ours(lease)) => {
                Self::Release(lease)
            }
            (Handled::InFlight | Handled::Failed | Handled::Unavailable, Hold::Unknown(Some(possible))) => {
                Self::ReleasePossible(possible)
            }
            // Nothing of ours stands, or, unrecorded, the claim must stand until its lease ends.
            (_, Hold::Others | Hold::Unclaimed | Hold::Unknown(None))
            | (Handled::AcceptedUnrecorded | Handled::Duplicate(_), _) => Self::Nothing,
        }
    }
}
