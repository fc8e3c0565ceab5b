//! The checks in the order a reader of the log wants them: what fails fast comes first. All of them run, whatever
//! fails, so that one run shows everything there is to mend.
//!
//! Clippy and rustdoc share one set of compiled dependencies, build and tests the other. Every step names the whole
//! workspace: another choice of packages would choose other features and compile the dependencies once more.
//! Benches run once in the test profile, to prove that they work; what they measure there means nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{faults, setup, tidy};

/// A check that is one run of cargo.
struct CargoCheck {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const CARGO_CHECKS: [CargoCheck; 5] = [
    CargoCheck {
        name: "lints",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
        environment: &[],
    },
    CargoCheck {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps", "--document-private-items"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    CargoCheck {
        name: "build",
        arguments: &["test", "--workspace", "--all-targets", "--no-run"],
        environment: &[],
    },
    CargoCheck {
        name: "tests",
        arguments: &["test", "--workspace", "--all-targets", "--no-fail-fast"],
        environment: &[],
    },
    CargoCheck {
        name: "examples in the documentation",
        arguments: &["test", "--workspace", "--doc", "--no-fail-fast"],
        environment: &[],
    },
];

/// What the checks have found so far. A check other than a test counts only when it fails.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
}

/// Runs everything. The last line printed is `N passed, N failed`.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    let mut check = |name: &'static str, run: &mut dyn FnMut(&mut Tally) -> Result<(), String>| {
        println!("\n==> {name}");
        let (begun, failed_before) = (Instant::now(), tally.failed);
        let outcome = run(&mut tally);
        report(name, &outcome, begun.elapsed());
        if outcome.is_err() {
            tally.failed += u64::from(tally.failed == failed_before);
            failures.push(name);
        }
    };
    check("setup", &mut |_| setup::run());
    check("formatting", &mut |_| {
        cargo(root, &["fmt", "--all", "--check"], &[], &mut Tally::default())
    });
    check("house rules", &mut |_| tidy::run(root));
    for CargoCheck {
        name,
        arguments,
        environment,
    } in CARGO_CHECKS
    {
        check(name, &mut |tally| cargo(root, arguments, environment, tally));
    }
    // Last, so that nothing else keeps the machine from it.
    check("every fault once", &mut |tally| {
        run_counted(&mut faults::short(root), "the fault suite", tally)
    });
    conclude(&tally, &failures)
}

fn report(name: &str, outcome: &Result<(), String>, took: Duration) {
    let seconds = took.as_secs_f64();
    match outcome {
        Ok(()) => println!("{name}: ok ({seconds:.1} s)"),
        Err(why) => println!("{why}\n{name}: FAILED ({seconds:.1} s)"),
    }
}

fn conclude(tally: &Tally, failures: &[&str]) -> Result<(), String> {
    println!();
    if !failures.is_empty() {
        println!("failed: {}", failures.join(", "));
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if failures.is_empty() {
        Ok(())
    } else {
        Err("not all checks passed".to_owned())
    }
}

/// Runs cargo, passes its output through, and counts the results of the tests in it.
fn cargo(
    root: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
    tally: &mut Tally,
) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root);
    run_counted(&mut command, &format!("`cargo {}`", arguments.join(" ")), tally)
}

/// Runs a program, passes its output through, and counts the results of the tests in it.
fn run_counted(command: &mut Command, name: &str, tally: &mut Tally) -> Result<(), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name} cannot be run: {error}"))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            println!("{line}");
            tally.count(&line);
        }
    }
    let status = child
        .wait()
        .map_err(|error| format!("{name} cannot be waited for: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {status}"))
    }
}

impl Tally {
    /// Adds a line such as `test result: ok. 7 passed; 0 failed; 1 ignored; …`; other lines count nothing.
    fn count(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let (_, counts) = result.split_once(". ").unwrap_or_default();
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse::<u64>().unwrap_or_default(),
                Some((number, "failed")) => self.failed += number.parse::<u64>().unwrap_or_default(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_test_programs_are_added() {
        let mut tally = Tally::default();
        for line in [
            "running 8 tests",
            "test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 20 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 5.52s",
        ] {
            tally.count(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 27,
                failed: 3
            }
        );
    }

    #[test]
    fn a_check_that_failed_fails_the_run() {
        assert!(conclude(&Tally { passed: 9, failed: 0 }, &[]).is_ok());
        assert!(conclude(&Tally { passed: 9, failed: 1 }, &["lints"]).is_err());
    }

    #[test]
    fn cargo_s_failure_is_ours() {
        let tally = &mut Tally::default();
        assert!(cargo(crate::root(), &["--version"], &[], tally).is_ok());
        assert!(cargo(crate::root(), &["no-such-command"], &[], tally).is_err());
    }
}
