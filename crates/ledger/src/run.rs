//! How a run ends, in the columns of a row: one shape for a worker's settlement and a forward's finish or
//! release, so that every dialect writes it once.

use std::time::Duration;

use hookgate_webhook::Provider;

use crate::{Lease, OnFailure, OutboxRow, Outcome, Settled, State};

/// How long an event may be parked or postponed in all.
pub(crate) const HELD_MAX: Duration = Duration::from_secs(72 * 60 * 60);

/// What `last_error` says of an event whose target was away for all that time, before the reason.
pub(crate) const TARGET_DOWN: &str = "target_down: held for 72 h: ";

/// The same of an event that came too early.
const TOO_EARLY: &str = "parked for 72 h: ";

/// Providers whose failed or lost forward nobody will send again: such a run is handed to the workers.
pub(crate) fn never_retrying() -> impl Iterator<Item = &'static str> {
    Provider::stored_names().filter_map(|(name, retries, _)| (!retries).then_some(name))
}

/// A run and how it is to end.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) ending: Ending<'a>,
    pub(crate) effects: &'a [OutboxRow],
}

/// The columns a run's end writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending<'a> {
    /// The event's next state. A held one becomes `Dead` when its deadline has passed: the database decides.
    pub(crate) state: State,
    /// The attempt's outcome, in the words of `webhook_attempts`.
    pub(crate) outcome: &'static str,
    /// Why.
    pub(crate) error: Option<&'a str>,
    /// When it is due again, from the database's now.
    pub(crate) due_in: Option<Duration>,
    /// What it does to the event's tries and deadline.
    pub(crate) cost: Cost<'a>,
}

/// What the end of a run does to the event's tries and deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost<'a> {
    /// The try is used up, and whatever held the event has ended.
    Try,
    /// The run gives its try back, and the event waits by deadline.
    Time(Held<'a>),
    /// The run gives its try back, and the deadline stays as it was.
    Nothing,
}

/// An event waits by deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held<'a> {
    /// How long it may have been held before this run, if it was due so long.
    pub(crate) already: Duration,
    /// What `last_error` begins with when it was held for too long.
    pub(crate) too_long: &'static str,
    /// For whose sake: a pause of this target does not count.
    pub(crate) target: Option<&'a str>,
}

impl<'a> Ending<'a> {
    /// The end of a run.
    pub(crate) fn of(ended: &'a Outcome) -> Self {
        let (state, outcome, error, due_in) = match ended {
            Outcome::Done => (State::Done, "done", None, None),
            Outcome::Ignored(reason) => (State::Done, "ignored", Some(reason), None),
            Outcome::Retry { after, error } => (State::Queued, "retry", Some(error), Some(*after)),
            Outcome::Dead { error } => (State::Dead, "dead", Some(error), None),
            Outcome::Postponed { after, error, .. } => (State::Queued, "retry", Some(error), Some(*after)),
            Outcome::GivenBack { after, reason } => (State::Queued, "retry", Some(reason), Some(*after)),
            Outcome::Parked { after, error } => (State::Parked, "parked", Some(error), Some(*after)),
        };
        Self {
            state,
            outcome,
            error: error.map(String::as_str),
            due_in,
            cost: Cost::of(ended),
        }
    }

    /// The end of a forward that failed.
    pub(crate) fn released(error: &'a str, next: OnFailure) -> Self {
        let (state, due_in) = match next {
            OnFailure::ProviderRetries => (State::Failed, None),
            OnFailure::WorkerRetries(after) => (State::Queued, Some(after)),
        };
        Self {
            state,
            outcome: "failed",
            error: Some(error),
            due_in,
            cost: Cost::Try,
        }
    }

    /// What is told to the one that settled, when the attempt was written with this outcome.
    pub(crate) fn settled(&self, outcome: &str) -> Settled {
        match self.buried(outcome) {
            true => Settled::Buried,
            false => Settled::Committed,
        }
    }

    /// The same when it was written by an earlier try of just this settlement; `None`: there was none.
    pub(crate) fn settled_before(&self, outcome: Option<&str>) -> Settled {
        outcome.map_or(Settled::Lost, |outcome| Settled::Repeated {
            buried: self.buried(outcome),
        })
    }

    /// Whether a run may end as a dead letter that was to be held.
    pub(crate) fn may_bury(&self) -> bool {
        matches!(self.cost, Cost::Time(_))
    }

    fn buried(&self, outcome: &str) -> bool {
        self.may_bury() && outcome == "dead"
    }

    /// Whether the row comes to rest.
    pub(crate) fn rests(&self) -> bool {
        match self.state {
            State::Done | State::Dead | State::Discarded | State::Twin => true,
            State::Queued | State::Running | State::Parked | State::Failed => false,
        }
    }
}

impl<'a> Cost<'a> {
    fn of(ended: &'a Outcome) -> Self {
        match ended {
            Outcome::Postponed { away_for, target, .. } => Self::Time(Held {
                already: *away_for,
                too_long: TARGET_DOWN,
                target: Some(target),
            }),
            Outcome::Parked { .. } => Self::Time(Held {
                already: Duration::ZERO,
                too_long: TOO_EARLY,
                target: None,
            }),
            Outcome::GivenBack { .. } => Self::Nothing,
            Outcome::Done | Outcome::Ignored(_) | Outcome::Retry { .. } | Outcome::Dead { .. } => Self::Try,
        }
    }
}
