//! The life of one key, as pure functions: what each command does to what stands there, and what its answer means.
//!
//! There is no clock and no store here: a cell says how much life its value has left, and whoever keeps it lets that
//! pass. [`MemoryClaims`](crate::MemoryClaims) is made of these functions. In Redis the scripts do what [`Cell`] does,
//! and the conformance suite holds them to it; what is judged on our side, [`Held::judge`], is this very code. So is
//! the model that tries every order of steps and faults.

use std::time::Duration;

use crate::claims::{Epoch, Ownership, Sight};
pub use crate::value::{InFlight, Standing, Value};

/// More life than any key has, so that only the value decides. Redis's Lua counts exactly up to 2^53.
pub const ANY_LIFE: i64 = 1 << 53;

/// A value under a key, and the life it has left in milliseconds; negative: no expiry, or gone by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// What stands there.
    pub value: Value,
    /// For how long still.
    pub left_ms: i64,
}

/// One key of a store: what stands under it, if anything does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cell(pub Option<Held>);

/// What a claim may conclude from what it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Attempt {
    /// It met its own value: a first try had stored it, and the answer was lost.
    Won,
    /// Finished before, under the present epoch.
    Done,
    /// Somebody works on it.
    InFlight {
        /// Since when.
        age: Duration,
    },
    /// It may take the place of what it met, if that is still there and has no more life left than this.
    Replace {
        /// Age of what it met.
        age: Duration,
        /// Whether that was a claim, and not a void mark.
        taken_over: bool,
        /// Most life that a claim has whose lease is over.
        left_ms_max: i64,
    },
}

/// What a takeover found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Replaced {
    /// The key was gone; ours now.
    Free,
    /// What was seen is replaced; ours now.
    Seen,
    /// Something else stands there, or what was seen lives again.
    No(Held),
}

impl Held {
    /// What a claim of `ours` that met it may conclude.
    pub fn judge(&self, ours: &InFlight, epoch: &Epoch) -> Attempt {
        if self.value == Value::InFlight(*ours) {
            return Attempt::Won;
        }
        match self.value.stands(epoch, self.left_ms) {
            Standing::Done => Attempt::Done,
            Standing::InFlight { age } => Attempt::InFlight { age },
            Standing::Expired { age, left_ms_max } => Attempt::Replace {
                age,
                taken_over: true,
                left_ms_max,
            },
            Standing::Void => Attempt::Replace {
                age: Duration::ZERO,
                taken_over: false,
                left_ms_max: ANY_LIFE,
            },
        }
    }

    /// What it shows to one who does not claim.
    pub fn sight(&self, epoch: &Epoch) -> Sight {
        match self.value.stands(epoch, self.left_ms) {
            Standing::Done => Sight::Done,
            Standing::InFlight { .. } => Sight::InFlight,
            Standing::Expired { .. } | Standing::Void => Sight::Free,
        }
    }
}

impl Attempt {
    /// The same, of one that was a moment too late to replace what it met first: what stands there now is read once
    /// and not fought for.
    pub fn unfought(self) -> Self {
        match self {
            Self::Replace { age, .. } => Self::InFlight { age },
            Self::Won | Self::Done | Self::InFlight { .. } => self,
        }
    }
}

impl Cell {
    /// Stores the claim if nothing stands there; else says what does.
    pub fn set_if_free(&mut self, claim: &InFlight) -> Option<Held> {
        if self.0.is_none() {
            self.put(claim);
            return None;
        }
        self.0
    }

    /// Puts the claim in place of what was `seen`, if that still stands there and, at this moment, has no more life
    /// left than `left_ms_max`: a claim renewed since it was seen stays. A key that is gone is free.
    pub fn replace(&mut self, seen: &Value, claim: &InFlight, left_ms_max: i64) -> Replaced {
        match self.0 {
            Some(held) if held.value != *seen || held.left_ms > left_ms_max => Replaced::No(held),
            Some(_) => {
                self.put(claim);
                Replaced::Seen
            }
            None => {
                self.put(claim);
                Replaced::Free
            }
        }
    }

