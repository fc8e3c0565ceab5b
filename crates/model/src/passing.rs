//! What time and forgetting do to a situation: leases run down, and names that nobody will use again are given up.

use hookgate_claim::cell::{Cell, Held, InFlight, Value};
use hookgate_ledger::DeliveryId;
use hookgate_ledger::rules::{Row, RunId};

use crate::bounds::{TICK_MS, TRIES_MAX};
use crate::state::{Phase, State, Task, delivery_id, in_flight, named};

/// The name of whoever is gone for good.
const GONE: u128 = 99;

/// First name of a worker's run; below are deliveries.
const WORKER_RUNS: u128 = 20;

/// The number of a delivery that is gone for good.
const GONE_DELIVERY: u8 = u8::MAX - 1;

impl State {
    /// A claim that nobody has in hand.
    pub fn fresh_claim(&self) -> InFlight {
        let used: Vec<InFlight> = self.claims().chain(self.standing()).collect();
        let free = (1..GONE).map(named).find(|claim| !used.contains(claim));
        free.expect("there are more names than holders")
    }

    /// A run of a worker that nobody has in hand.
    pub fn fresh_owner(&self) -> DeliveryId {
        let standing = self.row.iter().filter_map(Row::run);
        let used: Vec<DeliveryId> = self.runs().chain(standing).map(|run| run.owner).collect();
        let free = (WORKER_RUNS..GONE)
            .map(DeliveryId)
            .find(|owner| !used.contains(owner));
        free.expect("there are more names than holders")
    }

    /// Lets a tick pass in both stores. Without a ledger a done mark is the only record; that it ends after days, and
    /// not before, is part of what is promised there, so it does not age.
    pub fn pass(&mut self, marks_age: bool) {
        for cell in [Some(&mut self.cell), self.fork.as_mut()].into_iter().flatten() {
            if let Some(held) = &mut cell.0 {
                let ages = marks_age || in_flight(held.value).is_some();
                held.left_ms -= if ages { TICK_MS } else { 0 };
            }
            cell.0 = cell.0.filter(|held| held.left_ms > 0);
        }
        if let Some(row) = &mut self.row {
            if let Some(lease) = &mut row.lease {
                lease.until = (lease.until - TICK_MS).max(-1);
            }
            row.due = row.due.map(|due| (due - TICK_MS).max(0));
        }
        for chore in &mut self.chores {
            // A row is told for far longer than a lease.
            let ends = matches!(chore.task, Task::FinishClaim(_));
            chore.left_ms -= if ends { TICK_MS } else { 0 };
        }
        self.chores.retain(|chore| chore.left_ms > 0);
        for delivery in &mut self.deliveries {
            if let Phase::Waiting { long } = &mut delivery.phase {
                *long = true;
            }
        }
    }

    /// Forgets what cannot matter any more.
    pub fn forget(&mut self) {
        self.forget_claims();
        // Whether it was one that may still ask again is all that matters of it.
        self.accepted = self
            .accepted
            .map(|number| match self.may_return(delivery_id(number.into())) {
                true => number,
                false => GONE_DELIVERY,
            });
        let runs: Vec<RunId> = self.runs().collect();
        let Some(mut row) = self.row.take() else { return };
        row.tries = row.tries.min(TRIES_MAX);
        row.ended.retain(|ended| runs.contains(&ended.run));
        if let Some(lease) = &mut row.lease
            && !runs.iter().any(|run| run.owner == lease.owner)
            && !self.may_return(lease.owner)
        {
            lease.owner = DeliveryId(GONE);
        }
        if runs.is_empty() {
            row.attempts = row.attempts.min(1);
        }
        if !self.may_return(row.delivery) {
            row.delivery = DeliveryId(GONE);
        }
        self.row = Some(row);
    }

    /// Claims that nobody will speak of again need no names of their own.
    fn forget_claims(&mut self) {
        let known: Vec<InFlight> = self.claims().collect();
        let name = |held: Option<Held>, gone: u128| {
            held.map(|held| match held.value {
                Value::InFlight(claim) if !known.contains(&claim) => Held {
                    value: Value::InFlight(named(gone)),
                    ..held
                },
                Value::InFlight(_) | Value::Done(_) => held,
            })
        };
        let same = self.fork.is_some_and(|fork| {
            fork.0.and_then(|held| in_flight(held.value))
                == self.cell.0.and_then(|held| in_flight(held.value))
        });
        self.cell = Cell(name(self.cell.0, GONE));
        self.fork = self
            .fork
            .map(|fork| Cell(name(fork.0, if same { GONE } else { GONE + 1 })));
    }
}
