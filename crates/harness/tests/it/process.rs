//! A child process that is listened to, signalled and waited for.

use std::process::Command;

use hookgate_harness::Process;

fn sh(script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("GREETING", "hello");
    Process::spawn(command)
}

#[tokio::test]
async fn a_line_is_waited_for_on_both_streams() {
    let process = sh("echo $GREETING; echo warning >&2; exec sleep 60");
    assert_eq!(
        process.wait_for_line(|line| line.starts_with("hel")).await,
        "hello"
    );
    assert_eq!(
        process.wait_for_line(|line| line.starts_with("warn")).await,
        "warning"
    );
    assert_eq!(process.lines().len(), 2);
}

#[tokio::test]
async fn the_exit_code_is_told() {
    assert_eq!(sh("exit 64").wait_exit().await, Some(64));
}

#[tokio::test]
async fn a_child_can_answer_a_signal() {
    let process = sh("trap 'echo draining; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    process.wait_for_line(|line| line == "ready").await;
    process.signal("TERM");
    assert_eq!(process.wait_exit().await, Some(0));
    assert_eq!(process.lines().last().unwrap(), "draining");
}

#[tokio::test]
async fn a_killed_child_has_no_exit_code() {
    let process = sh("exec sleep 60");
    process.signal("KILL");
    assert_eq!(process.wait_exit().await, None);
    assert!(process.has_exited());
}

#[tokio::test]
#[should_panic(expected = "the last words")]
async fn a_line_that_never_comes_shows_what_was_said() {
    sh("echo the last words")
        .wait_for_line(|line| line == "ready")
        .await;
}
