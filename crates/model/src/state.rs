//! One situation: what stands in both stores, where every delivery and worker is, what is still on its way.
//!
//! A situation knows only what can still matter. Times are counted from now, names of claims and runs are small
//! numbers that are used again, and what a delivery was that is over is forgotten. So equal situations are equal
//! values, however they came about, and the checker meets each of them once.

use hookgate_claim::cell::{Cell, InFlight, Value};
use hookgate_claim::{Epoch, Lease};
use hookgate_gateway::handler::{Handled, Hold};
use hookgate_ledger::rules::{Row, RunId};
use hookgate_ledger::{DeliveryId, State as RowState};
use hookgate_webhook::{EventId, EventKey, SourceName};

use crate::bounds::{Bounds, DELIVERIES_MAX, TERMS};
use crate::message::Message;
use crate::promises::Broken;

/// The epoch of every claim; no ledger is restored here.
pub(crate) const EPOCH: Epoch = Epoch {
    configured: 0,
    timeline: 1,
};

/// One situation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The claim as Redis has it.
    pub cell: Cell,
    /// The claim as a replica of Redis has it that has stopped following and may be promoted.
    pub fork: Option<Cell>,
    /// The ledger's row.
    pub row: Option<Row>,
    /// Every delivery, in the order of their arrival.
    pub deliveries: [Delivery; DELIVERIES_MAX],
    /// The worker of each replica.
    pub workers: Vec<Worker>,
    /// What was told to be told again, until it is heard.
    pub chores: Vec<Chore>,
    /// What nobody waits for any more, and may still arrive.
    pub late: Vec<Message>,
    /// Replicas that stand still, as bits.
    pub paused: u8,
    /// Faults that may still happen.
    pub faults_left: u8,
    /// How often the target took the event.
    pub effects: u8,
    /// How often something happened after which the target may have to be called again: a crash, a pause, a call
    /// that ended without an answer.
    pub excuses: u8,
    /// How often the ledger wrote down that the event is done.
    pub finishes: u8,
    /// Which delivery was told that it is the first.
    pub accepted: Option<u8>,
    /// Whether any delivery was answered 200.
    pub promised: bool,
    /// Promises that the last step broke.
    pub broken: Broken,
}

/// One delivery of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The replica that it came to.
    pub replica: u8,
    /// What it holds of the claim.
    pub hold: Holding,
    /// What it does now.
    pub phase: Phase,
}

/// What is held of the claim; the gateway's own [`Hold`] without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holding {
    /// Our claim.
    Ours(InFlight),
    /// Somebody else's.
    Others,
    /// Nobody knows; this one may stand.
    Unknown(Option<InFlight>),
    /// Nothing yet.
    Unclaimed,
}

/// What a delivery does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not sent yet.
    Unsent,
    /// Sets its claim.
    Claiming(InFlight),
    /// Takes the place of what it saw.
    Replacing {
        /// Its claim.
        claim: InFlight,
        /// What it saw.
        seen: Value,
        /// Most life that it may have left.
        left_ms_max: i64,
    },
    /// Appends to the ledger.
    Appending,
    /// Makes a forward's row the workers'.
    Adopting,
    /// Begins a forward.
    Beginning {
        /// For the last time.
        last: bool,
    },
    /// The target has the event; the answer is awaited.
    Calling(Option<RunId>),
    /// Tells the ledger that the target took it.
    Finishing(RunId),
    /// Tells the ledger that the target did not take it.
    Releasing(RunId),
    /// Asks the ledger before it waits.
    AskingFirst,
    /// Looks from time to time.
    Waiting {
        /// For most of a lease by now: it gives up before more time passes.
        long: bool,
    },
    /// Closes its claim, and will answer so.
    Closing(Handled, Close),
    /// Answered, or dead.
    Over,
}

/// How a claim is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Close {
    /// Marked, whoever owns it.
    MarkDone,
    /// Marked if ours, again and again until it is heard.
    Finish(InFlight),
    /// Marked if it was ever set.
    FinishPossible(InFlight),
    /// Deleted if ours.
    Release(InFlight),
}

