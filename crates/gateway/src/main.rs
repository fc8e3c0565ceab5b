//! The `hookgate` binary: parse, build, wait for a signal, drain.

use std::process::ExitCode;

use clap::Parser as _;
use hookgate_gateway::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
