//! Situations that differ only in names are one. Which delivery came first, on which of two equal replicas, and what
//! a claim is called changes nothing of what can happen; so of all such situations one stands for the others.
//!
//! The names are given anew in an order that the situation itself gives. Where that order does not decide, two
//! situations that are the same are met twice; that costs time and hides nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

use hookgate_claim::cell::{Cell, Held, InFlight, Value};
use hookgate_ledger::DeliveryId;
use hookgate_ledger::rules::{Row, RunId};

use crate::bounds::DELIVERIES_MAX;
use crate::message::{Message, ToLedger, ToRedis};
use crate::state::{Close, Delivery, Holding, Phase, State, Task, Worker, delivery_id, in_flight, named};

/// Names of workers' runs after they were given anew.
const RUNS: u128 = 40;

/// The one situation that stands for all that are like this one.
pub(crate) fn representative(state: &State) -> State {
    let mut after = state.clone();
    sort_replicas(&mut after);
    sort_deliveries(&mut after);
    rename_claims(&mut after);
    rename_runs(&mut after);
    after.late.sort_by_key(hashed);
    after
}

/// The same for replicas that are alike.
pub(crate) fn of_unlike_replicas(state: &State) -> State {
    let mut after = state.clone();
    sort_deliveries(&mut after);
    rename_claims(&mut after);
    rename_runs(&mut after);
    after.late.sort_by_key(hashed);
    after
}

fn hashed<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn sort_replicas(state: &mut State) {
    let looks = |replica: usize| {
        let here = state.deliveries.iter().enumerate();
        let mut here: Vec<u64> = here
            .filter(|(_, delivery)| delivery.phase.is_live() && usize::from(delivery.replica) == replica)
            .map(|(number, _)| look(state, number))
            .collect();
        here.sort_unstable();
        let worker = state.workers[replica];
        (state.is_paused(replica), discriminant_of(&worker), here)
    };
    let mut order: Vec<usize> = (0..state.workers.len()).collect();
    order.sort_by_key(|replica| looks(*replica));
    let place = |replica: u8| {
        order
            .iter()
            .position(|old| *old == usize::from(replica))
            .unwrap_or(0) as u8
    };
    let paused = (0..state.workers.len() as u8).filter(|replica| state.is_paused(usize::from(*replica)));
    let paused = paused.fold(0, |bits, replica| bits | (1 << place(replica)));
    let workers = order.iter().map(|old| state.workers[*old]).collect();
    for delivery in state
        .deliveries
        .iter_mut()
        .filter(|delivery| delivery.phase.is_live())
    {
        delivery.replica = place(delivery.replica);
    }
    for chore in &mut state.chores {
        chore.replica = place(chore.replica);
    }
    (state.workers, state.paused) = (workers, paused);
}

fn discriminant_of(worker: &Worker) -> u8 {
    match worker {
        Worker::Idle => 0,
        Worker::Calling(_) => 1,
        Worker::Settling(..) => 2,
    }
}

/// What a delivery is, without names.
fn look(state: &State, number: usize) -> u64 {
    let delivery = &state.deliveries[number];
    let id = delivery_id(number);
    let detail = match delivery.phase {
        Phase::Beginning { last } => u64::from(last),
        Phase::Waiting { long } => u64::from(long),
        Phase::Closing(how, close) => hashed(&(how, discriminant(&close))),
        Phase::Calling(run) => run.map_or(0, |run| u64::from(run.attempt)),
        Phase::Finishing(run) | Phase::Releasing(run) => run.attempt.into(),
        _ => 0,
    };
    let standing = |cell: Cell| cell.0.and_then(|held| in_flight(held.value));
    let claim = delivery.claims().next();
    let claims = claim.map(|claim| {
        let forked = state.fork.is_some_and(|fork| standing(fork) == Some(claim));
        (standing(state.cell) == Some(claim), forked)
    });
    let row = state
        .row
        .as_ref()
        .map(|row| (row.run().is_some_and(|run| run.owner == id), row.delivery == id));
    let late = state
        .late
        .iter()
        .filter(|message| message.is_by(id) || message.run().is_some_and(|run| run.owner == id));
    let accepted = state.accepted == Some(number as u8);
    let hold = discriminant(&delivery.hold);
    hashed(&(
        discriminant(&delivery.phase),
        detail,
        hold,
        claims,
        row,
        late.count(),
        accepted,
    ))
}

fn sort_deliveries(state: &mut State) {
    let unsent = |number: &usize| state.deliveries[*number].phase == Phase::Unsent;
    let key = |number: &usize| match unsent(number) {
        // They come last and stay in their order.
        true => (1, 0, 0),
        false => (0, look(state, *number), state.deliveries[*number].replica),
    };
    let mut order: Vec<usize> = (0..DELIVERIES_MAX).collect();
    order.sort_by_key(key);
    let place = |number: usize| order.iter().position(|old| *old == number).unwrap_or(number);
    let mut sorted = state.deliveries;
    for (new, old) in order.iter().enumerate() {
        sorted[new] = state.deliveries[*old];
    }
    let ids = |id: DeliveryId| match (1..=DELIVERIES_MAX as u128).contains(&id.0) {
        true => delivery_id(place(id.0 as usize - 1)),
        false => id,
    };
    let accepted = state
        .accepted
        .map(|number| match usize::from(number) < DELIVERIES_MAX {
            true => place(number.into()) as u8,
            false => number,
        });
    state.deliveries = sorted;
    state.accepted = accepted;
    name_ids(state, ids);
}

