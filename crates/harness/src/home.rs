//! Where a server lives: a directory of its own, the watchdog that removes it, and a port it holds through restarts.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::Process;
use crate::ports::free_port;
use crate::watchdog::Watchdog;

/// How often a server is started anew when another process took its port between our look and its bind.
const START_ATTEMPTS: usize = 5;

/// A server's directory, and how its processes are started and ended there.
pub(crate) struct Home {
    watchdog: Arc<Watchdog>,
    directory: TempDir,
    /// A server is ready when it has printed a line with this.
    ready: &'static str,
    /// What ends a server.
    ending_signal: &'static str,
}

impl Home {
    pub(crate) fn make(name: &str, ready: &'static str, ending_signal: &'static str) -> Self {
        let directory = tempfile::Builder::new()
            .prefix(&format!("hookgate-{name}-"))
            .tempdir();
        let directory = directory.expect("the system's directory for temporary files can be written");
        let watchdog = Arc::new(Watchdog::start(Some(directory.path())));
        Self {
            watchdog,
            directory,
            ready,
            ending_signal,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a server on a free port, and returns both when it is ready.
    pub(crate) async fn start(&self, command: impl Fn(u16) -> Command) -> (u16, Process) {
        let mut log = String::new();
        for _ in 0..START_ATTEMPTS {
            let port = free_port();
            let process = self.spawn(command(port));
            if process
                .find_line(|line| line.contains(self.ready))
                .await
                .is_some()
            {
                return (port, process);
            }
            log = process.log();
        }
        panic!("the server does not start:\n{log}");
    }

    /// Starts a server on a port that is its own already, and returns when it is ready.
    pub(crate) async fn start_again(&self, command: Command) -> Process {
        let process = self.spawn(command);
        process.wait_for_line(|line| line.contains(self.ready)).await;
        process
    }

    fn spawn(&self, command: Command) -> Process {
        Process::spawn_under(Arc::clone(&self.watchdog), command, self.ending_signal)
    }
}
