//! What is sent to a store or to the target, and what it does there.
//!
//! A message takes effect in one moment. Between that moment and the sender's hearing of it everything may happen,
//! and so may it before; [`Fate`] says what did.

use hookgate_claim::cell::{Held, InFlight, Replaced, Value};
use hookgate_claim::{Ownership, Sight};
use hookgate_ledger::rules::{self, RunId};
use hookgate_ledger::{DeliveryId, Entry, OnFailure, Outcome, Settled};

use crate::bounds::TERMS;
use crate::promises::Watch;
use crate::protocol::{NOW, Protocol};
use crate::state::{EPOCH, Ended, State, in_flight};

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Message {
    /// To Redis.
    Redis(ToRedis),
    /// To the ledger.
    Ledger(ToLedger),
    /// To the target: the event itself.
    Target,
}

/// A command or script on the one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToRedis {
    /// `SET NX GET EX`.
    Set(InFlight),
    /// The takeover.
    Replace {
        /// What is put there.
        claim: InFlight,
        /// What was seen there.
        seen: Value,
        /// Most life that it may have left.
        left_ms_max: i64,
    },
    /// The renewal.
    Renew(InFlight),
    /// The done mark if still ours.
    Finish(InFlight),
    /// The deletion if still ours.
    Release(InFlight),
    /// The done mark whoever owns it.
    MarkDone,
    /// A look.
    Look,
}

/// A statement on the one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToLedger {
    /// Of an inbox.
    Append(DeliveryId),
    /// Of an inbox that met a forward's row.
    Adopt,
    /// Of a forward.
    Begin(DeliveryId),
    /// Of a forward that took effect.
    Finish(RunId),
    /// Of a forward that failed.
    Release(RunId, bool),
    /// Of whoever runs.
    Heartbeat(RunId),
    /// Of a worker that looks.
    Fetch(DeliveryId),
    /// Of a worker that ran.
    Settle(RunId, Ended),
    /// A look.
    Look,
}

/// What a store answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// To a set: what stood there.
    Set(Option<Held>),
    /// To a takeover.
    Replaced(Replaced),
    /// To a step of the owner.
    Owned(Ownership),
    /// To a mark, an adoption, or an event that the target took.
    Done,
    /// To a look at the claim.
    Sight(Sight),
    /// To an append.
    Appended(rules::Appended),
    /// To a begin.
    Begun(rules::Begun),
    /// To the end of a run, and to a heartbeat.
    Settled(Settled),
    /// To a worker's look.
    Fetched(Option<RunId>),
    /// To a look at the row.
    Entry(Option<Entry>),
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It took effect and was answered. No fault.
    Answered,
    /// It was turned away unseen, and the sender knows: refused, or the circuit is open.
    Refused,
    /// It was lost on the way.
    Lost,
    /// It took effect and the answer was lost.
    Unheard,
    /// The sender gives up, and it takes effect at some later moment.
    Late,
    /// It took effect, the connection broke, and the sender asks the same again.
    Again,
}

impl Message {
    /// The claims that it speaks of.
    pub fn claims(&self) -> impl Iterator<Item = InFlight> + use<> {
        let (claim, seen) = match *self {
            Self::Redis(
                ToRedis::Set(claim)
                | ToRedis::Renew(claim)
                | ToRedis::Finish(claim)
                | ToRedis::Release(claim),
            ) => (Some(claim), None),
            Self::Redis(ToRedis::Replace { claim, seen, .. }) => (Some(claim), in_flight(seen)),
            Self::Redis(ToRedis::MarkDone | ToRedis::Look) | Self::Ledger(_) | Self::Target => (None, None),
        };
        [claim, seen].into_iter().flatten()
    }

    /// The run that it speaks of.
    pub fn run(&self) -> Option<RunId> {
        match *self {
            Self::Ledger(
                ToLedger::Finish(run)
                | ToLedger::Release(run, _)
                | ToLedger::Heartbeat(run)
                | ToLedger::Settle(run, _),
            ) => Some(run),
            Self::Ledger(
                ToLedger::Append(_)
                | ToLedger::Adopt
                | ToLedger::Begin(_)
                | ToLedger::Fetch(_)
                | ToLedger::Look,
            )
            | Self::Redis(_)
            | Self::Target => None,
        }
    }

    /// Whether it writes the row under this name.
    pub fn is_by(&self, id: DeliveryId) -> bool {
        match self {
            Self::Ledger(ToLedger::Append(of) | ToLedger::Begin(of)) => *of == id,
            Self::Ledger(_) | Self::Redis(_) | Self::Target => false,
        }
    }

