//! `hookgate send`: signed events from the command line, for a first try and for a smoke test.

use hookgate_webhook::{Provider, Success};

use crate::command_line::{Ran, run};
use crate::embedded::{self, Embedded};
use crate::gateway::Replica;
use crate::provider::SECRET;

async fn send(replica: &Embedded, source: &str, arguments: &[&str]) -> Ran {
    let url = format!("http://{}", replica.public());
    let secret = format!("{}_WEBHOOK_SECRET", source.to_uppercase());
    let arguments = [&["send", source, "--url", &url], arguments].concat();
    run(&arguments, &[(&secret, SECRET)]).await
}

#[tokio::test]
async fn what_it_sends_is_accepted_for_every_type_of_every_provider() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = embedded::url(&directory.path().join("hookgate.db"));
    let replica = Replica::start("dev", &[("DATABASE_URL", &database)]).await;
    let url = format!("http://{}", replica.public());
    for provider in Provider::ALL {
        let wanted = match provider.knowledge().success {
            Success::Ok | Success::OkAccepted => "200 {",
            Success::NoContent => "204 ",
        };
        for event_type in provider.sample_types() {
            let before = replica.deliveries(provider.name(), "accepted").await;
            let arguments = ["send", provider.name(), "--url", &url, "--type", event_type];
            let ran = run(&arguments, &[]).await;
            assert_eq!(ran.code, Some(0), "{ran:#?}");
            assert!(format!("{} ", ran.lines[0]).starts_with(wanted), "{ran:#?}");
            let accepted = replica.deliveries(provider.name(), "accepted").await;
            assert!(accepted > before, "{} {event_type}", provider.name());
        }
    }
}

#[tokio::test]
async fn twice_sends_a_copy_and_count_sends_others() {
    let replica = Embedded::serve().await;
    let ran = send(&replica, "stripe", &["--twice", "--count", "3"]).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let duplicate: Vec<_> = ran
        .lines
        .iter()
        .map(|line| line.contains("\"duplicate\":true"))
        .collect();
    assert_eq!(duplicate, [false, true, false, true, false, true], "{ran:#?}");
    assert_eq!(replica.deliveries("stripe", "accepted").await, 3.0);
    assert_eq!(replica.deliveries("stripe", "duplicate").await, 3.0);
}

#[tokio::test]
async fn an_unknown_type_is_answered_with_the_list_and_an_unknown_provider_too() {
    let ran = run(&["send", "stripe", "--type", "no.such.type"], &[]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    for event_type in Provider::Stripe.sample_types() {
        assert!(ran.sentence().contains(event_type), "{ran:#?}");
    }
    let ran = run(&["send", "nobody"], &[]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    for provider in Provider::ALL {
        assert!(ran.sentence().contains(provider.name()), "{ran:#?}");
    }
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_said_in_one_sentence() {
    let ran = run(&["send", "stripe", "--url", "http://127.0.0.1:1"], &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.sentence().contains("http://127.0.0.1:1/webhooks/stripe"),
        "{ran:#?}"
    );
    assert!(ran.sentence().contains("hookgate dev"), "{ran:#?}");
    assert_eq!(ran.lines.len(), 1, "{ran:#?}");
}

#[tokio::test]
async fn a_refusal_is_shown_and_fails_the_command() {
    let replica = Embedded::serve().await;
    let url = replica.url("stripe");
    let ran = run(&["send", "stripe", "--url", &url], &[]).await;
    assert_eq!(
        ran.code,
        Some(1),
        "the dev secret is not this gateway's: {ran:#?}"
    );
    let answer = ran.lines.iter().find(|line| line.starts_with("400 "));
    assert!(
        answer.is_some_and(|line| line.contains("bad_signature")),
        "{ran:#?}"
    );
    assert!(
        ran.sentence().contains("not what the provider takes for success"),
        "{ran:#?}"
    );
}

#[tokio::test]
async fn the_secret_may_stand_in_a_file_and_the_provider_beside_the_source() {
    let replica = Embedded::serve().await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("the directory takes a file");
    let (url, file) = (replica.url("github"), file.display().to_string());
    let arguments = [
        "send",
        "hub",
        "--provider",
        "github",
        "--secret-file",
        &file,
        "--url",
        &url,
    ];
    let ran = run(&arguments, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let missing = [
        "send",
        "stripe",
        "--secret-file",
        "/nowhere/secret",
        "--url",
        &url,
    ];
    let ran = run(&missing, &[]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains("/nowhere/secret"), "{ran:#?}");
}
