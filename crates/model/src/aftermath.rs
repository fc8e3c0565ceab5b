//! What comes of a situation if nothing else fails: the questions behind the promises that speak of the future.
//!
//! The same steps as everywhere, one after another, always answered.

use crate::bounds::LEASE_TICKS;
use crate::check::Check;
use crate::message::Fate;
use crate::path;
use crate::promises::one_more;
use crate::state::{Delivery, Phase, State, Worker};
use crate::worker;

/// Ticks that workers are given: a lease of whoever died, and time for each of their own looks.
pub(crate) const TICKS_MAX: u32 = LEASE_TICKS + 1;

/// Steps that no delivery needs.
const STEPS_MAX: u32 = 40;

/// After so many ticks in which nobody does anything.
pub(crate) fn ticks(check: &Check, state: &State, count: u32) -> State {
    let mut after = state.clone();
    for _ in 0..count {
        after.pass(check.bounds.mode.has_ledger());
    }
    after
}

/// What workers make of it within so many ticks.
pub(crate) fn of_workers(check: &Check, state: &State, ticks_max: u32) -> State {
    let check = &check.aside();
    let mut after = state.clone();
    if !check.bounds.mode.has_workers() {
        return after;
    }
    for round in 0..=ticks_max {
        if round > 0 {
            after.pass(check.bounds.mode.has_ledger());
        }
        worker::rescue(check, &mut after);
        worker::ask(check, &mut after, 0, Fate::Answered);
        if matches!(after.workers[0], Worker::Calling(_)) {
            worker::call_ends(check, &mut after, 0, path::CallEnd::Took);
            worker::ask(check, &mut after, 0, Fate::Answered);
        }
    }
    after
}

/// The same, once this delivery has closed its claim.
pub(crate) fn closed(check: &Check, state: &State, number: usize) -> State {
    let check = &check.aside();
    let mut after = state.clone();
    while after.deliveries[number].phase.is_live() {
        path::ask(check, &mut after, number, Fate::Answered);
    }
    after
}

/// What becomes of one more delivery, at this very moment. Says whether it was answered 200.
pub(crate) fn of_delivery(check: &Check, state: &State) -> (bool, State) {
    let check = &check.aside();
    let mut after = state.clone();
    let number = one_more(state);
    let promised = std::mem::replace(&mut after.promised, false);
    after.deliveries[number] = Delivery::OVER;
    path::arrive(check, &mut after, number, check.bounds.replicas - 1);
    for _ in 0..STEPS_MAX {
        match after.deliveries[number].phase {
            Phase::Over => break,
            Phase::Calling(_) => path::call_ends(check, &mut after, number, path::CallEnd::Took),
            Phase::Waiting { .. } => {
                let before = after.clone();
                path::ask(check, &mut after, number, Fate::Answered);
                if after == before {
                    path::give_up_waiting(check, &mut after, number);
                }
            }
            _ => path::ask(check, &mut after, number, Fate::Answered),
        }
    }
    let answered = std::mem::replace(&mut after.promised, promised);
    after.promised |= answered;
    (answered, after)
}
