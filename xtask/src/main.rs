//! Every check of hookgate, behind one command: `cargo xtask test` is what CI runs and what a contributor runs.
//! It needs Rust; Redis, Postgres and PgBouncer it finds, or installs from the system's packages.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool speaks by printing"
)]

mod checks;
mod faults;
mod setup;
mod tidy;

use std::env;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test     runs every check: setup, formatting, house rules, lints, documentation, tests, every fault once
  faults   runs real replicas, workers and stores under every fault and compares what they tell
           [--short] [--jobs N] [--fault NAME] [--seed N] [--report FILE]
  tidy     checks the house rules that no compiler knows: arrows between crates, file lengths, licences
  setup    finds Redis, Postgres and PgBouncer, or installs them from the system's packages";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => checks::run(root()),
        ["faults", ..] => faults::run(root(), &arguments[1..]),
        ["tidy"] => tidy::run(root()),
        ["setup"] => setup::run(),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The directory of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask stands in the workspace's directory")
}