    /// Gives our claim its full life again.
    pub fn renew(&mut self, claim: &InFlight) -> Ownership {
        self.if_owned(claim, |cell| cell.put(claim))
    }

    /// Turns our claim into a done mark, under the epoch of the claim: what was handled before a restore may be
    /// missing after it.
    pub fn finish(&mut self, claim: &InFlight) -> Ownership {
        self.if_owned(claim, |cell| cell.mark_done(claim.epoch(), claim.ttl_ms()))
    }

    /// Deletes our claim.
    pub fn release(&mut self, claim: &InFlight) -> Ownership {
        self.if_owned(claim, |cell| cell.0 = None)
    }

    /// Puts a done mark, whatever stands there.
    pub fn mark_done(&mut self, epoch: Epoch, ttl_ms: u64) {
        self.0 = Some(Held {
            value: Value::Done(epoch),
            left_ms: signed(ttl_ms),
        });
    }

    /// What it shows to one who does not claim.
    pub fn sight(&self, epoch: &Epoch) -> Sight {
        self.0.map_or(Sight::Free, |held| held.sight(epoch))
    }

    fn if_owned(&mut self, claim: &InFlight, change: impl FnOnce(&mut Self)) -> Ownership {
        match self.0 {
            Some(held) if held.value == Value::InFlight(*claim) => {
                change(self);
                Ownership::Kept
            }
            Some(_) | None => Ownership::Lost,
        }
    }

    fn put(&mut self, claim: &InFlight) {
        self.0 = Some(Held {
            value: Value::InFlight(*claim),
            left_ms: signed(claim.ttl_ms()),
        });
    }
}

/// As stores count it.
fn signed(ttl_ms: u64) -> i64 {
    i64::try_from(ttl_ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Terms;

    const TERMS: Terms = Terms {
        ttl: Duration::from_secs(100),
        lease: Duration::from_secs(10),
    };

    fn claim(token: u128) -> InFlight {
        InFlight::with_token(&Epoch::default(), TERMS, token)
    }

    fn claimed_for(seconds: i64) -> Cell {
        let left_ms = 100_000 - seconds * 1_000;
        let value = Value::InFlight(claim(1));
        Cell(Some(Held { value, left_ms }))
    }

    #[test]
    fn a_claim_that_was_renewed_since_it_was_seen_is_not_replaced() {
        let Some(seen) = claimed_for(10).set_if_free(&claim(2)) else {
            panic!("the key was taken");
        };
        let Attempt::Replace { left_ms_max, .. } = seen.judge(&claim(2), &Epoch::default()) else {
            panic!("its lease was over");
        };
        let mut renewed = claimed_for(9);
        assert!(matches!(
            renewed.replace(&seen.value, &claim(2), left_ms_max),
            Replaced::No(_)
        ));
        assert_eq!(renewed, claimed_for(9));
        let mut unchanged = claimed_for(11);
        assert_eq!(
            unchanged.replace(&seen.value, &claim(2), left_ms_max),
            Replaced::Seen
        );
        assert_eq!(unchanged.release(&claim(1)), Ownership::Lost);
        assert_eq!(unchanged.release(&claim(2)), Ownership::Kept);
        assert_eq!(unchanged, Cell(None));
    }

    #[test]
    fn a_claim_that_meets_itself_has_won_and_one_too_late_does_not_fight() {
        let held = claimed_for(10).0.unwrap();
        assert_eq!(held.judge(&claim(1), &Epoch::default()), Attempt::Won);
        let age = Duration::from_secs(10);
        let late = held.judge(&claim(2), &Epoch::default()).unfought();
        assert_eq!(late, Attempt::InFlight { age });
    }

    #[test]
    fn no_debug_output_shows_a_token() {
        let token = 0xfeed_beef;
        let cell = Cell(Some(Held {
            value: Value::InFlight(claim(token)),
            left_ms: 1,
        }));
        let shown = format!("{cell:?} {:?}", claim(token));
        assert!(
            !shown.contains(&token.to_string()) && !shown.contains("feed"),
            "{shown}"
        );
    }
}
