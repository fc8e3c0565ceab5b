//! Changed transitions of the claim.

use hookgate_claim::cell::{Attempt, Cell, Held, InFlight, Replaced, Value};
use hookgate_claim::{Claim, Ownership, Sight, Unavailable};
use hookgate_gateway::handler::{DecidedBy, Handled, Hold};

use super::mutation;
use crate::naive::Suspect;
use crate::protocol::Real;

/// Puts a claim there, whatever stood there.
fn put(cell: &mut Cell, claim: &InFlight) {
    *cell = Cell(None);
    let _ = cell.set_if_free(claim);
}

/// Of Redis's commands and scripts.
pub(super) fn of_the_store() -> Vec<Suspect> {
    vec![
        mutation!("claim: set", "sets over what stands there", ForwardAlone breaks TakenOverOnlyWhenOver, {
            fn set_if_free(&self, cell: &mut Cell, claim: &InFlight) -> Option<Held> {
                put(cell, claim);
                None
            }
        }),
        mutation!("claim: replace", "does not compare the value seen", ForwardAlone breaks TakenOverOnlyWhenOver, {
            fn replace(&self, cell: &mut Cell, _: &Value, claim: &InFlight, _: i64) -> Replaced {
                put(cell, claim);
                Replaced::Seen
            }
        }),
        mutation!("claim: replace", "replaces, but says that it did not", ForwardAlone breaks NeverItsOwnRival, {
            fn replace(&self, cell: &mut Cell, seen: &Value, claim: &InFlight, left_ms_max: i64) -> Replaced {
                let before = *cell;
                match (Real.replace(cell, seen, claim, left_ms_max), before.0) {
                    (Replaced::Seen, Some(held)) => Replaced::No(held),
                    (other, _) => other,
                }
            }
        }),
        mutation!("claim: renew", "does not compare the value", ForwardAlone breaks LateOwnerChangesNothing, {
            fn renew(&self, cell: &mut Cell, claim: &InFlight) -> Ownership {
                put(cell, claim);
                Ownership::Kept
            }
        }),
        mutation!("claim: renew", "gives no new life", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn renew(&self, _: &mut Cell, _: &InFlight) -> Ownership {
                Ownership::Kept
            }
        }),
        mutation!("claim: finish", "does not compare the value", ForwardAlone breaks LateOwnerChangesNothing, {
            fn finish_claim(&self, cell: &mut Cell, _: &InFlight) -> Ownership {
                self.mark_done(cell, crate::state::EPOCH, 3_000);
                Ownership::Kept
            }
        }),
        mutation!("claim: finish", "leaves the claim in flight", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn finish_claim(&self, _: &mut Cell, _: &InFlight) -> Ownership {
                Ownership::Kept
            }
        }),
        mutation!("claim: release", "leaves the claim in flight", ForwardAlone breaks FailedRunsAtOnce, {
            fn release_claim(&self, _: &mut Cell, _: &InFlight) -> Ownership {
                Ownership::Kept
            }
        }),
        mutation!("claim: look", "takes a claim in flight for done", ForwardAlone breaks NoEmptyPromise, {
            fn sight(&self, cell: &Cell) -> Sight {
                match Real.sight(cell) {
                    Sight::InFlight => Sight::Done,
                    other => other,
                }
            }
        }),
        mutation!("claim: look", "takes a claim that has run out for one in flight", Forward breaks StuckFrees, {
            fn sight(&self, cell: &Cell) -> Sight {
                match cell.0.map(|held| held.value) {
                    Some(Value::InFlight(_)) => Sight::InFlight,
                    Some(Value::Done(_)) | None => Real.sight(cell),
                }
            }
        }),
    ]
}

/// Of what is concluded on our side.
pub(super) fn of_the_client() -> Vec<Suspect> {
    vec![
        mutation!("claim: judge", "does not know its own claim", ForwardAlone breaks NeverItsOwnRival, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                match Real.judge(seen, ours) {
                    Attempt::Won => Attempt::InFlight { age: std::time::Duration::ZERO },
                    other => other,
                }
            }
        }),
        mutation!("claim: judge", "takes every claim for its own", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                match Real.judge(seen, ours) {
                    Attempt::InFlight { .. } => Attempt::Won,
                    other => other,
                }
            }
        }),
        mutation!("claim: judge", "takes a claim in flight for done", Forward breaks NoEmptyPromise, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                match Real.judge(seen, ours) {
                    Attempt::InFlight { .. } => Attempt::Done,
                    other => other,
                }
            }
        }),
        mutation!("claim: judge", "takes a done mark for a claim in flight", ForwardAlone breaks StuckFrees, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                match Real.judge(seen, ours) {
                    Attempt::Done => Attempt::InFlight { age: std::time::Duration::ZERO },
                    other => other,
                }
            }
            fn sight(&self, cell: &Cell) -> Sight {
                match Real.sight(cell) {
                    Sight::Done => Sight::InFlight,
                    other => other,
                }
            }
        }),
        mutation!("claim: judge", "never takes over", ForwardAlone breaks StuckFrees, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                Real.judge(seen, ours).unfought()
            }
        }),
        mutation!("claim: judge", "takes over what lives", ForwardAlone breaks TakenOverOnlyWhenOver, {
            fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
                match Real.judge(seen, ours) {
                    Attempt::InFlight { age } => Attempt::Replace {
                        age,
                        taken_over: true,
                        left_ms_max: i64::MAX,
                    },
                    other => other,
                }
            }
        }),
        mutation!("claim: judge late", "thinks it has won what another was faster to take", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn judge_late(&self, _: &Held, _: &InFlight) -> Attempt {
                Attempt::Won
            }
        }),
        mutation!("path: hold", "takes an unknown outcome for a duplicate", Inbox breaks NoEmptyPromise, {
            fn hold(&self, claimed: Result<Claim, Unavailable>) -> Result<Hold, Handled> {
                match claimed {
                    Err(_) => Err(Handled::Duplicate(DecidedBy::Claim)),
                    other => Real.hold(other),
                }
            }
        }),
        mutation!("path: hold", "takes an unknown outcome for won", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn hold(&self, claimed: Result<Claim, Unavailable>) -> Result<Hold, Handled> {
                match claimed {
                    Err(Unavailable { possible: Some(lease), .. }) => Ok(Hold::Ours(*lease)),
                    other => Real.hold(other),
                }
            }
        }),
        mutation!("right", "runs although another has the claim", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn right(&self, hold: &Hold) -> hookgate_gateway::handler::Right {
                match hold {
                    Hold::Others => hookgate_gateway::handler::Right::Run,
                    other => Real.right(other),
                }
            }
        }),
    ]
}