/// A worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worker {
    /// Looks for events from time to time.
    Idle,
    /// The target has the event.
    Calling(RunId),
    /// Tells the ledger how it ended.
    Settling(RunId, Ended),
}

/// How a worker's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Took effect.
    Done,
    /// To be tried again.
    Retry,
    /// Given up.
    Dead,
}

/// Something that a replica goes on telling a store: of a claim while the lease lasts, of a row for longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chore {
    /// Whose.
    pub replica: u8,
    /// What.
    pub task: Task,
    /// For how long still.
    pub left_ms: i64,
}

/// What is told again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// That the claim's event is done.
    FinishClaim(InFlight),
    /// That the run's event is done.
    FinishRow(RunId),
}

/// The one event.
pub(crate) fn key() -> EventKey {
    EventKey {
        source: SourceName::parse("stripe").expect("a valid name"),
        id: EventId::parse("evt_1").expect("a valid id"),
    }
}

impl Holding {
    /// As the gateway has it.
    pub fn to_hold(self) -> Hold {
        let lease = |claim| Lease::of(key(), TERMS, claim);
        match self {
            Self::Ours(claim) => Hold::Ours(lease(claim)),
            Self::Others => Hold::Others,
            Self::Unknown(possible) => Hold::Unknown(possible.map(|claim| Box::new(lease(claim)))),
            Self::Unclaimed => Hold::Unclaimed,
        }
    }

    /// From the gateway's.
    pub fn of(hold: &Hold) -> Self {
        match hold {
            Hold::Ours(lease) => Self::Ours(*lease.claim()),
            Hold::Others => Self::Others,
            Hold::Unknown(possible) => Self::Unknown(possible.as_ref().map(|lease| *lease.claim())),
            Hold::Unclaimed => Self::Unclaimed,
        }
    }

    fn claim(self) -> Option<InFlight> {
        match self {
            Self::Ours(claim) | Self::Unknown(Some(claim)) => Some(claim),
            Self::Others | Self::Unknown(None) | Self::Unclaimed => None,
        }
    }
}

impl Phase {
    /// Whether the delivery is between its arrival and its end.
    pub fn is_live(self) -> bool {
        !matches!(self, Self::Unsent | Self::Over)
    }

    /// Whether time may pass: the step waits for somebody else and not for a store.
    pub fn may_take_long(self) -> bool {
        matches!(
            self,
            Self::Unsent | Self::Over | Self::Calling(_) | Self::Waiting { long: false }
        )
    }

    fn run(self) -> Option<RunId> {
        match self {
            Self::Calling(run) => run,
            Self::Finishing(run) | Self::Releasing(run) => Some(run),
            _ => None,
        }
    }
}

impl Worker {
    /// The run that it holds.
    pub fn run(self) -> Option<RunId> {
        match self {
            Self::Idle => None,
            Self::Calling(run) | Self::Settling(run, _) => Some(run),
        }
    }
}

impl Delivery {
    const UNSENT: Self = Self {
        replica: 0,
        hold: Holding::Unclaimed,
        phase: Phase::Unsent,
    };

    /// Answered, or dead: nothing of it matters any more.
    pub const OVER: Self = Self {
        phase: Phase::Over,
        ..Self::UNSENT
    };

    pub(crate) fn claims(&self) -> impl Iterator<Item = InFlight> {
        let (own, seen) = match self.phase {
            Phase::Claiming(claim) => (Some(claim), None),
            Phase::Replacing { claim, seen, .. } => (Some(claim), in_flight(seen)),
            Phase::Closing(
                _,
                Close::Finish(claim) | Close::FinishPossible(claim) | Close::Release(claim),
            ) => (Some(claim), None),
            _ => (None, None),
        };
        [own, seen, self.hold.claim()].into_iter().flatten()
    }
}

/// The claim, if it is one.
pub(crate) fn in_flight(value: Value) -> Option<InFlight> {
    match value {
        Value::InFlight(claim) => Some(claim),
        Value::Done(_) => None,
    }
}

