//! What workers do beside the path, step by step: look, call, settle, free what the dead left. Mirrors `worker/`.

use hookgate_ledger::{OnFailure, Settled, State as RowState};

use crate::bounds::TRIES_MAX;
use crate::check::Check;
use crate::message::{Fate, Message, Reply, ToLedger, apply};
use crate::path::{CallEnd, target};
use crate::situations::Situation;
use crate::state::{Ended, State, Worker};

/// What a worker asks next, if it asks the ledger.
pub(crate) fn message(check: &Check, state: &State, replica: usize) -> Option<Message> {
    match state.workers[replica] {
        Worker::Idle => {
            let row = state.row.as_ref().filter(|row| row.state.waits())?;
            check.bounds.mode.has_workers().then_some(())?;
            row.due.filter(|due| *due <= 0)?;
            Some(Message::Ledger(ToLedger::Fetch(state.fresh_owner())))
        }
        Worker::Calling(_) => None,
        Worker::Settling(run, ended) => Some(Message::Ledger(ToLedger::Settle(run, ended))),
    }
}

/// A worker asks, and this becomes of its message.
pub(crate) fn ask(check: &Check, state: &mut State, replica: usize, fate: Fate) {
    let Some(message) = message(check, state, replica) else {
        return;
    };
    let reply = match fate {
        Fate::Answered => Some(apply(&*check.protocol, state, message)),
        Fate::Unheard | Fate::Again => {
            let _ = apply(&*check.protocol, state, message);
            None
        }
        Fate::Late => {
            state.late.push(message);
            None
        }
        Fate::Lost | Fate::Refused => None,
    };
    state.workers[replica] = match (state.workers[replica], reply) {
        (Worker::Idle, Some(Reply::Fetched(Some(run)))) => {
            check.met(Situation::Fetched);
            Worker::Calling(run)
        }
        (Worker::Settling(..), Some(reply)) => {
            if reply == Reply::Settled(Settled::Lost) {
                check.met(Situation::LateOwnerOfRow);
            }
            Worker::Idle
        }
        (Worker::Settling(run, ended), None) if check.protocol.settles_again() => {
            Worker::Settling(run, ended)
        }
        (Worker::Settling(..) | Worker::Idle, _) => Worker::Idle,
        (calling @ Worker::Calling(_), _) => calling,
    };
}

/// The target answered a worker, or did not.
pub(crate) fn call_ends(check: &Check, state: &mut State, replica: usize, end: CallEnd) {
    let Worker::Calling(run) = state.workers[replica] else {
        return;
    };
    let took = target(check, state, end);
    let tries = state.row.as_ref().map_or(0, |row| row.tries);
    let ended = match took {
        true => Ended::Done,
        false if tries >= TRIES_MAX => Ended::Dead,
        false => Ended::Retry,
    };
    state.workers[replica] = Worker::Settling(run, ended);
}

/// Some worker frees a row whose owner died.
pub(crate) fn rescue(check: &Check, state: &mut State) {
    let provider_retries = check.bounds.mode.on_failure() == OnFailure::ProviderRetries;
    if let Some(row) = &mut state.row
        && row.state == RowState::Running
        && check.protocol.rescue(row, provider_retries)
    {
        check.met(Situation::Rescue);
    }
}