fn rename_runs(state: &mut State) {
    let standing = state.row.iter().filter_map(Row::run).map(|run| run.owner);
    let ids: Vec<DeliveryId> = standing.chain(state.runs().map(|run| run.owner)).collect();
    let mut known: Vec<DeliveryId> = Vec::new();
    for id in ids.into_iter().filter(|id| id.0 > DELIVERIES_MAX as u128) {
        if !known.contains(&id) {
            known.push(id);
        }
    }
    name_ids(state, |id| match known.iter().position(|known| *known == id) {
        Some(place) => DeliveryId(RUNS + place as u128),
        None => id,
    });
}

fn name_ids(state: &mut State, name: impl Fn(DeliveryId) -> DeliveryId) {
    let run = |run: RunId| RunId {
        owner: name(run.owner),
        ..run
    };
    if let Some(row) = &mut state.row {
        row.delivery = name(row.delivery);
        if let Some(lease) = &mut row.lease {
            lease.owner = name(lease.owner);
        }
        for ended in &mut row.ended {
            ended.run = run(ended.run);
        }
    }
    for delivery in &mut state.deliveries {
        delivery.phase = match delivery.phase {
            Phase::Calling(held) => Phase::Calling(held.map(run)),
            Phase::Finishing(held) => Phase::Finishing(run(held)),
            Phase::Releasing(held) => Phase::Releasing(run(held)),
            other => other,
        };
    }
    for worker in &mut state.workers {
        *worker = match *worker {
            Worker::Idle => Worker::Idle,
            Worker::Calling(held) => Worker::Calling(run(held)),
            Worker::Settling(held, ended) => Worker::Settling(run(held), ended),
        };
    }
    for chore in &mut state.chores {
        if let Task::FinishRow(held) = &mut chore.task {
            *held = run(*held);
        }
    }
    for message in &mut state.late {
        if let Message::Ledger(statement) = message {
            *statement = match *statement {
                ToLedger::Append(id) => ToLedger::Append(name(id)),
                ToLedger::Begin(id) => ToLedger::Begin(name(id)),
                ToLedger::Fetch(id) => ToLedger::Fetch(name(id)),
                ToLedger::Finish(held) => ToLedger::Finish(run(held)),
                ToLedger::Release(held, silent) => ToLedger::Release(run(held), silent),
                ToLedger::Heartbeat(held) => ToLedger::Heartbeat(run(held)),
                ToLedger::Settle(held, ended) => ToLedger::Settle(run(held), ended),
                other @ (ToLedger::Adopt | ToLedger::Look) => other,
            };
        }
    }
}

fn rename_claims(state: &mut State) {
    let mut known: Vec<InFlight> = Vec::new();
    for claim in state.standing().chain(state.claims()) {
        if !known.contains(&claim) {
            known.push(claim);
        }
    }
    let name = |claim: InFlight| match known.iter().position(|known| *known == claim) {
        Some(place) => named(place as u128 + 1),
        None => claim,
    };
    let value = |value: Value| match value {
        Value::InFlight(claim) => Value::InFlight(name(claim)),
        Value::Done(epoch) => Value::Done(epoch),
    };
    let cell = |cell: Cell| {
        Cell(cell.0.map(|held| Held {
            value: value(held.value),
            ..held
        }))
    };
    let (new, fork) = (cell(state.cell), state.fork.map(cell));
    for delivery in &mut state.deliveries {
        *delivery = Delivery {
            hold: match delivery.hold {
                Holding::Ours(claim) => Holding::Ours(name(claim)),
                Holding::Unknown(possible) => Holding::Unknown(possible.map(name)),
                other @ (Holding::Others | Holding::Unclaimed) => other,
            },
            phase: in_phase(delivery.phase, &name, &value),
            ..*delivery
        };
    }
    for chore in &mut state.chores {
        if let Task::FinishClaim(claim) = &mut chore.task {
            *claim = name(*claim);
        }
    }
    for message in &mut state.late {
        if let Message::Redis(command) = message {
            *command = match *command {
                ToRedis::Set(claim) => ToRedis::Set(name(claim)),
                ToRedis::Renew(claim) => ToRedis::Renew(name(claim)),
                ToRedis::Finish(claim) => ToRedis::Finish(name(claim)),
                ToRedis::Release(claim) => ToRedis::Release(name(claim)),
                ToRedis::Replace {
                    claim,
                    seen,
                    left_ms_max,
                } => ToRedis::Replace {
                    claim: name(claim),
                    seen: value(seen),
                    left_ms_max,
                },
                other @ (ToRedis::MarkDone | ToRedis::Look) => other,
            };
        }
    }
    (state.cell, state.fork) = (new, fork);
}

fn in_phase(phase: Phase, name: &impl Fn(InFlight) -> InFlight, value: &impl Fn(Value) -> Value) -> Phase {
    match phase {
        Phase::Claiming(claim) => Phase::Claiming(name(claim)),
        Phase::Replacing {
            claim,
            seen,
            left_ms_max,
        } => Phase::Replacing {
            claim: name(claim),
            seen: value(seen),
            left_ms_max,
        },
        Phase::Closing(how, close) => Phase::Closing(
            how,
            match close {
                Close::MarkDone => Close::MarkDone,
                Close::Finish(claim) => Close::Finish(name(claim)),
                Close::FinishPossible(claim) => Close::FinishPossible(name(claim)),
                Close::Release(claim) => Close::Release(name(claim)),
            },
        ),
        other => other,
    }
}
