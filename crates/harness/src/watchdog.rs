//! Sees to it that nothing outlives the test process. Rust drops no statics, and a killed process drops nothing at
//! all; a pipe, however, is closed by the kernel whatever happens. So a shell outside of us reads from a pipe, and
//! when that ends it kills what it was told to watch and removes the directory.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;

/// A shell that cleans up behind this process. It has a process group of its own, so that Ctrl-C does not reach it
/// before its work begins.
pub(crate) struct Watchdog {
    pipe: Mutex<Option<ChildStdin>>,
    shell: Child,
}

impl Watchdog {
    /// A watchdog that at the end removes `directory`, if one is given.
    pub(crate) fn start(directory: Option<&Path>) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .args(directory)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh can be run");
        let pipe = Mutex::new(shell.stdin.take());
        Self { pipe, shell }
    }

    /// From now on `pid` gets `signal` when we end.
    pub(crate) fn watch(&self, pid: u32, signal: &str) {
        self.tell(&format!("{pid} {signal}"));
    }

    /// The process has ended and was reaped: its number may soon belong to somebody else.
    pub(crate) fn forget(&self) {
        self.tell("0 0");
    }

    fn tell(&self, line: &str) {
        let mut pipe = self.pipe.lock().expect("nobody panics while writing a line");
        if let Some(pipe) = pipe.as_mut() {
            // A watchdog that somebody killed must not fail the test that it watches.
            let _ = writeln!(pipe, "{line}");
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.pipe
            .lock()
            .expect("nobody panics while writing a line")
            .take();
        let _ = self.shell.wait();
    }
}

/// A dying server may still write into the directory while it is removed, so that is tried until it is gone. The
/// process cannot be waited for: in a container without an init it stays a zombie, which looks alive.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pid=0
while read -r word rest; do pid=$word signal=$rest; done
[ "$pid" = 0 ] || { kill -s "$signal" "$pid"; kill -s CONT "$pid"; }
[ -n "$1" ] || exit 0
tries=0
until rm -rf -- "$1" || [ $tries -ge 100 ]; do tries=$((tries + 1)); sleep 0.1; done
"#;
