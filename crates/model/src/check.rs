//! The model as the checker wants it: which steps a situation allows, what each makes of it, and a run that says what
//! was found.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate_ledger::State as RowState;
use stateright::{Checker as _, HasDiscoveries, Model, Property};

use crate::bounds::{Bounds, DELIVERIES_MAX, Mode};
use crate::message::Fate;
use crate::path::{self, CallEnd};
use crate::promises::{self, Promise};
use crate::protocol::Protocol;
use crate::situations::{Met, Situation};
use crate::state::{Phase, State, Worker};
use crate::step::{Action, Last, Renewal};
use crate::{story, symmetry, worker};

/// A protocol within bounds.
#[derive(Clone)]
pub struct Check {
    /// How much of the world.
    pub bounds: Bounds,
    /// Whose transitions.
    pub protocol: Arc<dyn Protocol>,
    /// What was met so far.
    pub met: Arc<Met>,
    /// Whether this is only a question that the check asks itself.
    pub(crate) is_aside: bool,
}

/// What a run found.
pub struct Report {
    /// Within these bounds.
    pub bounds: Bounds,
    /// Situations that differ.
    pub unique_states: usize,
    /// Steps that were tried.
    pub steps: usize,
    /// The longest way to any of them.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// Whether every situation within the bounds was met.
    pub is_exhaustive: bool,
    /// The first promise that was found broken, and how, told step by step.
    pub broken: Option<(Promise, Vec<String>)>,
    /// What was met.
    pub met: Arc<Met>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bounds,
            unique_states,
            steps,
            depth,
            took,
            ..
        } = self;
        let end = if self.is_exhaustive {
            "exhaustive"
        } else {
            "stopped"
        };
        let seconds = took.as_secs_f64();
        write!(
            f,
            "{bounds}: {unique_states} situations, {steps} steps, depth {depth}, {seconds:.1} s, {end}"
        )
    }
}

impl Check {
    /// A check of this protocol.
    pub fn new(bounds: Bounds, protocol: Arc<dyn Protocol>) -> Self {
        assert!(
            bounds.deliveries < DELIVERIES_MAX && (1..=7).contains(&bounds.replicas),
            "at most {} deliveries and 7 replicas",
            DELIVERIES_MAX - 1
        );
        Self {
            bounds,
            protocol,
            met: Arc::default(),
            is_aside: false,
        }
    }

    /// The same, for questions whose situations were not really met.
    pub fn aside(&self) -> Self {
        Self {
            met: Arc::default(),
            is_aside: true,
            ..self.clone()
        }
    }

    /// Notes a situation.
    pub fn met(&self, situation: Situation) {
        self.met.note(situation);
    }

    /// Meets every situation, or stops when any promise is found broken. Depth first, which needs the least memory.
    pub fn verify(self, threads: usize) -> Report {
        let started = Instant::now();
        let (bounds, met) = (self.bounds, Arc::clone(&self.met));
        let builder = self
            .checker()
            .threads(threads)
            .finish_when(HasDiscoveries::AnyFailures);
        let builder = match bounds.mode {
            Mode::Rolling => builder.symmetry_fn(symmetry::of_unlike_replicas),
            Mode::Inbox | Mode::Forward | Mode::ForwardSilent | Mode::ForwardAlone => {
                builder.symmetry_fn(symmetry::representative)
            }
        };
        report(&builder.spawn_dfs().join(), None, bounds, met, started)
    }

    /// Looks for a short way to break this promise: breadth first, and with one thread.
    pub fn refute(self, promise: Promise) -> Report {
        let started = Instant::now();
        let (bounds, met) = (self.bounds, Arc::clone(&self.met));
        let wanted = HasDiscoveries::AnyOf([promise.name()].into());
        let builder = self.checker().finish_when(wanted);
        report(&builder.spawn_bfs().join(), Some(promise), bounds, met, started)
    }
}

/// Bounds in the order in which they grow, for finding a short counter-example.
pub fn growing(mode: Mode) -> impl Iterator<Item = Bounds> {
    let sizes = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)];
    sizes.into_iter().map(move |(deliveries, faults)| Bounds {
        deliveries,
        faults,
        ..Bounds::of(mode)
    })
}

fn report(
    checker: &impl stateright::Checker<Check>,
    wanted: Option<Promise>,
    bounds: Bounds,
    met: Arc<Met>,
    started: Instant,
) -> Report {
    let took = started.elapsed();
    let discoveries = checker.discoveries();
    let first = wanted.into_iter().chain(Promise::ALL);
    let broken = first.into_iter().find_map(|promise| {
        let mut path = discoveries.get(promise.name())?.clone().into_vec();
        // The checker goes on for a while after it has found something, and keeps what it found last.
        let holds = checker.model().property(promise.name()).condition;
        let broken = path
            .iter()
            .position(|(state, _)| !holds(checker.model(), state))?;
        path.truncate(broken + 1);
        Some((promise, story::tell(checker.model(), path)))
    });
    Report {
        bounds,
        unique_states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took,
        is_exhaustive: checker.is_done() && broken.is_none(),
        broken,
        met,
    }
}

impl Model for Check {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.bounds)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.arrivals(state, actions);
        for number in 0..self.bounds.deliveries {
            if !state.is_paused(usize::from(state.deliveries[number].replica)) {
                self.of_delivery(state, number, actions);
            }
        }
        for replica in 0..self.bounds.replicas {
            if !state.is_paused(replica) {
                self.of_worker(state, replica, actions);
            }
        }
        self.of_the_rest(state, actions);
        self.of_time(state, actions);
        if state.faults_left > 0 {
            self.faults(state, actions);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut after = before.clone();
        action.take(self, &mut after);
        after.forget();
        (after != *before).then_some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::properties()
    }
}

