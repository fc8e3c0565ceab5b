//! A delivery's way from claim to answer, in steps between which anything may happen. Mirrors `receiver.rs`,
//! `handler/forward.rs`, `handler/inbox.rs` and `handler/waiting.rs`: the order of the questions is told again here,
//! what is asked and what the answers mean is the real thing.

mod claiming;
mod forwarding;

use hookgate_gateway::handler::{Closing, Handled, Seen, Witness};
use hookgate_ledger::rules;
use hookgate_ledger::{Appended, LedgerError, OnFailure, Settled};

use self::claiming::{hear_claim, hear_replacement};
pub(crate) use self::forwarding::CallEnd;
pub(crate) use self::forwarding::{call_ends, give_up_waiting, target};
use self::forwarding::{hear_begin, hear_finish, hear_look};
use crate::bounds::LEASE_MS;
use crate::check::Check;
use crate::message::{Fate, Message, Reply, ToLedger, ToRedis, apply};
use crate::promises::Watch;
use crate::situations::Situation;
use crate::state::{Chore, Close, Delivery, Holding, Phase, State, Task, delivery_id};

/// No answer, as the path hears it.
struct Silence {
    /// Whether it is known that nothing took effect, as of an open circuit.
    refused: bool,
}

type Heard = Result<Reply, Silence>;

/// A delivery comes to a replica.
pub(crate) fn arrive(check: &Check, state: &mut State, number: usize, replica: usize) {
    let claim = state.fresh_claim();
    state.deliveries[number] = Delivery {
        replica: replica as u8,
        hold: Holding::Unclaimed,
        phase: Phase::Claiming(claim),
    };
    check.met(Situation::Delivery);
}

/// What a delivery asks next, if it asks a store.
pub(crate) fn message(check: &Check, state: &State, number: usize) -> Option<Message> {
    let delivery = &state.deliveries[number];
    let redis = |command| Some(Message::Redis(command));
    let ledger = |statement| Some(Message::Ledger(statement));
    let id = delivery_id(number);
    match delivery.phase {
        Phase::Unsent | Phase::Over | Phase::Calling(_) => None,
        Phase::Claiming(claim) => redis(ToRedis::Set(claim)),
        Phase::Replacing {
            claim,
            seen,
            left_ms_max,
        } => redis(ToRedis::Replace {
            claim,
            seen,
            left_ms_max,
        }),
        Phase::Appending => ledger(ToLedger::Append(id)),
        Phase::Adopting => ledger(ToLedger::Adopt),
        Phase::Beginning { .. } => ledger(ToLedger::Begin(id)),
        Phase::Finishing(run) => ledger(ToLedger::Finish(run)),
        Phase::Releasing(run) => ledger(ToLedger::Release(run, is_silent(check))),
        Phase::AskingFirst => ledger(ToLedger::Look),
        Phase::Waiting { .. } => match check.protocol.witness(&delivery.hold.to_hold()) {
            Witness::Claim => redis(ToRedis::Look),
            Witness::Ledger => ledger(ToLedger::Look),
        },
        Phase::Closing(_, close) => redis(match close {
            Close::MarkDone => ToRedis::MarkDone,
            Close::Finish(claim) | Close::FinishPossible(claim) => ToRedis::Finish(claim),
            Close::Release(claim) => ToRedis::Release(claim),
        }),
    }
}

fn is_silent(check: &Check) -> bool {
    matches!(check.bounds.mode.on_failure(), OnFailure::WorkerRetries(_))
}

/// A delivery asks, and this becomes of its message.
pub(crate) fn ask(check: &Check, state: &mut State, number: usize, fate: Fate) {
    let Some(message) = message(check, state, number) else {
        return;
    };
    let heard = match fate {
        Fate::Answered => Ok(apply(&*check.protocol, state, message)),
        Fate::Refused => Err(Silence { refused: true }),
        Fate::Lost => Err(Silence { refused: false }),
        Fate::Unheard => {
            let _ = apply(&*check.protocol, state, message);
            Err(Silence { refused: false })
        }
        Fate::Late => {
            state.late.push(message);
            Err(Silence { refused: false })
        }
        Fate::Again => {
            let _ = apply(&*check.protocol, state, message);
            return;
        }
    };
    hear(check, state, number, heard);
}

