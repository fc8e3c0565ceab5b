//! The `hookgate` binary as a person or a script runs it: a command, its lines, its exit code.

use std::path::Path;

use hookgate_harness::Process;

use crate::gateway::command;

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it printed, both streams.
    pub lines: Vec<String>,
}

impl Ran {
    /// The one sentence of a failure.
    pub fn sentence(&self) -> &str {
        let mut sentences = self
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix("hookgate: "));
        let sentence = sentences.next().unwrap_or_default();
        assert_eq!(sentences.next(), None, "one sentence, not several: {self:#?}");
        sentence
    }

    /// Everything it printed.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Runs a command to its end, in the directory, with these settings.
pub async fn run_in(directory: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Ran {
    let mut command = command(arguments);
    command.current_dir(directory).envs(settings.iter().copied());
    let process = Process::spawn(command);
    let code = process.wait_exit().await;
    Ran {
        code,
        lines: process.lines(),
    }
}

/// Runs a command to its end with these settings.
pub async fn run(arguments: &[&str], settings: &[(&str, &str)]) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run_in(directory.path(), arguments, settings).await
}

/// Runs a command with a configuration file in place of settings.
pub async fn run_with_file(arguments: &[&str], toml: &str, settings: &[(&str, &str)]) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("hookgate.toml"), toml).expect("the directory takes a file");
    let arguments = [arguments, &["--config", "hookgate.toml"]].concat();
    run_in(directory.path(), &arguments, settings).await
}
