//! `hookgate dev`: a newcomer's first minute. What it prints is true and can be pasted.

use std::path::Path;

use hookgate_harness::Process;
use hookgate_webhook::Provider;

use crate::command_line::{run, run_in};
use crate::gateway::command;

/// Starts it as a newcomer does, but on free ports, and waits until it has said everything.
async fn dev(directory: &Path, settings: &[(&str, &str)]) -> Process {
    let mut command = command(&["dev"]);
    command
        .current_dir(directory)
        .env("HOOKGATE_LISTEN", "127.0.0.1:0")
        .env("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0")
        .envs(settings.iter().copied());
    let process = Process::spawn(command);
    process.wait_for_line(|line| line.contains("/readyz")).await;
    process
}

#[tokio::test]
async fn it_names_each_source_with_its_secret_and_what_it_proposes_works() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let process = dev(directory.path(), &[]).await;
    let lines = process.lines();
    for provider in Provider::ALL {
        let named = |line: &&String| line.contains(&format!("/webhooks/{} ", provider.name()));
        let line = lines.iter().find(named).expect("each source is named");
        assert!(line.contains("http://127.0.0.1:"), "{line}");
        assert!(line.contains(provider.knowledge().dev_secrets[0]), "{line}");
    }
    let proposed = lines.iter().find(|line| line.contains(" send stripe "));
    let words = proposed.expect("a command to paste").split_whitespace();
    let arguments: Vec<_> = words.skip(1).collect();
    let sent = run_in(directory.path(), &arguments, &[]).await;
    assert_eq!(sent.code, Some(0), "{sent:#?}");
    assert_eq!(sent.lines.len(), 2, "{sent:#?}");
    assert!(sent.lines[1].contains("\"duplicate\":true"), "{sent:#?}");
    assert!(
        directory.path().join("hookgate.db").exists(),
        "events are kept in a file here"
    );
    process.signal("TERM");
    assert_eq!(process.wait_exit().await, Some(0));
}

#[tokio::test]
async fn its_log_is_for_people_and_its_secrets_are_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let process = dev(directory.path(), &[("STRIPE_WEBHOOK_SECRET", "canary-of-mine")]).await;
    let text = process.lines().join("\n");
    assert!(!text.contains("canary-of-mine"), "{text}");
    assert!(text.contains("(yours)"), "{text}");
    assert!(!text.lines().any(|line| line.starts_with('{')), "{text}");
}

#[tokio::test]
async fn it_never_listens_beyond_this_machine() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"] {
        let ran = run(&["dev"], &[("HOOKGATE_LISTEN", listen)]).await;
        assert_eq!(ran.code, Some(64), "{ran:#?}");
        let sentence = ran.sentence();
        assert!(
            sentence.contains("HOOKGATE_LISTEN") && sentence.contains(listen),
            "{sentence}"
        );
        assert!(sentence.contains("loopback"), "{sentence}");
    }
}

#[tokio::test]
async fn a_port_in_use_is_said_in_one_sentence() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken
        .local_addr()
        .expect("a bound listener has an address")
        .to_string();
    let settings = [
        ("HOOKGATE_LISTEN", address.as_str()),
        ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0"),
    ];
    let ran = run(&["dev"], &settings).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.sentence().contains(&address), "{ran:#?}");
}
