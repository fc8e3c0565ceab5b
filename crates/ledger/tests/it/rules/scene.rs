//! A ledger, its database, and a history played to it and to the rules at once.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::rules::{self, RunId};
use hookgate_ledger::{
    Appended, Begun, Changed, DeliveryId, Effects, Fetch, Lease, Ledger, NewEvent, Operations, Queue, Ticket,
    TriesMax,
};
use hookgate_webhook::EventKey;
use proptest::test_runner::TestCaseError;

use super::history::{DELIVERIES, RUNS, Step};
use super::looks::Looks;
use crate::change::reason;
use crate::database::Database;
use crate::sample::{event, lane, source};

/// Plays histories, each of an event and a source of its own.
pub(super) struct Scene {
    ledger: Arc<dyn Ledger>,
    desk: Arc<dyn Operations>,
    looks: Looks,
    played: Cell<u32>,
}

/// One event as the ledger and the rules have it.
struct Play<'a> {
    scene: &'a Scene,
    deliveries: Vec<NewEvent>,
    provider_retries: bool,
    row: Option<rules::Row>,
    now: i64,
    /// The latest runs, the last one first.
    runs: Vec<(Lease, RunId)>,
}

/// What both said to one step.
type Answers = (String, String);

impl Scene {
    pub(super) async fn on(db: Database) -> Self {
        Self {
            ledger: db.ledger().await,
            desk: db.desk().await,
            looks: Looks::at(db).await,
            played: Cell::default(),
        }
    }

    pub(super) async fn play(
        &self,
        (provider_retries, steps): &(bool, Vec<Step>),
    ) -> Result<(), TestCaseError> {
        self.played.set(self.played.get() + 1);
        let mut play = Play::new(self, self.played.get(), *provider_retries);
        for (n, step) in steps.iter().enumerate() {
            let (real, ruled) = play.step(step).await;
            prop_assert_eq(&real, &ruled, || format!("the answer to step {n}, {step:?}"))?;
            let real = self.looks.row(&play.deliveries[0].key).await;
            let ruled = play.row.as_ref().map(|row| self.looks.told(row, play.now));
            prop_assert_eq(&real, &ruled, || format!("the row after step {n}, {step:?}"))?;
        }
        Ok(())
    }
}

