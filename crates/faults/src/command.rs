//! The command line.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::fault::{Fault, clock_library};
use crate::oracle::Figures;
use crate::outcome::Outcome;
use crate::plan;
use crate::report::{Circumstances, page};
use crate::run::{Pace, Run};
use crate::suite::Suite;
use crate::totals::{Total, too_slow};

/// Runs real replicas, workers and stores of hookgate under every fault, and compares what they tell.
#[derive(Parser)]
pub struct Arguments {
    /// The gateway's binary.
    #[arg(long)]
    gateway: PathBuf,
    /// Every fault with one seed, and one pair.
    #[arg(long)]
    short: bool,
    /// Runs side by side.
    #[arg(long, default_value_t = 3)]
    jobs: usize,
    /// One fault by name, or two as `one+other`, in place of all.
    #[arg(long)]
    fault: Option<String>,
    /// One seed, in place of those of the plan.
    #[arg(long, requires = "fault")]
    seed: Option<u64>,
    /// Writes the report there.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Where the logs of failed runs go.
    #[arg(long, default_value = "target/faults")]
    logs: PathBuf,
    /// The commit that the report names.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

const FULL: Pace = Pace {
    per_second: 60,
    afterwards: Duration::from_millis(800),
    drain_max: Duration::from_secs(20),
    tolerant: false,
};

/// A debug build beside other checks.
const SHORT: Pace = Pace {
    per_second: 30,
    afterwards: Duration::from_millis(300),
    drain_max: Duration::from_secs(60),
    tolerant: true,
};

/// Does what is asked. The short form prints times and judges none: a debug build on a busy machine proves nothing by
/// them.
pub async fn run(arguments: Arguments) -> ExitCode {
    match suffer(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn suffer(arguments: &Arguments) -> Result<(), String> {
    let (plan, skipped) = possible(plan_of(arguments)?);
    let began = Instant::now();
    let suite = Suite {
        binary: arguments.gateway.clone(),
        jobs: arguments.jobs.max(1),
        pace: if arguments.short { SHORT } else { FULL },
        logs: arguments.logs.clone(),
    };
    let outcomes = suite.run(plan).await;
    if let Some(file) = &arguments.report {
        let page = page(&outcomes, &circumstances(arguments, began.elapsed()));
        fs::write(file, page).map_err(|error| format!("the report cannot be written: {error}"))?;
    }
    conclude(&outcomes, skipped);
    let bad = outcomes.iter().filter(|outcome| !outcome.is_good()).count();
    match (bad, arguments.short) {
        (0, true) => Ok(()),
        (0, false) if skipped > 0 => Err(format!("incomplete: {skipped} runs were skipped")),
        (0, false) => in_time(&outcomes),
        (bad, _) => Err(format!("{bad} runs broke a rule")),
    }
}

fn in_time(outcomes: &[Outcome]) -> Result<(), String> {
    let slow = too_slow(outcomes);
    let line = |(fault, p99, max): &(Fault, Duration, Duration)| {
        format!(
            "too slow under {}: 99 of 100 answers within {p99:?}, {max:?} at most",
            fault.name()
        )
    };
    let lines: Vec<_> = slow.iter().map(line).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Err(lines.join("\n")),
    }
}

/// The runs that can be made here, and how many cannot.
fn possible(plan: Vec<Run>) -> (Vec<Run>, usize) {
    let needs_clock = |run: &Run| {
        run.faults
            .iter()
            .any(|fault| matches!(fault, Fault::ReplicaClockAhead | Fault::ReplicaClockBehind))
    };
    let no_clock = clock_library().is_none();
    let (skipped, possible): (Vec<_>, Vec<_>) =
        plan.into_iter().partition(|run| no_clock && needs_clock(run));
    for run in &skipped {
        println!(
            "SKIPPED {} seed {}: no libfaketime is installed",
            run.name(),
            run.seed
        );
    }
    (possible, skipped.len())
}

/// The totals; the last line has the form in which test programs tell theirs.
fn conclude(outcomes: &[Outcome], skipped: usize) {
    let Total {
        runs,
        failed,
        figures,
    } = Total::of(outcomes.iter());
    let Figures {
        events,
        answered,
        lost,
        doubled,
        unrecorded,
        taken_again,
        ..
    } = &figures;
    println!("\nevents {events}, answered 200 {answered}, lost {lost}, doubled at the ledger {doubled}");
    let second = figures.second_calls.iter();
    let second: Vec<_> = second
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    println!(
        "calls {}, second calls {} ({}), taken again {taken_again}, forwards unrecorded {unrecorded}",
        figures.calls,
        figures.second_calls_in_all(),
        second.join(", "),
    );
    for outcome in outcomes.iter().filter(|outcome| !outcome.is_good()) {
        println!("failed: {}", outcome.run.command());
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {} passed; {failed} failed; {skipped} ignored",
        runs - failed
    );
}

fn circumstances(arguments: &Arguments, took: Duration) -> Circumstances {
    Circumstances {
        commit: arguments.commit.clone(),
        jobs: arguments.jobs,
        per_second: FULL.per_second,
        took,
    }
}

fn plan_of(arguments: &Arguments) -> Result<Vec<Run>, String> {
    let plan = match (&arguments.fault, arguments.seed) {
        (Some(name), Some(seed)) => plan::named(name, [seed].into_iter()),
        (Some(name), None) => {
            let seeds = Fault::named(name).map_or(1, Fault::seeds);
            plan::named(name, 1..=if arguments.short { 1 } else { seeds })
        }
        (None, _) if arguments.short => Ok(plan::short()),
        (None, _) => Ok(plan::full()),
    };
    plan.map_err(|unknown| {
        let names: Vec<_> = Fault::ALL.into_iter().map(Fault::name).collect();
        format!("there is no fault {unknown:?}; there are {}", names.join(", "))
    })
}
