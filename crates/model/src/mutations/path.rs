//! Changed decisions of the path.

use hookgate_claim::cell::Cell;
use hookgate_claim::{Epoch, Sight};
use hookgate_gateway::handler::{Closing, DecidedBy, Handled, Hold, Right, Seen};
use hookgate_ledger::{Appended, Begun, Entry, LedgerError, OnFailure, Settled, State as RowState};

use super::mutation;
use crate::naive::Suspect;
use crate::protocol::Real;

const DUPLICATE: Handled = Handled::Duplicate(DecidedBy::Ledger);

/// Of the close and the answer.
pub(super) fn of_the_close() -> Vec<Suspect> {
    vec![
        mutation!("close", "marks done what nothing could be promised of", Inbox breaks NoEmptyPromise, {
            fn close(&self, handled: Handled, hold: Hold, has_ledger: bool) -> Closing {
                match handled {
                    Handled::Unavailable => Closing::MarkDone,
                    other => Real.close(other, hold, has_ledger),
                }
            }
        }),
        mutation!("close", "marks done what failed", Forward breaks NoEmptyPromise, {
            fn close(&self, handled: Handled, hold: Hold, has_ledger: bool) -> Closing {
                match handled {
                    Handled::Failed => Closing::MarkDone,
                    other => Real.close(other, hold, has_ledger),
                }
            }
        }),
        mutation!("close", "keeps the claim of what failed", ForwardAlone breaks FailedRunsAtOnce, {
            fn close(&self, handled: Handled, hold: Hold, has_ledger: bool) -> Closing {
                match handled {
                    Handled::Failed => Closing::Nothing,
                    other => Real.close(other, hold, has_ledger),
                }
            }
        }),
        mutation!("close", "deletes the claim of what took effect", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn close(&self, handled: Handled, hold: Hold, has_ledger: bool) -> Closing {
                match Real.close(handled, hold, has_ledger) {
                    Closing::Finish(lease) => Closing::Release(lease),
                    other => other,
                }
            }
        }),
        mutation!("close", "finishes without a ledger only once", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn finishes_later(&self) -> bool {
                false
            }
        }),
        mutation!("close", "a mark that was not heard makes the answer a failure", Forward breaks NoFalseFailure, {
            fn closed(&self, handled: Handled, heard: bool) -> Handled {
                match (handled, heard) {
                    (Handled::Accepted, false) => Handled::Failed,
                    _ => handled,
                }
            }
        }),
        mutation!("mark done", "marks before the ledger was asked", Inbox breaks NoEmptyPromise, {
            fn set_if_free(&self, cell: &mut Cell, claim: &hookgate_claim::cell::InFlight) -> Option<hookgate_claim::cell::Held> {
                let seen = Real.set_if_free(cell, claim);
                if seen.is_none() {
                    self.mark_done(cell, crate::state::EPOCH, 3_000);
                }
                seen
            }
            fn mark_done(&self, cell: &mut Cell, epoch: Epoch, ttl_ms: u64) {
                cell.mark_done(epoch, ttl_ms);
            }
        }),
        mutation!("answer", "200 while in flight", Forward breaks NoEmptyPromise, {
            fn is_promised(&self, handled: Handled) -> bool {
                handled == Handled::InFlight || handled.is_promised()
            }
        }),
        mutation!("answer", "200 for what failed", Forward breaks NoEmptyPromise, {
            fn is_promised(&self, handled: Handled) -> bool {
                handled == Handled::Failed || handled.is_promised()
            }
        }),
        mutation!("answer", "200 for what nothing can be promised of", Inbox breaks NoEmptyPromise, {
            fn is_promised(&self, handled: Handled) -> bool {
                handled == Handled::Unavailable || handled.is_promised()
            }
        }),
        mutation!("answer", "no 200 for a duplicate", Forward breaks StuckFrees, {
            fn is_promised(&self, handled: Handled) -> bool {
                !matches!(handled, Handled::Duplicate(_)) && handled.is_promised()
            }
        }),
    ]
}