fn prop_assert_eq<T: PartialEq + Debug>(
    real: &T,
    ruled: &T,
    about: impl FnOnce() -> String,
) -> Result<(), TestCaseError> {
    match real == ruled {
        true => Ok(()),
        false => Err(TestCaseError::fail(format!(
            "{}:\nledger {real:?}\nrules  {ruled:?}",
            about()
        ))),
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap()
}

impl<'a> Play<'a> {
    fn new(scene: &'a Scene, number: u32, provider_retries: bool) -> Self {
        let delivery = |_| {
            let mut event = event("evt_1");
            event.key.source = source(&format!("source_{number}"));
            event.provider = if provider_retries { "stripe" } else { "github" };
            event
        };
        Self {
            scene,
            deliveries: (0..DELIVERIES).map(delivery).collect(),
            provider_retries,
            row: None,
            now: 0,
            runs: Vec::new(),
        }
    }

    /// Takes one step on both sides.
    async fn step(&mut self, step: &Step) -> Answers {
        match step {
            Step::Append(delivery) => self.append(*delivery, Queue::ForWorker).await,
            Step::AppendFinished(delivery) => self.append(*delivery, Queue::Finished("no_consumer")).await,
            Step::Begin(delivery, lease) => self.begin(*delivery, *lease).await,
            Step::Fetch(lease) => self.fetch(*lease).await,
            Step::Pass(time) => self.pass(*time).await,
            _ => self.step_of_a_row(step).await,
        }
    }

    async fn append(&mut self, delivery: usize, queue: Queue) -> Answers {
        let event = self.deliveries[delivery].clone();
        let ruled = rules::append(&mut self.row, event.delivery, queue, self.now);
        let real = match self.scene.ledger.append(event, queue).await.unwrap() {
            Appended::Accepted => rules::Appended::Accepted,
            Appended::Duplicate { state, .. } => rules::Appended::Duplicate(state),
            alike @ (Appended::Alike(_) | Appended::Twin(_)) => panic!("nothing was compared: {alike:?}"),
        };
        answers(real, ruled)
    }

    async fn begin(&mut self, delivery: usize, lease: Duration) -> Answers {
        let event = &self.deliveries[delivery];
        let ruled = rules::begin(&mut self.row, event.delivery, milliseconds(lease), self.now);
        let real = match self.scene.ledger.begin(event, lease).await.unwrap() {
            Begun::Run { lease, .. } => {
                let run = run_of(&lease);
                self.remember(lease);
                rules::Begun::Run(run)
            }
            Begun::Running => rules::Begun::Running,
            Begun::Settled { state, .. } => rules::Begun::Settled(state),
            twin @ Begun::Twin(_) => panic!("nothing was compared: {twin:?}"),
        };
        answers(real, ruled)
    }

    async fn fetch(&mut self, lease: Duration) -> Answers {
        let want = Fetch {
            lanes: vec![lane(self.deliveries[0].key.source.as_str(), 0)],
            limit: 10,
            bytes_max: 1 << 20,
            lease,
            ticket: Ticket::draw(),
        };
        let job = self.scene.ledger.fetch(want).await.unwrap().pop();
        let owner = job.as_ref().map_or(DeliveryId(0), |job| job.lease.owner);
        let (milliseconds, now) = (milliseconds(lease), self.now);
        let fetch = |row| rules::fetch(row, owner, milliseconds, now);
        let ruled = self.row.as_mut().and_then(fetch);
        let real = job.map(|job| {
            let run = run_of(&job.lease);
            self.remember(job.lease);
            run
        });
        answers(real, ruled)
    }

    async fn pass(&mut self, time: Duration) -> Answers {
        self.now += milliseconds(time);
        self.scene
            .looks
            .pass(&self.deliveries[0].key, milliseconds(time))
            .await;
        answers((), ())
    }

    fn remember(&mut self, lease: Lease) {
        let run = run_of(&lease);
        self.runs.insert(0, (lease, run));
        self.runs.truncate(RUNS);
    }

    /// Steps that need a row; there is nothing to be asked about one that nobody wrote.
    async fn step_of_a_row(&mut self, step: &Step) -> Answers {
        let (ledger, now) = (&self.scene.ledger, self.now);
        let key = self.deliveries[0].key.clone();
        let Some(row) = &mut self.row else {
            return answers((), ());
        };
        match step {
            Step::Adopt => {
                ledger.adopt(&key).await.unwrap();
                rules::adopt(row, now);
                answers((), ())
            }
            Step::Rescue { tries_max } => {
                // How many it frees depends on what earlier histories left.
                let _ = ledger.rescue(&tries_of(&key, *tries_max)).await.unwrap();
                rules::rescue(row, *tries_max, self.provider_retries, now);
                answers((), ())
            }
            Step::Change(change) => {
                let real = self
                    .scene
                    .desk
                    .change(&key, *change, None, &reason("as told"))
                    .await;
                let real = matches!(real.unwrap(), Changed::Done { .. });
                answers(real, rules::change(row, *change, now))
            }
            Step::Heartbeat(ago, _) | Step::Settle(ago, _) | Step::Release(ago, _) => {
                match self.runs.get(*ago) {
                    Some(run) => step_of_a_run(&**ledger, row, run, step, now).await,
                    None => answers((), ()),
                }
            }
            Step::Append(_) | Step::AppendFinished(_) | Step::Begin(..) | Step::Fetch(_) | Step::Pass(_) => {
                unreachable!("these need no row")
            }
        }
    }
}

/// What the owner of a run does, late or not.
async fn step_of_a_run(
    ledger: &dyn Ledger,
    row: &mut rules::Row,
    (lease, run): &(Lease, RunId),
    step: &Step,
    now: i64,
) -> Answers {
    let (real, ruled) = match step {
        Step::Heartbeat(_, extend) => (
            ledger.heartbeat(lease, *extend).await,
            rules::heartbeat(row, run, milliseconds(*extend), now),
        ),
        Step::Settle(_, outcome) => (
            ledger.settle(lease, outcome.clone(), Effects::default()).await,
            rules::settle(row, run, outcome, None, now),
        ),
        Step::Release(_, next) => (
            ledger.release(lease, "", *next).await,
            rules::release(row, run, *next, now),
        ),
        _ => unreachable!("these are of no run"),
    };
    answers(real.unwrap(), ruled)
}

fn tries_of(key: &EventKey, tries_max: u32) -> TriesMax {
    TriesMax {
        by_source: vec![(key.source.clone(), tries_max)],
        otherwise: u32::MAX,
    }
}

fn run_of(lease: &Lease) -> RunId {
    RunId {
        owner: lease.owner,
        attempt: lease.attempt,
        generation: lease.generation,
    }
}

fn answers<T: Debug>(real: T, ruled: T) -> Answers {
    (format!("{real:?}"), format!("{ruled:?}"))
}
