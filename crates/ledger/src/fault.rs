//! What went wrong with one attempt, in the words in which it is acted upon. Each dialect translates its own
//! codes into these; everything above decides by them alone.

use std::time::Duration;

use crate::LedgerError;

/// Shortest and longest pause between attempts. Short at first, because a lost election or a broken
/// connection is over at once; never long, because a caller waits two seconds at most.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Why one attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No answer, or the connection broke: the outcome is unknown. Repeat on another connection.
    Broken(String),
    /// Undone by a deadlock, a serialization failure or a busy file: nothing happened. Repeat.
    Conflict(String),
    /// Somebody holds a row for too long. One row of a batch is the cause, the others need not suffer.
    Locked(String),
    /// The database refuses a row for what it is. Again one row of a batch is the cause.
    Data(String),
    /// A bound is reached and nothing was done: no connection came free.
    Overloaded(String),
    /// A statement took too long, and nothing was done.
    TooSlow(String),
    /// Configured in a way that cannot work.
    Unusable(String),
    /// A migration failed, and would again.
    Migration(String),
}

impl Fault {
    /// Whether the same attempt may succeed a moment later.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Conflict(_) => true,
            Self::Locked(_)
            | Self::Data(_)
            | Self::Overloaded(_)
            | Self::TooSlow(_)
            | Self::Unusable(_)
            | Self::Migration(_) => false,
        }
    }

    /// Whether one row of a batch is the cause, so that the others go through without it.
    pub(crate) fn is_of_one_row(&self) -> bool {
        match self {
            Self::Locked(_) | Self::Data(_) => true,
            Self::Broken(_)
            | Self::Conflict(_)
            | Self::Overloaded(_)
            | Self::TooSlow(_)
            | Self::Unusable(_)
            | Self::Migration(_) => false,
        }
    }
}

impl From<Fault> for LedgerError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Broken(why) | Fault::Conflict(why) | Fault::Overloaded(why) | Fault::TooSlow(why) => {
                Self::Unavailable(why)
            }
            Fault::Locked(why) => Self::Locked(why),
            Fault::Data(why) => Self::Refused(why),
            Fault::Unusable(why) => Self::Unusable(why),
            Fault::Migration(why) => Self::Migration(why),
        }
    }
}

/// The pauses between attempts: doubling, each drawn from its upper half, so that two who collided do not
/// collide again.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    pub(crate) fn new() -> Self {
        Self(PAUSE_MIN)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(PAUSE_MAX);
        rand::random_range(pause / 2..=pause)
    }
}
