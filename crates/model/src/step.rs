//! The steps: of deliveries and workers, of time, and of whatever breaks. Each step that is not answered, and each
//! that breaks something, costs one of the faults.

use crate::bounds::LEASE_MS;
use crate::check::Check;
use crate::message::{Fate, Message, Reply, ToLedger, ToRedis, apply};
use crate::path::{self, CallEnd};
use crate::situations::Situation;
use crate::state::{Delivery, Holding, Phase, State, Task, Worker};
use crate::worker;
use hookgate_claim::Ownership;
use hookgate_claim::cell::Cell;
use hookgate_ledger::Settled;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A delivery comes to a replica.
    Deliver(u8, u8),
    /// A delivery asks a store.
    Ask(u8, Fate),
    /// The target answers a delivery, or does not.
    CallEnds(u8, CallEnd),
    /// A delivery has waited long enough.
    GiveUp(u8),
    /// A worker asks the ledger.
    Work(u8, Fate),
    /// The target answers a worker, or does not.
    WorkEnds(u8, CallEnd),
    /// A worker frees a row whose owner died.
    Rescue,
    /// Something is told again.
    Chore(u8, Fate),
    /// Whoever calls the target renews a lease before the tick, as after a pause.
    Renew(Renewal),
    /// Something arrives that nobody waits for any more.
    Arrive(u8),
    /// Time passes; whoever waits for the target renews what it holds, but perhaps for one renewal.
    Tick(Option<(Renewal, Fate)>),
    /// A replica dies; its last message may still be on its way.
    Crash(u8, Option<Last>),
    /// A replica stands still.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// Redis loses or evicts the key.
    LoseKeys,
    /// A replica of Redis stops following.
    Fork,
    /// It is promoted.
    FailOver,
}

/// Whose last message a crash leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Last {
    /// A delivery's.
    Delivery(u8),
    /// The worker's.
    Worker,
}

/// One renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// Of a delivery's claim.
    Claim(u8),
    /// Of a delivery's row.
    Row(u8),
    /// Of a worker's row.
    Worker(u8),
}

impl Renewal {
    /// Every renewal that a tick would bring.
    pub fn all(check: &Check, state: &State) -> Vec<Self> {
        let mut all = Vec::new();
        if !check.protocol.keeps_alive() {
            return all;
        }
        for (number, delivery) in state.deliveries.iter().enumerate() {
            if let Phase::Calling(run) = delivery.phase
                && !state.is_paused(usize::from(delivery.replica))
            {
                if matches!(delivery.hold, Holding::Ours(_)) {
                    all.push(Self::Claim(number as u8));
                }
                if run.is_some() {
                    all.push(Self::Row(number as u8));
                }
            }
        }
        for (replica, worker) in state.workers.iter().enumerate() {
            if matches!(worker, Worker::Calling(_)) && !state.is_paused(replica) {
                all.push(Self::Worker(replica as u8));
            }
        }
        all
    }

    fn message(self, state: &State) -> Option<Message> {
        match self {
            Self::Claim(number) => match state.deliveries[usize::from(number)].hold {
                Holding::Ours(claim) => Some(Message::Redis(ToRedis::Renew(claim))),
                Holding::Others | Holding::Unknown(_) | Holding::Unclaimed => None,
            },
            Self::Row(number) => match state.deliveries[usize::from(number)].phase {
                Phase::Calling(run) => run.map(|run| Message::Ledger(ToLedger::Heartbeat(run))),
                _ => None,
            },
            Self::Worker(replica) => {
                let run = state.workers[usize::from(replica)].run();
                run.map(|run| Message::Ledger(ToLedger::Heartbeat(run)))
            }
        }
    }

    fn hear(self, check: &Check, state: &mut State, reply: &Reply) {
        match (self, reply) {
            (Self::Claim(number), Reply::Owned(Ownership::Lost)) => {
                check.met(Situation::LateOwnerOfClaim);
                state.deliveries[usize::from(number)].hold = Holding::Others;
            }
            (Self::Worker(replica), Reply::Settled(Settled::Lost)) => {
                state.workers[usize::from(replica)] = Worker::Idle;
            }
            // A forward finds out when it settles.
            _ => {}
        }
    }
}

impl Action {
    /// Whether it is a fault, or comes of one.
    pub fn is_fault(self) -> bool {
        match self {
            Self::Ask(_, fate) | Self::Work(_, fate) | Self::Chore(_, fate) => fate != Fate::Answered,
            Self::CallEnds(_, end) | Self::WorkEnds(_, end) => end != CallEnd::Took,
            Self::Tick(spoiled) => spoiled.is_some(),
            Self::Crash(..) | Self::Pause(_) | Self::LoseKeys | Self::Fork => true,
            // What was on its way, stood still or stopped following was paid for then.
            Self::Deliver(..)
            | Self::GiveUp(_)
            | Self::Rescue
            | Self::Renew(_)
            | Self::Arrive(_)
            | Self::Resume(_)
            | Self::FailOver => false,
        }
    }