impl Check {
    /// The provider sends when it likes: at once, at the same time, or much later.
    fn arrivals(&self, state: &State, actions: &mut Vec<Action>) {
        let unsent = |number: &usize| state.deliveries[*number].phase == Phase::Unsent;
        let Some(number) = (0..self.bounds.deliveries).find(unsent) else {
            return;
        };
        // Replicas that do nothing are alike, unless they handle events differently.
        let replicas = 0..self.bounds.replicas;
        let alike = self.bounds.mode != Mode::Rolling;
        let mut idle_taken = false;
        for replica in replicas {
            let idle = !state.is_busy(replica) && !state.is_paused(replica);
            let another_like_it = alike && idle && idle_taken;
            if !state.is_paused(replica) && !another_like_it {
                actions.push(Action::Deliver(number as u8, replica as u8));
            }
            idle_taken |= idle;
        }
    }

    fn of_delivery(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let phase = state.deliveries[number].phase;
        let name = number as u8;
        match phase {
            Phase::Unsent | Phase::Over => return,
            Phase::Calling(_) => {
                actions.push(Action::CallEnds(name, CallEnd::Took));
                if state.faults_left > 0 {
                    let ends = [CallEnd::Failed, CallEnd::TookUnheard, CallEnd::TakesLate];
                    actions.extend(ends.map(|end| Action::CallEnds(name, end)));
                }
                return;
            }
            Phase::Waiting { .. } => actions.push(Action::GiveUp(name)),
            _ => {}
        }
        let Some(message) = path::message(self, state, number) else {
            return;
        };
        actions.push(Action::Ask(name, Fate::Answered));
        if state.faults_left > 0 {
            actions.extend(message.fates().iter().map(|fate| Action::Ask(name, *fate)));
        }
    }

    fn of_worker(&self, state: &State, replica: usize, actions: &mut Vec<Action>) {
        let name = replica as u8;
        if matches!(state.workers[replica], Worker::Calling(_)) {
            actions.push(Action::WorkEnds(name, CallEnd::Took));
            if state.faults_left > 0 {
                let ends = [CallEnd::Failed, CallEnd::TookUnheard, CallEnd::TakesLate];
                actions.extend(ends.map(|end| Action::WorkEnds(name, end)));
            }
        } else if let Some(message) = worker::message(self, state, replica) {
            actions.push(Action::Work(name, Fate::Answered));
            if state.faults_left > 0 {
                actions.extend(message.fates().iter().map(|fate| Action::Work(name, *fate)));
            }
        }
    }

    fn of_the_rest(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, chore) in state.chores.iter().enumerate() {
            if !state.is_paused(usize::from(chore.replica)) {
                actions.push(Action::Chore(number as u8, Fate::Answered));
                if state.faults_left > 0 {
                    let fates = [Fate::Lost, Fate::Unheard, Fate::Late];
                    actions.extend(fates.map(|fate| Action::Chore(number as u8, fate)));
                }
            }
        }
        actions.extend((0..state.late.len()).map(|number| Action::Arrive(number as u8)));
        let running = state
            .row
            .as_ref()
            .is_some_and(|row| row.state == RowState::Running);
        if running && self.bounds.mode.has_ledger() {
            actions.push(Action::Rescue);
        }
        actions.extend(Renewal::all(self, state).into_iter().map(Action::Renew));
        if state.fork.is_some() {
            actions.push(Action::FailOver);
        }
        let paused = (0..self.bounds.replicas).filter(|replica| state.is_paused(*replica));
        actions.extend(paused.map(|replica| Action::Resume(replica as u8)));
    }

    /// A replica that runs does its next step at once, compared with a lease: time passes while a target or another
    /// copy is waited for. A replica that stands still while time passes is a fault.
    fn of_time(&self, state: &State, actions: &mut Vec<Action>) {
        let runs = |replica: u8| !state.is_paused(usize::from(replica));
        let quick = |delivery: &crate::state::Delivery| {
            delivery.phase.is_live() && !delivery.phase.may_take_long() && runs(delivery.replica)
        };
        let settles = |(replica, worker): (usize, &Worker)| {
            matches!(worker, Worker::Settling(..)) && !state.is_paused(replica)
        };
        if state.deliveries.iter().any(quick)
            || state.workers.iter().enumerate().any(settles)
            || state.chores.iter().any(|chore| runs(chore.replica))
        {
            return;
        }
        actions.push(Action::Tick(None));
        if state.faults_left == 0 {
            return;
        }
        for renewal in Renewal::all(self, state) {
            let fates = [Fate::Lost, Fate::Late];
            actions.extend(fates.map(|fate| Action::Tick(Some((renewal, fate)))));
        }
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        for replica in (0..self.bounds.replicas).filter(|replica| state.is_busy(*replica)) {
            let name = replica as u8;
            actions.push(Action::Crash(name, None));
            for number in 0..self.bounds.deliveries {
                let delivery = &state.deliveries[number];
                if usize::from(delivery.replica) == replica && delivery.phase.is_live() {
                    actions.push(Action::Crash(name, Some(Last::Delivery(number as u8))));
                }
            }
            if state.workers[replica] != Worker::Idle {
                actions.push(Action::Crash(name, Some(Last::Worker)));
            }
            if !state.is_paused(replica) {
                actions.push(Action::Pause(name));
            }
        }
        if self.bounds.mode.may_lose_keys() {
            if state.cell.0.is_some() {
                actions.push(Action::LoseKeys);
            }
            if state.fork.is_none() {
                actions.push(Action::Fork);
            }
        }
    }
}
