//! What must always hold, and how a step that breaks it is caught.
//!
//! Every promise is a statement about a situation, or about what one step did; none needs `eventually`, of which the
//! checker knows only an approximation. That an event *will* take effect is asked as a question: if nothing else
//! fails from here on, what comes of it? See `aftermath`.

use hookgate_claim::Sight;
use hookgate_claim::cell::{Attempt, Cell, Value};
use hookgate_gateway::handler::Handled;
use hookgate_ledger::rules::{self, Row};
use hookgate_ledger::{Settled, State as RowState};
use stateright::Property;

use crate::aftermath;
use crate::bounds::LEASE_TICKS;
use crate::check::Check;
use crate::message::{Reply, ToLedger, ToRedis};
use crate::protocol::NOW;
use crate::state::{Delivery, EPOCH, State, delivery_id, in_flight};

/// One promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// An event that was answered 200 takes effect, if no further fault happens.
    TakesEffect,
    /// The ledger takes it in once and writes down once that it is done.
    OnceAtTheLedger,
    /// At the moment of a 200 the event is finished or durably kept.
    NoEmptyPromise,
    /// After a failure was answered and nobody else has the event, the next delivery runs it without any delay.
    FailedRunsAtOnce,
    /// When everybody who had the event is dead, it is free for the next one within a lease.
    StuckFrees,
    /// Who does not own claim or row changes neither.
    LateOwnerChangesNothing,
    /// Claim and row are taken over only from a holder whose lease has run out at that very moment.
    TakenOverOnlyWhenOver,
    /// The target is called again after an effect only if a crash, a pause or a call without an answer gave reason to.
    NoSecondEffectWithoutReason,
    /// Whose answer was lost and asks again knows its own claim and its own run, and does not wait for itself.
    NeverItsOwnRival,
    /// A delivery that knows that its event took effect does not answer that it failed.
    NoFalseFailure,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::TakesEffect,
        Self::OnceAtTheLedger,
        Self::NoEmptyPromise,
        Self::FailedRunsAtOnce,
        Self::StuckFrees,
        Self::LateOwnerChangesNothing,
        Self::TakenOverOnlyWhenOver,
        Self::NoSecondEffectWithoutReason,
        Self::NeverItsOwnRival,
        Self::NoFalseFailure,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::TakesEffect => "an event answered 200 takes effect",
            Self::OnceAtTheLedger => "at most one effect at the ledger",
            Self::NoEmptyPromise => "no 200 unless finished or durable",
            Self::FailedRunsAtOnce => "a failed event can run at once",
            Self::StuckFrees => "a stuck claim frees within a lease",
            Self::LateOwnerChangesNothing => "a late owner changes nothing",
            Self::TakenOverOnlyWhenOver => "only a lease that is over is taken over",
            Self::NoSecondEffectWithoutReason => "no second effect at the target without a reason",
            Self::NeverItsOwnRival => "nobody waits for itself",
            Self::NoFalseFailure => "what took effect is not said to have failed",
        }
    }

    /// The promise of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|promise| promise.name() == name)
    }
}

/// Promises that one step broke, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Broken(u16);

impl Broken {
    fn add(&mut self, promise: Promise) {
        self.0 |= 1 << promise as u8;
    }

    fn has(self, promise: Promise) -> bool {
        self.0 & (1 << promise as u8) != 0
    }
}

/// Every promise as the checker wants it.
pub(crate) fn properties() -> Vec<Property<Check>> {
    let always =
        |promise: Promise, holds: fn(&Check, &State) -> bool| Property::always(promise.name(), holds);
    vec![
        always(Promise::TakesEffect, takes_effect),
        always(Promise::OnceAtTheLedger, |_, state| {
            !state.broken.has(Promise::OnceAtTheLedger)
        }),
        always(Promise::NoEmptyPromise, |_, state| {
            !state.broken.has(Promise::NoEmptyPromise)
        }),
        always(Promise::FailedRunsAtOnce, |_, state| {
            !state.broken.has(Promise::FailedRunsAtOnce)
        }),
        always(Promise::StuckFrees, stuck_frees),
        always(Promise::LateOwnerChangesNothing, |_, state| {
            !state.broken.has(Promise::LateOwnerChangesNothing)
        }),
        always(Promise::TakenOverOnlyWhenOver, |_, state| {
            !state.broken.has(Promise::TakenOverOnlyWhenOver)
        }),
        always(Promise::NoSecondEffectWithoutReason, |_, state| {
            !state.broken.has(Promise::NoSecondEffectWithoutReason)
        }),
        always(Promise::NeverItsOwnRival, |_, state| {
            !state.broken.has(Promise::NeverItsOwnRival)
        }),
        always(Promise::NoFalseFailure, |_, state| {
            !state.broken.has(Promise::NoFalseFailure)
        }),
    ]
}

/// Asked where everything has come to rest: what is still under way comes to rest by steps that are checked as well.
fn takes_effect(check: &Check, state: &State) -> bool {
    if !state.promised || state.effects > 0 || !state.is_at_rest() {
        return true;
    }
    aftermath::of_workers(check, state, aftermath::TICKS_MAX).effects > 0
}

