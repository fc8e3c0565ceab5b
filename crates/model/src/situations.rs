//! Situations that a check must have met. A model that cannot move breaks no promise; this is how one notices.

use std::sync::atomic::{AtomicU32, Ordering};

use hookgate_gateway::handler::Handled;

/// Something worth having met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Situation {
    /// A delivery came.
    Delivery,
    /// A claim whose lease was over was taken over.
    TakeOver,
    /// A takeover found that what it had seen was not there any more, or lived again.
    TooLateToTakeOver,
    /// A claim met itself: its first try had stood, and the answer was lost.
    MetItself,
    /// Nothing was known about a claim.
    Fallback,
    /// A done mark told a duplicate.
    DuplicateByClaim,
    /// The ledger told a duplicate.
    DuplicateByLedger,
    /// A copy waited for another one.
    Waiter,
    /// A waiter found the claim free.
    FreedForWaiter,
    /// An inbox met a forward's row.
    Adoption,
    /// Who ran the row had lost it when it came to write down the end.
    LateOwnerOfRow,
    /// Who held the claim had lost it when it came to renew or close it.
    LateOwnerOfClaim,
    /// A worker leased the event.
    Fetched,
    /// A row was freed whose owner had died.
    Rescue,
    /// Something arrived that nobody waited for any more.
    LateArrival,
    /// A delivery was answered 200.
    Answered200,
    /// A delivery was answered that it is in flight.
    AnsweredInFlight,
    /// A delivery was answered that it failed.
    AnsweredFailed,
    /// A delivery was answered that nothing can be promised.
    AnsweredUnavailable,
    /// A replica died with something in hand.
    Crash,
    /// A replica stood still while time passed.
    Pause,
    /// An older copy of Redis was promoted.
    FailOver,
}

impl Situation {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Delivery,
        Self::TakeOver,
        Self::TooLateToTakeOver,
        Self::MetItself,
        Self::Fallback,
        Self::DuplicateByClaim,
        Self::DuplicateByLedger,
        Self::Waiter,
        Self::FreedForWaiter,
        Self::Adoption,
        Self::LateOwnerOfRow,
        Self::LateOwnerOfClaim,
        Self::Fetched,
        Self::Rescue,
        Self::LateArrival,
        Self::Answered200,
        Self::AnsweredInFlight,
        Self::AnsweredFailed,
        Self::AnsweredUnavailable,
        Self::Crash,
        Self::Pause,
        Self::FailOver,
    ];

    /// Of an answer.
    pub fn answered(how: Handled) -> Self {
        match how {
            Handled::Accepted | Handled::AcceptedUnrecorded | Handled::Duplicate(_) => Self::Answered200,
            Handled::InFlight => Self::AnsweredInFlight,
            Handled::Failed => Self::AnsweredFailed,
            Handled::Unavailable => Self::AnsweredUnavailable,
        }
    }
}

/// Which situations were met.
#[derive(Debug, Default)]
pub struct Met(AtomicU32);

impl Met {
    /// Notes one.
    pub fn note(&self, situation: Situation) {
        let bit = 1 << situation as u32;
        // Reading is cheap and shared; writing happens once for each.
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether it was met.
    pub fn has(&self, situation: Situation) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << situation as u32) != 0
    }
}
