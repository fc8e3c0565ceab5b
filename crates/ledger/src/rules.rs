//! The life of one row, as pure functions: what a call to any ledger does to the row of its event, and what it
//! answers.
//!
//! No ledger runs these: databases are told the same in their own words, in statements that lock the row. They are
//! the measure of those statements. A test plays random histories to both dialects and to these rules, and compares
//! row and answer after every step; a model of the whole protocol takes its ledger from here.
//!
//! Moments and durations are milliseconds of the database's clock, which alone judges a lease.

use crate::columns::milliseconds;
use crate::run::{Cost, Ending, HELD_MAX};
use crate::{Change, DeliveryId, OnFailure, Outcome, Path, Queue, Settled, State};

/// What the rules need to know of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// Whose it is to run.
    pub path: Path,
    /// State.
    pub state: State,
    /// Runs of this generation; only rises.
    pub attempts: u32,
    /// Runs that cost something.
    pub tries: u32,
    /// How often it was replayed.
    pub generation: u32,
    /// Who runs it, and until when unless renewed. Stands exactly while it runs.
    pub lease: Option<Hold>,
    /// When it is due, if it waits; when it was, if it is run by a worker.
    pub due: Option<i64>,
    /// Until when it may be held.
    pub deadline: Option<i64>,
    /// The delivery that wrote it.
    pub delivery: DeliveryId,
    /// Runs that ended.
    pub ended: Vec<EndedRun>,
}

/// A lease as it stands in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Unique per run.
    pub owner: DeliveryId,
    /// When it ends.
    pub until: i64,
}

/// A run that came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndedRun {
    /// Which run.
    pub run: RunId,
    /// In the words of `webhook_attempts`.
    pub outcome: &'static str,
}

/// Names one run of an event, as a lease does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId {
    /// Who ran it.
    pub owner: DeliveryId,
    /// Its number within the generation.
    pub attempt: u32,
    /// The generation.
    pub generation: u32,
}

/// What an append found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Appended {
    /// The row is of this delivery.
    Accepted,
    /// It was there before, in this state.
    Duplicate(State),
}

/// What a begin found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Begun {
    /// Ours to run.
    Run(RunId),
    /// Another copy runs, or a worker.
    Running,
    /// Finished, or durably somebody's.
    Settled(State),
}

impl Row {
    /// Whether somebody runs it under a lease that has ended.
    pub fn lease_ended(&self, now: i64) -> bool {
        self.lease.is_some_and(|lease| lease.until < now)
    }

    /// The run that is under way.
    pub fn run(&self) -> Option<RunId> {
        self.lease.map(|lease| RunId {
            owner: lease.owner,
            attempt: self.attempts,
            generation: self.generation,
        })
    }

    fn is_run_by(&self, run: &RunId) -> bool {
        self.state == State::Running && self.lease.is_some_and(|lease| lease.owner == run.owner)
    }

    fn start(&mut self, owner: DeliveryId, until: i64) -> RunId {
        self.state = State::Running;
        self.attempts += 1;
        self.tries += 1;
        self.lease = Some(Hold { owner, until });
        RunId {
            owner,
            attempt: self.attempts,
            generation: self.generation,
        }
    }

    fn write_down(&mut self, owner: DeliveryId, outcome: &'static str) {
        let run = RunId {
            owner,
            attempt: self.attempts,
            generation: self.generation,
        };
        self.ended.push(EndedRun { run, outcome });
    }
}

fn new(path: Path, delivery: DeliveryId) -> Row {
    Row {
        path,
        state: State::Queued,
        attempts: 0,
        tries: 0,
        generation: 0,
        lease: None,
        due: None,
        deadline: None,
        delivery,
        ended: Vec::new(),
    }
}

/// Appends a delivery: the first one writes the row, and every other finds it. A repetition knows its own.
pub fn append(row: &mut Option<Row>, delivery: DeliveryId, queue: Queue, now: i64) -> Appended {
    match row {
        Some(row) if row.delivery == delivery => Appended::Accepted,
        Some(row) => Appended::Duplicate(row.state),
        None => {
            let (state, due) = match queue {
                Queue::ForWorker => (State::Queued, Some(now)),
                Queue::Finished(_) => (State::Done, None),
            };
            *row = Some(Row {
                state,
                due,
                ..new(Path::Inbox, delivery)
            });
            Appended::Accepted
        }
    }
}

/// Begins a forward: writes the row as running, or takes over one that failed or whose owner let its lease end. A
/// row that a worker runs is never taken. Whoever is told to run has a whole lease from now, also by a repetition.
pub fn begin(row: &mut Option<Row>, delivery: DeliveryId, lease: i64, now: i64) -> Begun {
    let row = row.get_or_insert_with(|| Row {
        state: State::Failed,
        ..new(Path::Forward, delivery)
    });
    match row.state {
        State::Failed => Begun::Run(row.start(delivery, now + lease)),
        State::Running if row.path == Path::Forward && row.lease_ended(now) => {
            Begun::Run(row.start(delivery, now + lease))
        }
        State::Running => match row.run() {
            // Ours from an earlier try; but a lease that has ended is nobody's, even if nobody has freed the row yet.
            // It is as long as a new one: who was told nothing about the first has used up none of it knowingly.
            Some(run) if run.owner == delivery && !row.lease_ended(now) => {
                let _ours = heartbeat(row, &run, lease, now);
                Begun::Run(run)
            }
            Some(_) | None => Begun::Running,
        },
        state @ (State::Queued
        | State::Done
        | State::Dead
        | State::Discarded
        | State::Parked
        | State::Twin) => Begun::Settled(state),
    }
}

