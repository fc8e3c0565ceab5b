//! Runs a plan: a few slots side by side, since a run mostly waits. Each run prints one line; one that failed keeps
//! the logs of its processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::Mutex;

use crate::oracle::judge;
use crate::outcome::Outcome;
use crate::run::{Pace, Run};
use crate::scene::{Scene, Slot};

/// How a plan is run.
pub(crate) struct Suite {
    /// The gateway.
    pub(crate) binary: PathBuf,
    /// Runs side by side.
    pub(crate) jobs: usize,
    /// How much, how long.
    pub(crate) pace: Pace,
    /// Where logs of failed runs go.
    pub(crate) logs: PathBuf,
}

impl Suite {
    /// Runs everything; outcomes in the order of the plan.
    pub(crate) async fn run(self, plan: Vec<Run>) -> Vec<Outcome> {
        let suite = Arc::new(self);
        let count = plan.len();
        let waiting = Arc::new(Mutex::new(plan.into_iter().enumerate()));
        let slots = (0..suite.jobs.min(count)).map(|_| {
            let (suite, waiting) = (Arc::clone(&suite), Arc::clone(&waiting));
            tokio::spawn(async move { suite.work_off(&waiting).await })
        });
        let done = join_all(slots.collect::<Vec<_>>()).await;
        let mut outcomes: Vec<_> = done.into_iter().flatten().flatten().collect();
        outcomes.sort_by_key(|(number, _)| *number);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    async fn work_off(&self, waiting: &Mutex<impl Iterator<Item = (usize, Run)>>) -> Vec<(usize, Outcome)> {
        let mut slot = Arc::new(Slot::start(&self.binary).await);
        let mut outcomes = Vec::new();
        loop {
            let Some((number, run)) = waiting.lock().await.next() else {
                return outcomes;
            };
            let outcome = self.run_one(&slot, run).await;
            println!("{outcome}");
            if !outcome.is_good() {
                println!("    repeat it: {}", outcome.run.command());
                // Whatever it left behind must not meet the next one.
                slot = Arc::new(Slot::start(&self.binary).await);
            }
            outcomes.push((number, outcome));
        }
    }

    async fn run_one(&self, slot: &Arc<Slot>, run: Run) -> Outcome {
        let began = Instant::now();
        let (slot, pace, of) = (Arc::clone(slot), self.pace, run.clone());
        // In a task of its own, so that a panic is the run's and not the suite's.
        let ran = tokio::spawn(async move { of.run(slot, pace).await }).await;
        let (evidence, scene) = match ran {
            Ok(ran) => ran,
            Err(error) => return Outcome::broken(run, error.to_string(), began.elapsed()),
        };
        let judgement = judge(&evidence);
        let outcome = Outcome::judged(run, judgement, evidence.missed, began.elapsed());
        if outcome.is_good() {
            scene.slot.drop_database(&scene.database).await;
        } else {
            let kept = self
                .logs
                .join(format!("{}-{}", outcome.run.name(), outcome.run.seed));
            match keep_logs(&scene, &kept) {
                Ok(()) => println!("    logs: {}", kept.display()),
                Err(error) => println!("    logs could not be kept in {}: {error}", kept.display()),
            }
        }
        outcome
    }
}

fn keep_logs(scene: &Scene, directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    for running in scene.places.iter().flat_map(|place| place.all()) {
        let lines = running.process.lines().join("\n");
        fs::write(directory.join(format!("{}.log", running.name)), lines)?;
    }
    let disturbances = scene.disturbances();
    fs::write(directory.join("disturbances.txt"), format!("{disturbances:#?}"))
}
