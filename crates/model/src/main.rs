//! Checks the protocol within bounds of one's choice, and says what was found.
//!
//! `cargo run -p hookgate-model -- --mode forward --replicas 2 --deliveries 4 --faults 3`

#![allow(clippy::print_stdout, reason = "it is made to be read")]

use std::process::ExitCode;
use std::sync::Arc;

use hookgate_model::bounds::{Bounds, DELIVERIES_MAX, Mode};
use hookgate_model::check::Check;
use hookgate_model::protocol::Real;
use hookgate_model::{mutations, naive};

const USAGE: &str = "hookgate-model [--mode inbox|forward|forward-silent|forward-alone|rolling] [--replicas N]
               [--deliveries N] [--faults N] [--threads N]    checks the protocol as it is; every mode without --mode
hookgate-model naive        tells how each naive receiver fails
hookgate-model mutations    tells which promise each changed transition breaks";

struct Wanted {
    modes: Vec<Mode>,
    replicas: usize,
    deliveries: usize,
    faults: u8,
    threads: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["naive"] => refute(naive::receivers()),
        ["mutations"] => refute(mutations::all()),
        _ => match wanted(&words) {
            Some(wanted) => verify(&wanted),
            None => {
                println!("{USAGE}");
                ExitCode::from(64)
            }
        },
    }
}

fn wanted(words: &[&str]) -> Option<Wanted> {
    let mut wanted = Wanted {
        modes: Mode::ALL.to_vec(),
        replicas: 2,
        deliveries: 3,
        faults: 2,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    for pair in words.chunks(2) {
        match *pair {
            ["--mode", name] => wanted.modes = vec![Mode::ALL.into_iter().find(|mode| mode.name() == name)?],
            ["--replicas", number] => wanted.replicas = number.parse().ok().filter(|n| (1..8).contains(n))?,
            ["--deliveries", number] => {
                wanted.deliveries = number.parse().ok().filter(|n| (1..DELIVERIES_MAX).contains(n))?;
            }
            ["--faults", number] => wanted.faults = number.parse().ok()?,
            ["--threads", number] => wanted.threads = number.parse().ok().filter(|n| *n > 0)?,
            _ => return None,
        }
    }
    Some(wanted)
}

fn verify(wanted: &Wanted) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for mode in &wanted.modes {
        let bounds = Bounds {
            mode: *mode,
            replicas: wanted.replicas,
            deliveries: wanted.deliveries,
            faults: wanted.faults,
        };
        let report = Check::new(bounds, Arc::new(Real)).verify(wanted.threads);
        println!("{report}");
        if let Some((promise, story)) = &report.broken {
            println!("broken: {}\n{}", promise.name(), story.join("\n"));
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn refute(suspects: Vec<naive::Suspect>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for suspect in suspects {
        println!("## {}: {}", suspect.name, suspect.does);
        match suspect.refuted() {
            Some(report) => {
                println!("{report}");
                if let Some((promise, story)) = report.broken {
                    println!("broken: {}\n{}\n", promise.name(), story.join("\n"));
                }
            }
            None => {
                println!("not refuted; it should break: {}\n", suspect.breaks.name());
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