fn hear(check: &Check, state: &mut State, number: usize, heard: Heard) {
    match state.deliveries[number].phase {
        Phase::Unsent | Phase::Over | Phase::Calling(_) => {}
        Phase::Claiming(claim) => hear_claim(check, state, number, claim, heard),
        Phase::Replacing { claim, .. } => hear_replacement(check, state, number, claim, heard),
        Phase::Appending => hear_append(check, state, number, heard),
        Phase::Adopting => {
            let adopted = check.protocol.adopted(&heard.map(|_| ()).map_err(|_| silent()));
            handled(check, state, number, adopted);
        }
        Phase::Beginning { last } => hear_begin(check, state, number, last, heard),
        Phase::Finishing(run) => hear_finish(check, state, number, run, heard),
        Phase::Releasing(_) => {
            let released = settled(heard);
            let next = check.bounds.mode.on_failure();
            let released = check.protocol.released(&released, next);
            handled(check, state, number, released);
        }
        Phase::AskingFirst => {
            let Ok(Reply::Entry(entry)) = heard else { return };
            match check.protocol.seen_at_first(&Ok(entry)) {
                Seen::Done(by) => handled(check, state, number, Handled::Duplicate(by)),
                Seen::InFlight | Seen::Free => {
                    state.deliveries[number].phase = Phase::Waiting { long: false };
                }
            }
        }
        Phase::Waiting { .. } => hear_look(check, state, number, heard),
        Phase::Closing(was, close) => hear_close(check, state, number, was, close, heard.is_ok()),
    }
}

fn hear_append(check: &Check, state: &mut State, number: usize, heard: Heard) {
    let appended = match heard {
        Ok(Reply::Appended(rules::Appended::Accepted)) => Ok(Appended::Accepted),
        Ok(Reply::Appended(rules::Appended::Duplicate(found))) => {
            check.met(Situation::DuplicateByLedger);
            if check.protocol.needs_adoption(found) {
                check.met(Situation::Adoption);
                state.deliveries[number].phase = Phase::Adopting;
                return;
            }
            Ok(Appended::Duplicate {
                state: found,
                same_body: true,
            })
        }
        Ok(_) | Err(_) => Err(silent()),
    };
    let appended = check.protocol.appended(&appended);
    handled(check, state, number, appended);
}

fn silent() -> LedgerError {
    LedgerError::Unavailable(String::new())
}

fn settled(heard: Heard) -> Result<Settled, LedgerError> {
    match heard {
        Ok(Reply::Settled(settled)) => Ok(settled),
        Ok(_) | Err(_) => Err(silent()),
    }
}

/// The event is handled: its claim is closed.
fn handled(check: &Check, state: &mut State, number: usize, how: Handled) {
    let hold = state.deliveries[number].hold.to_hold();
    let close = match check.protocol.close(how, hold, check.bounds.mode.has_ledger()) {
        Closing::MarkDone => Close::MarkDone,
        Closing::Finish(lease) => Close::Finish(*lease.claim()),
        Closing::FinishPossible(lease) => Close::FinishPossible(*lease.claim()),
        Closing::Release(lease) => Close::Release(*lease.claim()),
        Closing::ReleasePossible(lease) => Close::Release(*lease.claim()),
        Closing::Nothing => {
            let was = state.deliveries[number].phase;
            state.deliveries[number].phase = Phase::Over;
            failure(check, state, number, how);
            state.deliveries[number].phase = was;
            return answer(check, state, number, how);
        }
    };
    state.deliveries[number].phase = Phase::Closing(how, close);
    failure(check, state, number, how);
}

fn failure(check: &Check, state: &mut State, number: usize, how: Handled) {
    if how == Handled::Failed {
        Watch::failure(check, state, number);
    }
}

fn hear_close(check: &Check, state: &mut State, number: usize, was: Handled, close: Close, heard: bool) {
    if let (Close::Finish(claim), false) = (close, heard)
        && check.protocol.finishes_later()
    {
        state.chores.push(Chore {
            replica: state.deliveries[number].replica,
            task: Task::FinishClaim(claim),
            left_ms: LEASE_MS,
        });
    }
    let now = check.protocol.closed(was, heard);
    if was.is_promised() {
        Watch::effect(state, now);
    }
    match now == was {
        true => answer(check, state, number, was),
        false => handled(check, state, number, now),
    }
}

fn answer(check: &Check, state: &mut State, number: usize, how: Handled) {
    state.deliveries[number] = Delivery::OVER;
    check.met(Situation::answered(how));
    if check.protocol.is_promised(how) {
        Watch::promise(state);
    }
}
