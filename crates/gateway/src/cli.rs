//! The command line. Each subcommand is one file under `command/`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app::Roles;
use crate::command::operations::EXIT_CODES;
use crate::command::operations::dead_letters::DeadLetters;
use crate::command::operations::events::Events;
use crate::command::operations::stats::Stats;
use crate::command::operations::targets::Targets;
use crate::command::{self, Failure};

/// hookgate receives signed webhooks and makes sure that each event takes effect once.
#[derive(Debug, Parser)]
#[command(name = "hookgate", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the embedded gateway on this machine: SQLite, claims in memory, published dev secrets
    Dev(ConfigFile),
    /// Run all roles in one process
    Serve(ConfigFile),
    /// Run the public listener only
    Receive(ConfigFile),
    /// Run the worker only
    Work(ConfigFile),
    /// Empty bodies and delete rows that retention no longer keeps
    Sweep(command::sweep::Sweep),
    /// Bring the database schema up to date
    Migrate(ConfigFile),
    /// Look at events, and deliver finished ones again
    #[command(after_help = EXIT_CODES)]
    Events {
        #[command(subcommand)]
        what: Events,
    },
    /// Look at dead letters, run them again or give them up
    #[command(after_help = EXIT_CODES)]
    DeadLetters {
        #[command(subcommand)]
        what: DeadLetters,
    },
    /// Pause and resume deliveries to a target
    #[command(after_help = EXIT_CODES)]
    Targets {
        #[command(subcommand)]
        what: Targets,
    },
    /// Show what was counted per minute, summed over replicas
    #[command(after_help = EXIT_CODES)]
    Stats(Stats),
    /// Check signatures of saved deliveries
    Verify(command::verify::Verify),
    /// Show what is known about the providers
    Providers(command::providers::Providers),
    /// Send realistic signed events
    Send(command::send::Send),
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
}

/// Where settings besides the environment stand.
#[derive(Debug, Clone, Args)]
pub struct ConfigFile {
    /// TOML file with settings and sources; the environment wins over it
    #[arg(long, value_name = "FILE", env = "HOOKGATE_CONFIG")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Say whether the configuration is accepted, and what will hurt one day
    Check(command::config::Check),
    /// Print every setting, its value and where it stands; secrets redacted
    Show(ConfigFile),
}

impl Cli {
    /// Runs the command. A failure is one sentence on standard error: exit 64 for a configuration that is
    /// not accepted, 3 and 4 where the help says so, 1 for everything else.
    pub fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Dev(file) => command::serve::dev(&file),
            Command::Serve(file) => command::serve::serve(&file, Roles::ALL),
            Command::Receive(file) => command::serve::serve(&file, Roles::RECEIVE),
            Command::Work(file) => command::serve::serve(&file, Roles::WORK),
            Command::Sweep(sweep) => sweep.run(),
            Command::Migrate(file) => command::migrate::migrate(&file),
            Command::Events { what } => what.run(),
            Command::DeadLetters { what } => what.run(),
            Command::Targets { what } => what.run(),
            Command::Stats(stats) => stats.run(),
            Command::Verify(verify) => verify.run(),
            Command::Providers(providers) => providers.run(),
            Command::Send(send) => send.run(),
            Command::Config {
                what: ConfigCommand::Check(check),
            } => check.run(),
            Command::Config {
                what: ConfigCommand::Show(file),
            } => command::config::show(&file),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure { sentence, exit_code }) => {
                if !sentence.is_empty() {
                    // Nobody is left to tell if standard error is closed.
                    let _ = writeln!(std::io::stderr(), "hookgate: {sentence}");
                }
                ExitCode::from(exit_code)
            }
        }
    }
}
