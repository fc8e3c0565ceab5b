//! `cargo xtask faults`: builds the gateway and the fault suite, and runs the one on the other. The short form runs on
//! what `cargo xtask test` has built anyway; everything else on a release build, since its times are published.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds what the arguments ask for, and passes them on.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let short = arguments.iter().any(|argument| argument == "--short");
    let build: &[&str] = match short {
        // The same words as the check that builds all tests: other ones would choose other features.
        true => &["test", "--workspace", "--all-targets", "--no-run"],
        false => &[
            "build",
            "--release",
            "--bins",
            "-p",
            "hookgate-gateway",
            "-p",
            "hookgate-faults",
        ],
    };
    succeed(Command::new("cargo").args(build).current_dir(root))?;
    let mut suite = suite(root, if short { "debug" } else { "release" });
    succeed(suite.args(arguments).args(["--commit", &commit(root)]))
}

/// The short form on what is built already.
pub(crate) fn short(root: &Path) -> Command {
    let mut suite = suite(root, "debug");
    suite.arg("--short");
    suite
}

fn suite(root: &Path, profile: &str) -> Command {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let built = target.join(profile);
    let mut suite = Command::new(built.join("hookgate-faults"));
    suite
        .arg("--gateway")
        .arg(built.join("hookgate"))
        .current_dir(root);
    suite
}

/// The commit, and whether the code is the commit's.
fn commit(root: &Path) -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(root)
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    match git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty()) {
        true => commit,
        false => format!("{commit} with changes"),
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.stdin(Stdio::null()).status();
    let program = command.get_program().display();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program}: {status}")),
        Err(error) => Err(format!("{program} cannot be run: {error}")),
    }
}