    /// What may happen to it besides being answered, where that makes a difference.
    pub fn fates(&self) -> &'static [Fate] {
        use Fate::{Again, Late, Lost, Refused, Unheard};
        match self {
            // After these the sender need not know whether they took effect, or asks the ledger.
            Self::Redis(ToRedis::Set(_) | ToRedis::Replace { .. }) => &[Refused, Lost, Unheard, Late, Again],
            Self::Redis(ToRedis::Finish(_)) => &[Lost, Unheard, Late],
            Self::Redis(ToRedis::Release(_) | ToRedis::MarkDone) => &[Lost, Late],
            Self::Redis(ToRedis::Renew(_)) => &[Lost, Late],
            Self::Redis(ToRedis::Look) => &[Lost],
            // The circuit is open, or it was lost: only a begin tells the two apart.
            Self::Ledger(ToLedger::Begin(_)) => &[Refused, Lost, Unheard, Late, Again],
            Self::Ledger(ToLedger::Append(_)) => &[Lost, Unheard, Late, Again],
            Self::Ledger(ToLedger::Finish(_) | ToLedger::Settle(..)) => &[Lost, Unheard, Late, Again],
            Self::Ledger(ToLedger::Release(..)) => &[Lost, Unheard, Late, Again],
            Self::Ledger(ToLedger::Adopt) => &[Lost, Unheard, Late],
            Self::Ledger(ToLedger::Heartbeat(_)) => &[Lost, Late],
            Self::Ledger(ToLedger::Fetch(_)) => &[Unheard],
            Self::Ledger(ToLedger::Look) | Self::Target => &[],
        }
    }
}

/// Applies a message, and watches what it does.
pub(crate) fn apply(protocol: &dyn Protocol, state: &mut State, message: Message) -> Reply {
    match message {
        Message::Redis(command) => to_redis(protocol, state, command),
        Message::Ledger(statement) => to_ledger(protocol, state, statement),
        Message::Target => {
            state.effects += 1;
            Watch::target(state);
            Reply::Done
        }
    }
}

fn to_redis(protocol: &dyn Protocol, state: &mut State, command: ToRedis) -> Reply {
    let before = state.cell;
    let cell = &mut state.cell;
    let reply = match command {
        ToRedis::Set(claim) => Reply::Set(protocol.set_if_free(cell, &claim)),
        ToRedis::Replace {
            claim,
            seen,
            left_ms_max,
        } => Reply::Replaced(protocol.replace(cell, &seen, &claim, left_ms_max)),
        ToRedis::Renew(claim) => Reply::Owned(protocol.renew(cell, &claim)),
        ToRedis::Finish(claim) => Reply::Owned(protocol.finish_claim(cell, &claim)),
        ToRedis::Release(claim) => Reply::Owned(protocol.release_claim(cell, &claim)),
        ToRedis::MarkDone => {
            protocol.mark_done(cell, EPOCH, TERMS.ttl.as_millis() as u64);
            Reply::Done
        }
        ToRedis::Look => Reply::Sight(protocol.sight(cell)),
    };
    Watch::claim(state, before, command);
    reply
}

fn to_ledger(protocol: &dyn Protocol, state: &mut State, statement: ToLedger) -> Reply {
    let before = state.row.clone();
    let reply = match (statement, &mut state.row) {
        (ToLedger::Append(delivery), row) => Reply::Appended(protocol.append(row, delivery)),
        (ToLedger::Begin(delivery), row) => Reply::Begun(protocol.begin(row, delivery)),
        (ToLedger::Adopt, row) => {
            if let Some(row) = row {
                protocol.adopt(row);
            }
            Reply::Done
        }
        (ToLedger::Look, row) => Reply::Entry(row.as_ref().map(|row| Entry {
            state: row.state,
            attempts: row.attempts,
            last_error: None,
            lease_ended: row.lease_ended(NOW),
        })),
        (ToLedger::Fetch(owner), row) => {
            Reply::Fetched(row.as_mut().and_then(|row| protocol.fetch(row, owner)))
        }
        (_, None) => Reply::Settled(Settled::Lost),
        (ToLedger::Heartbeat(run), Some(row)) => Reply::Settled(protocol.heartbeat(row, &run)),
        (ToLedger::Finish(run), Some(row)) => Reply::Settled(protocol.settle(row, &run, &Outcome::Done)),
        (ToLedger::Settle(run, ended), Some(row)) => {
            Reply::Settled(protocol.settle(row, &run, &outcome(ended)))
        }
        (ToLedger::Release(run, silent), Some(row)) => {
            let next = match silent {
                true => OnFailure::WorkerRetries(std::time::Duration::ZERO),
                false => OnFailure::ProviderRetries,
            };
            Reply::Settled(protocol.release_row(row, &run, next))
        }
    };
    Watch::row(state, before.as_ref(), statement, &reply);
    reply
}

fn outcome(ended: Ended) -> Outcome {
    match ended {
        Ended::Done => Outcome::Done,
        Ended::Retry => Outcome::Retry {
            after: std::time::Duration::ZERO,
            error: String::new(),
        },
        Ended::Dead => Outcome::Dead { error: String::new() },
    }
}
