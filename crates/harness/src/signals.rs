//! Signals to processes and their children, sent by the shell's own `kill`, which every system has and which needs no
//! unsafe code.

use std::process::{Command, Stdio};

/// Sends `signal` (`"TERM"`, `"STOP"`, …) to each process; those already gone are skipped.
pub(crate) fn send(signal: &str, pids: &[u32]) {
    let script = r#"signal=$1; shift; for pid; do kill -s "$signal" "$pid"; done"#;
    Command::new("sh")
        .args(["-c", script, "kill", signal])
        .args(pids.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .expect("sh can be run");
}

/// A process, first, and its children. Postgres puts each child into a session of its own, so that no process group
/// holds them together.
pub(crate) fn family(parent: u32) -> Vec<u32> {
    let table = Command::new("sh")
        .args(["-c", PROCESS_TABLE])
        .output()
        .expect("sh can be run")
        .stdout;
    let children = String::from_utf8_lossy(&table)
        .lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace().map(str::parse::<u32>);
            Some((columns.next()?.ok()?, columns.next()?.ok()?))
        })
        .filter_map(|(pid, its_parent)| (its_parent == parent).then_some(pid))
        .collect::<Vec<_>>();
    [vec![parent], children].concat()
}

/// Prints `pid ppid` lines: from `/proc` where there is one, since small Linux images have no `ps`.
const PROCESS_TABLE: &str = r#"
if [ -r /proc/self/status ]
then cat /proc/[0-9]*/status 2>/dev/null | awk '/^Pid:/ { pid = $2 } /^PPid:/ { print pid, $2 }'
else ps -A -o pid= -o ppid=
fi"#;