/// The name of a delivery, by which the ledger knows it.
pub(crate) fn delivery_id(delivery: usize) -> DeliveryId {
    DeliveryId(delivery as u128 + 1)
}

pub(crate) fn named(token: u128) -> InFlight {
    InFlight::with_token(&EPOCH, TERMS, token)
}

impl State {
    /// Before anything has happened.
    pub fn new(bounds: &Bounds) -> Self {
        Self {
            cell: Cell(None),
            fork: None,
            row: None,
            deliveries: [Delivery::UNSENT; DELIVERIES_MAX],
            workers: vec![Worker::Idle; bounds.replicas],
            chores: Vec::new(),
            late: Vec::new(),
            paused: 0,
            faults_left: bounds.faults,
            effects: 0,
            excuses: 0,
            finishes: 0,
            accepted: None,
            promised: false,
            broken: Broken::default(),
        }
    }

    /// Whether this replica stands still.
    pub fn is_paused(&self, replica: usize) -> bool {
        self.paused & (1 << replica) != 0
    }

    /// Whether anything of this replica is under way.
    pub fn is_busy(&self, replica: usize) -> bool {
        let here = |delivery: &Delivery| delivery.phase.is_live() && usize::from(delivery.replica) == replica;
        self.deliveries.iter().any(here)
            || self.workers[replica] != Worker::Idle
            || self
                .chores
                .iter()
                .any(|chore| usize::from(chore.replica) == replica)
    }

    /// Whether nobody does anything and nothing is on its way. What stands in the stores is all there is.
    pub fn is_at_rest(&self) -> bool {
        !self.deliveries.iter().any(|delivery| delivery.phase.is_live())
            && self.workers.iter().all(|worker| *worker == Worker::Idle)
            && self.chores.is_empty()
            && self.late.is_empty()
            && self.paused == 0
    }

    /// Whether the row will be seen through whatever the provider does.
    pub fn is_durable(&self) -> bool {
        self.row.as_ref().is_some_and(|row| match row.state {
            RowState::Running => row.path == hookgate_ledger::Path::Inbox,
            RowState::Failed => false,
            RowState::Queued
            | RowState::Done
            | RowState::Dead
            | RowState::Discarded
            | RowState::Parked
            | RowState::Twin => true,
        })
    }

    /// Every claim that somebody may still speak of.
    pub(crate) fn claims(&self) -> impl Iterator<Item = InFlight> {
        let deliveries = self.deliveries.iter().flat_map(Delivery::claims);
        let late = self.late.iter().flat_map(Message::claims);
        let chores = self.chores.iter().filter_map(|chore| match chore.task {
            Task::FinishClaim(claim) => Some(claim),
            Task::FinishRow(_) => None,
        });
        deliveries.chain(late).chain(chores)
    }

    pub(crate) fn standing(&self) -> impl Iterator<Item = InFlight> {
        let cells = [Some(self.cell), self.fork].into_iter().flatten();
        cells.filter_map(|cell| in_flight(cell.0?.value))
    }

    /// Every run that somebody may still speak of.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunId> {
        let deliveries = self.deliveries.iter().filter_map(|delivery| delivery.phase.run());
        let workers = self.workers.iter().filter_map(|worker| worker.run());
        let late = self.late.iter().filter_map(Message::run);
        let chores = self.chores.iter().filter_map(|chore| match chore.task {
            Task::FinishRow(run) => Some(run),
            Task::FinishClaim(_) => None,
        });
        deliveries.chain(workers).chain(late).chain(chores)
    }

    /// Whether this delivery may still append or begin under its name.
    pub(crate) fn may_return(&self, id: DeliveryId) -> bool {
        let live = |(n, delivery): (usize, &Delivery)| delivery.phase.is_live() && delivery_id(n) == id;
        self.deliveries.iter().enumerate().any(live) || self.late.iter().any(|message| message.is_by(id))
    }
}
