//! `hookgate-faults`: the fault suite. `cargo xtask faults` builds what it needs and runs it.

use std::process::ExitCode;

use clap::Parser as _;
use hookgate_faults::command::{Arguments, run};

#[tokio::main]
async fn main() -> ExitCode {
    run(Arguments::parse()).await
}
