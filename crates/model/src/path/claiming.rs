//! From a claim's first try to what is held of it.

use hookgate_claim::cell::{Attempt, Held, InFlight, Replaced, Value};
use hookgate_claim::{Claim, Lease, Trouble, Unavailable};

use super::forwarding::go_on;
use super::{Heard, Silence, handled};
use crate::bounds::{Handling, TERMS};
use crate::check::Check;
use crate::message::Reply;
use crate::promises::Watch;
use crate::situations::Situation;
use crate::state::{Holding, Phase, State, key};

pub(super) fn hear_claim(check: &Check, state: &mut State, number: usize, claim: InFlight, heard: Heard) {
    match heard {
        Ok(Reply::Set(None)) => claimed(check, state, number, Ok(first(claim))),
        Ok(Reply::Set(Some(seen))) => conclude(check, state, number, claim, &seen, false),
        Ok(_) | Err(_) => claimed(check, state, number, Err(unavailable(claim, &heard))),
    }
}

pub(super) fn hear_replacement(
    check: &Check,
    state: &mut State,
    number: usize,
    claim: InFlight,
    heard: Heard,
) {
    match heard {
        Ok(Reply::Replaced(Replaced::Free | Replaced::Seen)) => {
            check.met(Situation::TakeOver);
            claimed(check, state, number, Ok(first(claim)));
        }
        Ok(Reply::Replaced(Replaced::No(found))) => {
            check.met(Situation::TooLateToTakeOver);
            conclude(check, state, number, claim, &found, true);
        }
        Ok(_) | Err(_) => claimed(check, state, number, Err(unavailable(claim, &heard))),
    }
}

/// What a claim concludes from what it met.
pub(super) fn conclude(
    check: &Check,
    state: &mut State,
    number: usize,
    claim: InFlight,
    met: &Held,
    late: bool,
) {
    let attempt = match late {
        true => check.protocol.judge_late(met, &claim),
        false => check.protocol.judge(met, &claim),
    };
    match attempt {
        Attempt::Won => {
            check.met(Situation::MetItself);
            claimed(check, state, number, Ok(first(claim)));
        }
        Attempt::Done => claimed(check, state, number, Ok(Claim::Done)),
        Attempt::InFlight { age } => {
            let ours = |held: Held| held.value == Value::InFlight(claim);
            Watch::rival(state, state.cell.0.is_some_and(ours));
            claimed(check, state, number, Ok(Claim::InFlight { age }));
        }
        Attempt::Replace { left_ms_max, .. } => {
            state.deliveries[number].phase = Phase::Replacing {
                claim,
                seen: met.value,
                left_ms_max,
            };
        }
    }
}

pub(super) fn first(claim: InFlight) -> Claim {
    Claim::First(Lease::of(key(), TERMS, claim))
}

pub(super) fn unavailable(claim: InFlight, heard: &Heard) -> Unavailable {
    let refused = matches!(heard, Err(Silence { refused: true }));
    Unavailable {
        trouble: Trouble::Store,
        cause: String::new(),
        possible: (!refused).then(|| Box::new(Lease::of(key(), TERMS, claim))),
    }
}

/// The claim was tried: the event is handled, or was done.
pub(super) fn claimed(check: &Check, state: &mut State, number: usize, claimed: Result<Claim, Unavailable>) {
    if claimed.is_err() {
        check.met(Situation::Fallback);
    }
    match check.protocol.hold(claimed) {
        Ok(hold) => {
            state.deliveries[number].hold = Holding::of(&hold);
            let replica = usize::from(state.deliveries[number].replica);
            match check.bounds.mode.handling(replica) {
                Handling::Inbox => state.deliveries[number].phase = Phase::Appending,
                Handling::Forward => go_on(check, state, number, false),
            }
        }
        Err(done) => {
            check.met(Situation::DuplicateByClaim);
            handled(check, state, number, done);
        }
    }
}
