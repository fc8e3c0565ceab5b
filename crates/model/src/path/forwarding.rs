//! A forward's rounds: begin, call, tell the ledger, or wait for whoever else has the event.

use hookgate_gateway::handler::{Handled, Right, Seen};
use hookgate_ledger::rules::{self, Row, RunId};
use hookgate_ledger::{Begun, Settled};

use super::{Heard, Silence, handled, settled, silent};
use crate::bounds::LEASE_MS;
use crate::check::Check;
use crate::message::{Message, Reply, ToLedger, apply};
use crate::promises::Watch;
use crate::protocol::NOW;
use crate::situations::Situation;
use crate::state::{Chore, Holding, Phase, State, Task, delivery_id};

/// How a call of the target ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEnd {
    /// 2xx.
    Took,
    /// Anything else, without effect.
    Failed,
    /// No answer in time, but it took effect.
    TookUnheard,
    /// No answer in time, and it takes effect later.
    TakesLate,
}

/// One round of a forward: run it, learn how it stands, or wait.
pub(super) fn go_on(check: &Check, state: &mut State, number: usize, waited: bool) {
    let hold = state.deliveries[number].hold;
    if !waited && hold == Holding::Others {
        return wait(check, state, number);
    }
    if check.bounds.mode.has_ledger() {
        state.deliveries[number].phase = Phase::Beginning { last: waited };
        return;
    }
    match check.protocol.right(&hold.to_hold()) {
        Right::Run | Right::Unguarded => state.deliveries[number].phase = Phase::Calling(None),
        Right::Refuse => handled(check, state, number, Handled::Unavailable),
        Right::Wait if waited => handled(check, state, number, Handled::InFlight),
        Right::Wait => wait(check, state, number),
    }
}

pub(super) fn wait(check: &Check, state: &mut State, number: usize) {
    check.met(Situation::Waiter);
    state.deliveries[number].phase = match check.bounds.mode.has_ledger() {
        true => Phase::AskingFirst,
        false => Phase::Waiting { long: false },
    };
}

/// A waiter's time is over.
pub(crate) fn give_up_waiting(check: &Check, state: &mut State, number: usize) {
    go_on(check, state, number, true);
}

pub(super) fn hear_look(check: &Check, state: &mut State, number: usize, heard: Heard) {
    let seen = match heard {
        Ok(Reply::Sight(sight)) => check.protocol.seen_by_claim(sight),
        Ok(Reply::Entry(entry)) => check.protocol.seen_by_row(&Ok(entry)),
        // The claim store cannot answer: the row is asked in the same breath.
        Err(_) if check.bounds.mode.has_ledger() => {
            match apply(&*check.protocol, state, Message::Ledger(ToLedger::Look)) {
                Reply::Entry(entry) => check.protocol.seen_by_row(&Ok(entry)),
                _ => Seen::InFlight,
            }
        }
        Ok(_) | Err(_) => Seen::InFlight,
    };
    match (seen, state.deliveries[number].hold) {
        (Seen::InFlight, _) => {}
        (Seen::Done(by), _) => handled(check, state, number, Handled::Duplicate(by)),
        (Seen::Free, Holding::Ours(_)) => go_on(check, state, number, false),
        (Seen::Free, _) => {
            check.met(Situation::FreedForWaiter);
            state.deliveries[number].phase = Phase::Claiming(state.fresh_claim());
        }
    }
}

pub(super) fn hear_begin(check: &Check, state: &mut State, number: usize, last: bool, heard: Heard) {
    let is_up = !matches!(heard, Err(Silence { refused: true }));
    let begun = match heard {
        Ok(Reply::Begun(rules::Begun::Run(run))) => {
            state.deliveries[number].phase = Phase::Calling(Some(run));
            return;
        }
        Ok(Reply::Begun(rules::Begun::Running)) => {
            let ours = |row: &Row| {
                !row.lease_ended(NOW) && row.run().is_some_and(|run| run.owner == delivery_id(number))
            };
            Watch::rival(state, state.row.as_ref().is_some_and(ours));
            Ok(Begun::Running)
        }
        Ok(Reply::Begun(rules::Begun::Settled(found))) => {
            check.met(Situation::DuplicateByLedger);
            Ok(Begun::Settled {
                state: found,
                same_body: true,
            })
        }
        Ok(_) | Err(_) => Err(silent()),
    };
    match check.protocol.not_begun(&begun, last, is_up) {
        Some(how) => handled(check, state, number, how),
        None if last => handled(check, state, number, Handled::InFlight),
        None => wait(check, state, number),
    }
}

pub(super) fn hear_finish(check: &Check, state: &mut State, number: usize, run: RunId, heard: Heard) {
    let finished = settled(heard);
    if matches!(finished, Ok(Settled::Lost)) {
        check.met(Situation::LateOwnerOfRow);
    }
    if check.protocol.tells_later(&finished) {
        state.chores.push(Chore {
            replica: state.deliveries[number].replica,
            task: Task::FinishRow(run),
            left_ms: LEASE_MS,
        });
    }
    let finished = check.protocol.finished(&finished);
    Watch::effect(state, finished);
    handled(check, state, number, finished);
}

/// The target answered, or did not.
pub(crate) fn call_ends(check: &Check, state: &mut State, number: usize, end: CallEnd) {
    let Phase::Calling(run) = state.deliveries[number].phase else {
        return;
    };
    let took = target(check, state, end);
    match (run, took) {
        (Some(run), true) => state.deliveries[number].phase = Phase::Finishing(run),
        (Some(run), false) => state.deliveries[number].phase = Phase::Releasing(run),
        (None, true) => handled(check, state, number, Handled::Accepted),
        (None, false) => handled(check, state, number, Handled::Failed),
    }
}

/// What a call does at the target. Says whether it answered 2xx.
pub(crate) fn target(check: &Check, state: &mut State, end: CallEnd) -> bool {
    match end {
        CallEnd::Took => {
            let _ = apply(&*check.protocol, state, Message::Target);
        }
        CallEnd::Failed => {}
        CallEnd::TookUnheard => {
            let _ = apply(&*check.protocol, state, Message::Target);
            state.excuses += 1;
        }
        CallEnd::TakesLate => {
            state.late.push(Message::Target);
            state.excuses += 1;
        }
    }
    end == CallEnd::Took
}