    /// Takes the step.
    pub fn take(self, check: &Check, state: &mut State) {
        if self.is_fault() {
            state.faults_left -= 1;
        }
        match self {
            Self::Deliver(number, replica) => path::arrive(check, state, number.into(), replica.into()),
            Self::Ask(number, fate) => path::ask(check, state, number.into(), fate),
            Self::CallEnds(number, end) => path::call_ends(check, state, number.into(), end),
            Self::GiveUp(number) => path::give_up_waiting(check, state, number.into()),
            Self::Work(replica, fate) => worker::ask(check, state, replica.into(), fate),
            Self::WorkEnds(replica, end) => worker::call_ends(check, state, replica.into(), end),
            Self::Rescue => worker::rescue(check, state),
            Self::Chore(number, fate) => chore(check, state, number.into(), fate),
            Self::Arrive(number) => {
                check.met(Situation::LateArrival);
                let message = state.late.remove(number.into());
                let _ = apply(&*check.protocol, state, message);
            }
            Self::Renew(renewal) => {
                if let Some(message) = renewal.message(state) {
                    let reply = apply(&*check.protocol, state, message);
                    renewal.hear(check, state, &reply);
                }
            }
            Self::Tick(spoiled) => tick(check, state, spoiled),
            Self::Crash(replica, last) => crash(check, state, replica.into(), last),
            Self::Pause(replica) => {
                check.met(Situation::Pause);
                state.paused |= 1 << replica;
                state.excuses += 1;
            }
            Self::Resume(replica) => state.paused &= !(1 << replica),
            Self::LoseKeys => state.cell = Cell(None),
            Self::Fork => state.fork = Some(state.cell),
            Self::FailOver => {
                check.met(Situation::FailOver);
                state.cell = state.fork.take().unwrap_or_default();
            }
        }
    }
}

fn chore(check: &Check, state: &mut State, number: usize, fate: Fate) {
    let message = match state.chores[number].task {
        Task::FinishClaim(claim) => Message::Redis(ToRedis::Finish(claim)),
        Task::FinishRow(run) => Message::Ledger(ToLedger::Finish(run)),
    };
    match fate {
        Fate::Answered => {
            let _ = apply(&*check.protocol, state, message);
            state.chores.remove(number);
        }
        Fate::Unheard | Fate::Again => {
            let _ = apply(&*check.protocol, state, message);
        }
        Fate::Late => state.late.push(message),
        Fate::Lost | Fate::Refused => {}
    }
}

fn tick(check: &Check, state: &mut State, spoiled: Option<(Renewal, Fate)>) {
    let renewals = Renewal::all(check, state);
    state.pass(check.bounds.mode.has_ledger());
    // The claim of a call first, then its row, as the path does.
    for renewal in renewals {
        let Some(message) = renewal.message(state) else {
            continue;
        };
        match spoiled {
            Some((lost, fate)) if lost == renewal => {
                if fate == Fate::Late {
                    state.late.push(message);
                }
                excuse(state, renewal);
            }
            _ => {
                let reply = apply(&*check.protocol, state, message);
                renewal.hear(check, state, &reply);
            }
        }
    }
}

/// A renewal that is missed often enough is like a pause.
fn excuse(state: &mut State, renewal: Renewal) {
    let over = match renewal {
        Renewal::Claim(_) => state
            .cell
            .0
            .is_some_and(|held| held.left_ms <= crate::bounds::TERMS.ttl.as_millis() as i64 - LEASE_MS),
        Renewal::Row(_) | Renewal::Worker(_) => state
            .row
            .as_ref()
            .is_some_and(|row| row.lease_ended(crate::protocol::NOW)),
    };
    state.excuses += u8::from(over);
}

fn crash(check: &Check, state: &mut State, replica: usize, last: Option<Last>) {
    check.met(Situation::Crash);
    let message = match last {
        None => None,
        Some(Last::Delivery(number)) => match state.deliveries[usize::from(number)].phase {
            Phase::Calling(_) => Some(Message::Target),
            _ => path::message(check, state, number.into()),
        },
        Some(Last::Worker) => match state.workers[replica] {
            Worker::Calling(_) => Some(Message::Target),
            _ => worker::message(check, state, replica),
        },
    };
    state.late.extend(message);
    for delivery in &mut state.deliveries {
        if delivery.phase.is_live() && usize::from(delivery.replica) == replica {
            *delivery = Delivery::OVER;
        }
    }
    state.workers[replica] = Worker::Idle;
    state.chores.retain(|chore| usize::from(chore.replica) != replica);
    state.paused &= !(1 << replica);
    state.excuses += 1;
}