/// Of a forward, and of waiting.
pub(super) fn of_a_forward() -> Vec<Suspect> {
    vec![
        mutation!("right", "runs without knowing whose the claim is", ForwardAlone breaks NoSecondEffectWithoutReason, {
            fn right(&self, hold: &Hold) -> Right {
                match Real.right(hold) {
                    Right::Refuse => Right::Unguarded,
                    other => other,
                }
            }
        }),
        mutation!("first look", "takes a running row for done", Forward breaks NoEmptyPromise, {
            fn seen_at_first(&self, entry: &Result<Option<Entry>, LedgerError>) -> Seen {
                match entry {
                    Ok(Some(_)) => Seen::Done(DecidedBy::Ledger),
                    _ => Seen::InFlight,
                }
            }
        }),
        mutation!("look at the claim", "takes a free claim for done", ForwardAlone breaks NoEmptyPromise, {
            fn seen_by_claim(&self, sight: Sight) -> Seen {
                match sight {
                    Sight::Free => Seen::Done(DecidedBy::Claim),
                    other => Real.seen_by_claim(other),
                }
            }
        }),
        mutation!("look at the row", "takes a failed row for done", Forward breaks NoEmptyPromise, {
            fn seen_by_row(&self, entry: &Result<Option<Entry>, LedgerError>) -> Seen {
                match entry {
                    Ok(Some(entry)) if entry.state == RowState::Failed => Seen::Done(DecidedBy::Ledger),
                    other => Real.seen_by_row(other),
                }
            }
        }),
        mutation!("look at the row", "takes a running row for done", Forward breaks NoEmptyPromise, {
            fn seen_by_row(&self, entry: &Result<Option<Entry>, LedgerError>) -> Seen {
                match entry {
                    Ok(Some(entry)) if entry.state == RowState::Running => Seen::Done(DecidedBy::Ledger),
                    other => Real.seen_by_row(other),
                }
            }
        }),
        mutation!("not begun", "takes a row that another runs for done", Forward breaks NoEmptyPromise, {
            fn not_begun(&self, begun: &Result<Begun, LedgerError>, last: bool, is_up: bool) -> Option<Handled> {
                match begun {
                    Ok(Begun::Running) => Some(DUPLICATE),
                    other => Real.not_begun(other, last, is_up),
                }
            }
        }),
        mutation!("not begun", "takes a ledger that cannot answer for one that knows", Forward breaks NoEmptyPromise, {
            fn not_begun(&self, begun: &Result<Begun, LedgerError>, last: bool, is_up: bool) -> Option<Handled> {
                match begun {
                    Err(_) => Some(DUPLICATE),
                    other => Real.not_begun(other, last, is_up),
                }
            }
        }),
        mutation!("not begun", "does not know a finished row", Forward breaks StuckFrees, {
            fn not_begun(&self, begun: &Result<Begun, LedgerError>, last: bool, is_up: bool) -> Option<Handled> {
                match begun {
                    Ok(Begun::Settled { .. }) => None,
                    other => Real.not_begun(other, last, is_up),
                }
            }
            fn seen_at_first(&self, _: &Result<Option<Entry>, LedgerError>) -> Seen {
                Seen::InFlight
            }
            fn seen_by_row(&self, _: &Result<Option<Entry>, LedgerError>) -> Seen {
                Seen::InFlight
            }
        }),
        mutation!("finished", "takes a repetition of its own finish for a failure", Forward breaks NoFalseFailure, {
            fn finished(&self, finished: &Result<Settled, LedgerError>) -> Handled {
                match finished {
                    Ok(Settled::Repeated { .. }) => Handled::Failed,
                    other => Real.finished(other),
                }
            }
        }),
        mutation!("finished", "takes a lost lease for a failure", Forward breaks NoFalseFailure, {
            fn finished(&self, finished: &Result<Settled, LedgerError>) -> Handled {
                match finished {
                    Ok(Settled::Lost) => Handled::Failed,
                    other => Real.finished(other),
                }
            }
        }),
        mutation!("finished", "tells the ledger only once", Forward breaks NoSecondEffectWithoutReason, {
            fn tells_later(&self, _: &Result<Settled, LedgerError>) -> bool {
                false
            }
        }),
        mutation!("released", "answers 200 for a failure that the provider must try again", Forward breaks NoEmptyPromise, {
            fn released(&self, released: &Result<Settled, LedgerError>, next: OnFailure) -> Handled {
                match released {
                    Ok(Settled::Committed) => Handled::Accepted,
                    other => Real.released(other, next),
                }
            }
        }),
        mutation!("released", "answers 200 although the row was not handed over", ForwardSilent breaks NoEmptyPromise, {
            fn released(&self, released: &Result<Settled, LedgerError>, next: OnFailure) -> Handled {
                match released {
                    Err(_) => Handled::Accepted,
                    other => Real.released(other, next),
                }
            }
        }),
        mutation!("released", "says failed although the row still runs", Forward breaks FailedRunsAtOnce, {
            fn released(&self, released: &Result<Settled, LedgerError>, next: OnFailure) -> Handled {
                match released {
                    Err(_) => Handled::Failed,
                    other => Real.released(other, next),
                }
            }
        }),
        mutation!("keep alive", "a call does not keep its leases", Forward breaks NoSecondEffectWithoutReason, {
            fn keeps_alive(&self) -> bool {
                false
            }
        }),
    ]
}

/// Of an inbox and its worker.
pub(super) fn of_an_inbox() -> Vec<Suspect> {
    vec![
        mutation!("appended", "takes a ledger that cannot answer for one that has kept it", Inbox breaks NoEmptyPromise, {
            fn appended(&self, appended: &Result<Appended, LedgerError>) -> Handled {
                match appended {
                    Err(_) => Handled::Accepted,
                    other => Real.appended(other),
                }
            }
        }),
        mutation!("appended", "refuses a duplicate", Inbox breaks StuckFrees, {
            fn appended(&self, appended: &Result<Appended, LedgerError>) -> Handled {
                match appended {
                    Ok(Appended::Duplicate { .. }) => Handled::Unavailable,
                    other => Real.appended(other),
                }
            }
        }),
        mutation!("vouch", "does not adopt what a forward left", Rolling breaks NoEmptyPromise, {
            fn needs_adoption(&self, _: RowState) -> bool {
                false
            }
        }),
        mutation!("vouch", "adopts a failed row only", Rolling breaks NoEmptyPromise, {
            fn needs_adoption(&self, state: RowState) -> bool {
                state == RowState::Failed
            }
        }),
        mutation!("vouch", "vouches without having adopted", Rolling breaks NoEmptyPromise, {
            fn adopted(&self, _: &Result<(), LedgerError>) -> Handled {
                DUPLICATE
            }
        }),
        mutation!("worker", "tells the ledger only once how a run ended", Inbox breaks NoSecondEffectWithoutReason, {
            fn settles_again(&self) -> bool {
                false
            }
        }),
        mutation!("worker", "a run does not keep its lease", Inbox breaks NoSecondEffectWithoutReason, {
            fn keeps_alive(&self) -> bool {
                false
            }
        }),
    ]
}
