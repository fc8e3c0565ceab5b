//! The suite's command line. What it does at length is run by `cargo xtask faults`; that these tests exist makes cargo
//! build the binary among the tests.

use std::process::Command;

#[test]
fn a_fault_that_there_is_not_is_refused_with_the_names_of_those_that_there_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_hookgate-faults"))
        .args(["--gateway", "/nowhere", "--fault", "bad-luck"])
        .output()
        .expect("the suite can be run");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("\"bad-luck\"") && said.contains("redis-paused"),
        "{said}"
    );
}