/// Nobody is left who could close anything: after a lease the claim is free or says done, and another delivery is
/// answered 200 and finds or brings about the effect.
fn stuck_frees(check: &Check, state: &State) -> bool {
    let nothing = state.cell == Cell(None) && state.row.is_none();
    if nothing || !state.is_at_rest() {
        return true;
    }
    let after = aftermath::ticks(check, state, LEASE_TICKS);
    if check.protocol.sight(&after.cell) == Sight::InFlight {
        return false;
    }
    let after = aftermath::of_workers(check, &after, 0);
    let (answered, after) = aftermath::of_delivery(check, &after);
    answered && aftermath::of_workers(check, &after, 0).effects > 0
}

/// What is looked at whenever something takes effect.
pub(crate) struct Watch;

impl Watch {
    /// The target took the event.
    pub(crate) fn target(state: &mut State) {
        if state.effects > state.excuses + 1 {
            state.broken.add(Promise::NoSecondEffectWithoutReason);
        }
    }

    /// A command was applied to the claim.
    pub(crate) fn claim(state: &mut State, before: Cell, command: ToRedis) {
        if state.cell == before {
            return;
        }
        let held = before.0.map(|held| held.value);
        match command {
            ToRedis::Renew(claim) | ToRedis::Finish(claim) | ToRedis::Release(claim) => {
                if held != Some(Value::InFlight(claim)) {
                    state.broken.add(Promise::LateOwnerChangesNothing);
                }
            }
            ToRedis::Set(claim) | ToRedis::Replace { claim, .. } => {
                let lives = before.0.is_some_and(|held| {
                    in_flight(held.value) != Some(claim)
                        && !matches!(held.judge(&claim, &EPOCH), Attempt::Replace { .. })
                });
                if lives {
                    state.broken.add(Promise::TakenOverOnlyWhenOver);
                }
            }
            ToRedis::MarkDone | ToRedis::Look => {}
        }
    }

    /// A statement was applied to the row.
    pub(crate) fn row(state: &mut State, before: Option<&Row>, statement: ToLedger, reply: &Reply) {
        let changed = state.row.as_ref() != before;
        let owner = before.and_then(Row::run).map(|run| run.owner);
        match statement {
            ToLedger::Heartbeat(run)
            | ToLedger::Finish(run)
            | ToLedger::Release(run, _)
            | ToLedger::Settle(run, _)
                if changed && owner != Some(run.owner) =>
            {
                state.broken.add(Promise::LateOwnerChangesNothing);
            }
            ToLedger::Begin(_) | ToLedger::Fetch(_) => {
                let lives = before.is_some_and(|row| row.lease.is_some() && !row.lease_ended(NOW));
                if lives && state.row.as_ref().and_then(Row::run).map(|run| run.owner) != owner {
                    state.broken.add(Promise::TakenOverOnlyWhenOver);
                }
            }
            ToLedger::Append(delivery) if *reply == Reply::Appended(rules::Appended::Accepted) => {
                let number = (delivery.0 - 1) as u8;
                if state.accepted.is_some_and(|accepted| accepted != number) {
                    state.broken.add(Promise::OnceAtTheLedger);
                }
                state.accepted = Some(number);
            }
            _ => {}
        }
        let done = state.row.as_ref().is_some_and(|row| row.state == RowState::Done);
        if changed && done && *reply == Reply::Settled(Settled::Committed) {
            state.finishes += 1;
            if state.finishes > 1 {
                state.broken.add(Promise::OnceAtTheLedger);
            }
        }
    }

    /// A delivery took what stands there for somebody else's.
    pub(crate) fn rival(state: &mut State, is_itself: bool) {
        if is_itself {
            state.broken.add(Promise::NeverItsOwnRival);
        }
    }

    /// A delivery that knows that its event took effect will answer so.
    pub(crate) fn effect(state: &mut State, how: Handled) {
        if how == Handled::Failed {
            state.broken.add(Promise::NoFalseFailure);
        }
    }

    /// A delivery was answered 200.
    pub(crate) fn promise(state: &mut State) {
        state.promised = true;
        if state.effects == 0 && !state.is_durable() {
            state.broken.add(Promise::NoEmptyPromise);
        }
    }

    /// A delivery will answer that its event failed. If nothing else fails while it closes its claim, and nobody else
    /// has the event, the next one must be able to run at once.
    pub(crate) fn failure(check: &Check, state: &mut State, number: usize) {
        if check.is_aside {
            return;
        }
        let closed = aftermath::closed(check, state, number);
        if !closed.is_at_rest() {
            return;
        }
        let (answered, after) = aftermath::of_delivery(check, &closed);
        if !answered || aftermath::of_workers(check, &after, 0).effects == 0 {
            state.broken.add(Promise::FailedRunsAtOnce);
        }
    }
}

/// The name of the delivery that comes after all others.
pub(crate) fn one_more(state: &State) -> usize {
    let over = |delivery: &Delivery| !delivery.phase.is_live();
    let last = state.deliveries.len() - 1;
    debug_assert!(over(&state.deliveries[last]), "the last place is for questions");
    debug_assert!(delivery_id(last).0 > 0);
    last
}
