//! A child process whose words can be waited for: every line it prints is kept, and so is how it ended.
//! Servers are run by it, and the gateway's tests run the gateway by it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::watch;
use tokio::time::timeout;

use crate::watchdog::Watchdog;
use crate::{PATIENCE, signals};

/// A running child. Dropping it ends it; so does the end of the test process.
pub struct Process {
    name: String,
    pid: u32,
    output: Arc<watch::Sender<Output>>,
    ending_signal: &'static str,
    reaper: Option<JoinHandle<()>>,
    _watchdog: Arc<Watchdog>,
}

/// What the child has said, and how it ended.
#[derive(Default)]
struct Output {
    lines: Vec<String>,
    exit: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` with its output captured line by line, and without input.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn spawn(command: Command) -> Self {
        Self::spawn_under(Arc::new(Watchdog::start(None)), command, "KILL")
    }

    /// As [`Process::spawn`], under a watchdog that lives longer than the process. `ending_signal` is what it gets at
    /// the end.
    pub(crate) fn spawn_under(
        watchdog: Arc<Watchdog>,
        mut command: Command,
        ending_signal: &'static str,
    ) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let pid = child.id();
        watchdog.watch(pid, ending_signal);
        let output = Arc::new(watch::Sender::default());
        let reaper = reap(child, Arc::clone(&output), Arc::clone(&watchdog));
        Self {
            name,
            pid,
            output,
            ending_signal,
            reaper: Some(reaper),
            _watchdog: watchdog,
        }
    }

    /// The child's process id, also after its end.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything printed so far, standard output and standard error interleaved as they were read.
    pub fn lines(&self) -> Vec<String> {
        self.output.borrow().lines.clone()
    }

    /// The first line that `wanted` accepts, among those already printed and those to come.
    ///
    /// # Panics
    /// If the child ends without it, or [`PATIENCE`] does; the message holds all lines.
    pub async fn wait_for_line(&self, wanted: impl Fn(&str) -> bool) -> String {
        match self.find_line(wanted).await {
            Some(line) => line,
            None => panic!(
                "{} never printed the awaited line. It printed:\n{}",
                self.name,
                self.log()
            ),
        }
    }

    /// As [`Process::wait_for_line`]; `None` if the line never came.
    pub(crate) async fn find_line(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut output = self.output.subscribe();
        let find = |output: &Output| output.lines.iter().find(|line| wanted(line)).cloned();
        let settled = output.wait_for(|output| find(output).is_some() || output.exit.is_some());
        let settled = timeout(PATIENCE, settled).await.ok()?.ok()?;
        find(&settled)
    }

    /// Sends a signal by its short name: `"TERM"`, `"STOP"`, `"CONT"`, `"KILL"`. A child that has ended gets none.
    pub fn signal(&self, signal: &str) {
        if !self.has_exited() {
            signals::send(signal, &[self.pid]);
        }
    }

    /// Whether the child has ended.
    pub fn has_exited(&self) -> bool {
        self.output.borrow().exit.is_some()
    }

    /// Waits for the child to end by itself. `None` if a signal ended it.
    ///
    /// # Panics
    /// If it still runs after [`PATIENCE`].
    pub async fn wait_exit(&self) -> Option<i32> {
        let mut output = self.output.subscribe();
        let exited = timeout(PATIENCE, output.wait_for(|output| output.exit.is_some())).await;
        let Ok(Ok(output)) = exited else {
            panic!("{} does not end. It printed:\n{}", self.name, self.log())
        };
        output.exit.and_then(|status| status.code())
    }

    /// All lines as one text, with the end of the process.
    pub(crate) fn log(&self) -> String {
        let output = self.output.borrow();
        let end = match output.exit.map(|status| (status.code(), status.signal())) {
            None => "(still running)".to_owned(),
            Some((Some(code), _)) => format!("(ended with exit code {code})"),
            Some((None, signal)) => format!("(ended by signal {})", signal.unwrap_or_default()),
        };
        format!("{}\n{end}", output.lines.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(self.ending_signal);
        self.signal("CONT");
        if let Some(reaper) = self.reaper.take() {
            let _ = reaper.join();
        }
    }
}

/// Reads both streams to their end and takes the exit status. Threads and not tasks, because a shared server lives
/// longer than the runtime of the test that started it.
fn reap(mut child: Child, output: Arc<watch::Sender<Output>>, watchdog: Arc<Watchdog>) -> JoinHandle<()> {
    let stdout = child
        .stdout
        .take()
        .map(|stream| keep_lines(stream, Arc::clone(&output)));
    let stderr = child
        .stderr
        .take()
        .map(|stream| keep_lines(stream, Arc::clone(&output)));
    thread::spawn(move || {
        let status = child.wait();
        watchdog.forget();
        for reader in [stdout, stderr].into_iter().flatten() {
            let _ = reader.join();
        }
        output.send_modify(|output| output.exit = status.ok());
    })
}

fn keep_lines(stream: impl Read + Send + 'static, output: Arc<watch::Sender<Output>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            output.send_modify(|output| output.lines.push(text));
            line.clear();
        }
    })
}