/// Makes a forward's row that is not finished the workers' own.
pub fn adopt(row: &mut Row, now: i64) {
    match (row.path, row.state) {
        (Path::Forward, State::Failed) => {
            row.path = Path::Inbox;
            row.state = State::Queued;
            row.due = Some(now);
        }
        (Path::Forward, State::Running) => row.path = Path::Inbox,
        (Path::Forward | Path::Inbox, _) => {}
    }
}

/// Leases a row that is due to a worker.
pub fn fetch(row: &mut Row, owner: DeliveryId, lease: i64, now: i64) -> Option<RunId> {
    let is_due = row.state.waits() && row.due.is_some_and(|due| due <= now);
    is_due.then(|| row.start(owner, now + lease))
}

/// Extends a lease, never shortens it.
pub fn heartbeat(row: &mut Row, run: &RunId, extend: i64, now: i64) -> Settled {
    match &mut row.lease {
        Some(lease) if lease.owner == run.owner => {
            lease.until = lease.until.max(now + extend);
            Settled::Committed
        }
        Some(_) | None => Settled::Lost,
    }
}

/// Ends a run, unless it is somebody else's by now. `resumed` is when the outcome's target was last released from a
/// pause.
pub fn settle(row: &mut Row, run: &RunId, outcome: &Outcome, resumed: Option<i64>, now: i64) -> Settled {
    end(row, run, &Ending::of(outcome), resumed, now)
}

/// Ends a forward that failed.
pub fn release(row: &mut Row, run: &RunId, next: OnFailure, now: i64) -> Settled {
    end(row, run, &Ending::released("", next), None, now)
}

fn end(row: &mut Row, run: &RunId, ending: &Ending<'_>, resumed: Option<i64>, now: i64) -> Settled {
    if !row.is_run_by(run) {
        return ending.settled_before(outcome_before(row, run, ending));
    }
    let due = ending.due_in.map(|delay| now + milliseconds(delay));
    let mut outcome = ending.outcome;
    match &ending.cost {
        Cost::Try => {
            row.state = ending.state;
            row.due = due;
            row.deadline = None;
            match (row.path, ending.state) {
                // Adopted while it ran: nobody else would try again.
                (Path::Inbox, State::Failed) => {
                    row.state = State::Queued;
                    row.due = due.or(Some(now));
                }
                (_, State::Queued) => row.path = Path::Inbox,
                _ => {}
            }
        }
        Cost::Time(held) => {
            let already = milliseconds(held.already).min(now - row.due.unwrap_or(now));
            let deadline = row.deadline.unwrap_or(now + milliseconds(HELD_MAX) - already);
            let deadline = resumed.map_or(deadline, |at| deadline.max(at + milliseconds(HELD_MAX)));
            row.deadline = Some(deadline);
            row.state = ending.state;
            if deadline <= now {
                row.state = State::Dead;
                outcome = "dead";
            }
            row.due = due;
            row.tries -= 1;
        }
        Cost::Nothing => {
            row.state = ending.state;
            row.due = due;
            row.tries -= 1;
        }
    }
    row.lease = None;
    row.write_down(run.owner, outcome);
    ending.settled(outcome)
}

/// How an earlier try of just this settlement was written down.
fn outcome_before(row: &Row, run: &RunId, ending: &Ending<'_>) -> Option<&'static str> {
    let fits = |outcome| outcome == ending.outcome || (ending.may_bury() && outcome == "dead");
    let before = row
        .ended
        .iter()
        .find(|ended| ended.run == *run && fits(ended.outcome));
    before.map(|ended| ended.outcome)
}

/// Frees a row whose owner died. Says whether there was anything to free. A forward fails whatever its tries, so that
/// the provider's next try runs; where no try will come, it becomes the workers'.
pub fn rescue(row: &mut Row, tries_max: u32, provider_retries: bool, now: i64) -> bool {
    if !row.lease_ended(now) {
        return false;
    }
    let Some(lease) = row.lease.take() else {
        return false;
    };
    row.write_down(lease.owner, "lost");
    row.state = match (row.path, provider_retries) {
        (Path::Forward, true) => State::Failed,
        (Path::Inbox, _) if row.tries >= tries_max => State::Dead,
        (Path::Inbox, _) | (Path::Forward, false) => State::Queued,
    };
    if !provider_retries {
        row.path = Path::Inbox;
    }
    row.due = Some(now);
    true
}

/// What a person does to an event at rest. Says whether it could be done.
pub fn change(row: &mut Row, change: Change, now: i64) -> bool {
    if !change.starts_from().contains(&row.state) {
        return false;
    }
    if change == Change::Discard {
        row.state = State::Discarded;
        return true;
    }
    if change == Change::Replay {
        row.generation += 1;
        row.attempts = 0;
    }
    row.state = State::Queued;
    row.path = Path::Inbox;
    row.tries = 0;
    row.deadline = None;
    row.due = Some(now);
    true
}
