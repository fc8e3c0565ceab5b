//! Every transition of the protocol, one method each. The default of each is the real one, from the crates that run
//! it: `hookgate_claim::cell` is what the memory store is made of and what Redis's scripts are held to,
//! `hookgate_ledger::rules` is what both databases are held to, and the gateway's decisions are the gateway's own
//! functions. A naive receiver or a mutation overrides one or a few of them.

use hookgate_claim::cell::{Attempt, Cell, Held, InFlight, Replaced, Value};
use hookgate_claim::{Claim, Epoch, Ownership, Sight, Unavailable};
use hookgate_gateway::config::WithoutStore;
use hookgate_gateway::handler::{Closing, Handled, Hold, Right, Seen, Witness};
use hookgate_ledger::rules::{self, Row, RunId};
use hookgate_ledger::{
    Appended, Begun, DeliveryId, Entry, LedgerError, OnFailure, Outcome, Queue, Settled, State as RowState,
};

use crate::bounds::{LEASE_MS, TRIES_MAX};
use crate::state::EPOCH;

/// The ledger's clock: times in a row count from now.
pub const NOW: i64 = 0;

/// The transitions. Nothing here remembers anything.
pub trait Protocol: Send + Sync {
    /// Redis: `SET NX GET EX`.
    fn set_if_free(&self, cell: &mut Cell, claim: &InFlight) -> Option<Held> {
        cell.set_if_free(claim)
    }

    /// Redis: the script that takes over.
    fn replace(&self, cell: &mut Cell, seen: &Value, claim: &InFlight, left_ms_max: i64) -> Replaced {
        cell.replace(seen, claim, left_ms_max)
    }

    /// Redis: the script that renews.
    fn renew(&self, cell: &mut Cell, claim: &InFlight) -> Ownership {
        cell.renew(claim)
    }

    /// Redis: the script that finishes.
    fn finish_claim(&self, cell: &mut Cell, claim: &InFlight) -> Ownership {
        cell.finish(claim)
    }

    /// Redis: the script that releases.
    fn release_claim(&self, cell: &mut Cell, claim: &InFlight) -> Ownership {
        cell.release(claim)
    }

    /// Redis: the done mark of what the ledger holds.
    fn mark_done(&self, cell: &mut Cell, epoch: Epoch, ttl_ms: u64) {
        cell.mark_done(epoch, ttl_ms);
    }

    /// Redis: a look.
    fn sight(&self, cell: &Cell) -> Sight {
        cell.sight(&EPOCH)
    }

    /// The claim client: what a claim concludes from what it met.
    fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
        seen.judge(ours, &EPOCH)
    }

    /// The claim client: what a takeover concludes that came too late.
    fn judge_late(&self, found: &Held, ours: &InFlight) -> Attempt {
        found.judge(ours, &EPOCH).unfought()
    }

    /// The path: what is held after a claim.
    fn hold(&self, claimed: Result<Claim, Unavailable>) -> Result<Hold, Handled> {
        use hookgate_gateway::handler::DecidedBy;
        Hold::after(claimed).ok_or(Handled::Duplicate(DecidedBy::Claim))
    }

    /// The path: how a claim is closed.
    fn close(&self, handled: Handled, hold: Hold, has_ledger: bool) -> Closing {
        Closing::of(handled, hold, has_ledger)
    }

    /// The path: the answer after the close, which cannot change it.
    fn closed(&self, handled: Handled, _heard: bool) -> Handled {
        handled
    }

    /// The path: whether the answer is 200.
    fn is_promised(&self, handled: Handled) -> bool {
        handled.is_promised()
    }

    /// The path: whether a finish of the claim that was not heard is told again.
    fn finishes_later(&self) -> bool {
        true
    }

    /// Forward: who may run without a ledger.
    fn right(&self, hold: &Hold) -> Right {
        hold.right(WithoutStore::Reject)
    }

    /// Forward: whom a waiter asks.
    fn witness(&self, hold: &Hold) -> Witness {
        Witness::of(hold)
    }

    /// Forward: what a waiter's first question says.
    fn seen_at_first(&self, entry: &Result<Option<Entry>, LedgerError>) -> Seen {
        Seen::at_first(entry)
    }

    /// Forward: what a look at the claim says.
    fn seen_by_claim(&self, sight: Sight) -> Seen {
        Seen::by_claim(sight)
    }

    /// Forward: what a look at the row says.
    fn seen_by_row(&self, entry: &Result<Option<Entry>, LedgerError>) -> Seen {
        Seen::by_row(entry)
    }

    /// Forward: what a begin says that gave nothing to run.
    fn not_begun(&self, begun: &Result<Begun, LedgerError>, last: bool, is_up: bool) -> Option<Handled> {
        Handled::not_begun(begun, last, is_up)
    }

    /// Forward: how a run ended that took effect.
    fn finished(&self, finished: &Result<Settled, LedgerError>) -> Handled {
        Handled::finished(finished)
    }

    /// Forward: whether a finish of the row that was not heard is told again.
    fn tells_later(&self, finished: &Result<Settled, LedgerError>) -> bool {
        finished.is_err()
    }

    /// Forward: how a run ended that failed.
    fn released(&self, released: &Result<Settled, LedgerError>, next: OnFailure) -> Handled {
        Handled::released(released, next)
    }

    /// Forward and worker: whether a call keeps its lease.
    fn keeps_alive(&self) -> bool {
        true
    }

    /// Inbox: what an append says.
    fn appended(&self, appended: &Result<Appended, LedgerError>) -> Handled {
        Handled::appended(appended)
    }

    /// Inbox: whether a duplicate's row is adopted before the answer.
    fn needs_adoption(&self, state: RowState) -> bool {
        Handled::needs_adoption(state)
    }

    /// Inbox: what the adoption says.
    fn adopted(&self, adopted: &Result<(), LedgerError>) -> Handled {
        Handled::adopted(adopted)
    }

    /// Ledger: an append.
    fn append(&self, row: &mut Option<Row>, delivery: DeliveryId) -> rules::Appended {
        rules::append(row, delivery, Queue::ForWorker, NOW)
    }

    /// Ledger: the begin of a forward.
    fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> rules::Begun {
        rules::begin(row, delivery, LEASE_MS, NOW)
    }

    /// Ledger: the adoption of a forward's row.
    fn adopt(&self, row: &mut Row) {
        rules::adopt(row, NOW);
    }

    /// Ledger: a worker's look.
    fn fetch(&self, row: &mut Row, owner: DeliveryId) -> Option<RunId> {
        rules::fetch(row, owner, LEASE_MS, NOW)
    }

    /// Ledger: a lease kept.
    fn heartbeat(&self, row: &mut Row, run: &RunId) -> Settled {
        rules::heartbeat(row, run, LEASE_MS, NOW)
    }

    /// Ledger: the end of a worker's run, and of a forward that took effect.
    fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
        rules::settle(row, run, outcome, None, NOW)
    }

    /// Ledger: the end of a forward that failed.
    fn release_row(&self, row: &mut Row, run: &RunId, next: OnFailure) -> Settled {
        rules::release(row, run, next, NOW)
    }

    /// Ledger: freeing a row whose owner died.
    fn rescue(&self, row: &mut Row, provider_retries: bool) -> bool {
        rules::rescue(row, TRIES_MAX, provider_retries, NOW)
    }

    /// Worker: whether it goes on telling how a run ended until it is heard.
    fn settles_again(&self) -> bool {
        true
    }
}

/// The protocol as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Real;

impl Protocol for Real {}
