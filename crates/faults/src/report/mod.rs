//! The page that tells an operator what was tried and what came of it. The sentences stand here, the figures come from
//! the runs.

mod prose;
mod tables;

use std::fmt::Write as _;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::outcome::Outcome;
use crate::settings as s;
use crate::totals::Total;

/// What the figures were taken on.
pub(crate) struct Circumstances {
    /// Of the code.
    pub(crate) commit: String,
    /// Runs side by side.
    pub(crate) jobs: usize,
    /// Events a second.
    pub(crate) per_second: u32,
    /// All of it.
    pub(crate) took: Duration,
}

/// The whole page.
pub(crate) fn page(outcomes: &[Outcome], circumstances: &Circumstances) -> String {
    let total = Total::of(outcomes.iter());
    let mut page = String::new();
    let sections = [
        prose::HEAD.to_owned(),
        tables::headline(outcomes, &total),
        prose::run(&total),
        made_on(circumstances),
        prose::READING.to_owned(),
        tables::faults(outcomes),
        tables::pairs(outcomes),
        prose::SECOND_CALLS.to_owned(),
        tables::reasons(&total),
        tables::beyond(&total),
        prose::PROMISES.to_owned(),
        prose::REPEATING.to_owned(),
    ];
    for section in sections {
        let _ = writeln!(page, "{}\n", section.trim_end());
    }
    page.trim_end().to_owned() + "\n"
}

fn made_on(circumstances: &Circumstances) -> String {
    let Circumstances {
        commit,
        jobs,
        per_second,
        took,
    } = circumstances;
    let cores = available_parallelism().map_or(1, usize::from);
    let minutes = took.as_secs().div_ceil(60);
    let time = |time: Duration| humantime::format_duration(time).to_string();
    format!(
        "| | |\n|---|---|\n\
         | when, and what | {}, commit `{commit}`, `--release` |\n\
         | machine | {cores} virtual cores ({}), {}, shared by everything: provider, proxies, gateways, stores, target |\n\
         | stores | Redis {}, Postgres {} with `fsync = on` |\n\
         | a run | {} replicas (`receive`), {} workers (`work`), one `inbox` source with a timestamp in its signature, one \
         `forward` source with a ledger; {per_second} events a second, 10 of 100 sent to two replicas at once, 2 of 100 \
         calls answered 500 by the target |\n\
         | settings | claim and worker lease {}, claim wait {}, handler timeout {}, Redis limit {} and ledger limit {} (the defaults) |\n\
         | in all | {jobs} runs side by side, {minutes} minutes |",
        said_by("date", &["-u", "+%F"]),
        processor(),
        said_by("uname", &["-sr"]),
        version("redis-server", "v="),
        version("psql", "(PostgreSQL) "),
        s::REPLICAS,
        s::WORKERS,
        time(s::LEASE),
        time(s::CLAIM_WAIT),
        time(s::HANDLER_TIMEOUT),
        time(s::REDIS_LIMIT),
        time(s::LEDGER_LIMIT),
    )
}

/// What follows these words in a program's account of itself.
fn version(program: &str, after: &str) -> String {
    let said = said_by(program, &["--version"]);
    let version = said.split(after).nth(1).and_then(|rest| rest.split(' ').next());
    version.unwrap_or("unknown").to_owned()
}

fn processor() -> String {
    let table = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = table.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(": ")).map(|(_, name)| name);
    name.unwrap_or("unknown").to_owned()
}

/// The first line that a program says of itself.
fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or("unknown").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;
    use crate::oracle::judge;
    use crate::run::Run;

    #[test]
    fn a_page_tells_every_fault_that_was_run_and_no_other() {
        let run = |faults: &[Fault]| {
            let run = Run {
                faults: faults.to_vec(),
                seed: 1,
            };
            let judgement = judge(&crate::oracle::tests::good());
            Outcome::judged(run, judgement, Vec::new(), Duration::from_secs(1))
        };
        let outcomes = [
            run(&[Fault::RedisPaused]),
            run(&[Fault::LedgerDown]),
            run(&[Fault::LedgerDown, Fault::WorkerPaused]),
        ];
        let circumstances = Circumstances {
            commit: "abc".to_owned(),
            jobs: 1,
            per_second: 1,
            took: Duration::from_secs(1),
        };
        let page = page(&outcomes, &circumstances);
        for word in [
            "`redis-paused`",
            "`ledger-down`",
            "| `ledger-down+worker-paused` |",
            "`abc`",
        ] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(!page.contains("| `redis-flushed` |"), "{page}");
        assert!(page.contains("| events | 6 |"), "{page}");
    }
}
