//! `hookgate verify`: verdicts on saved deliveries, for machines and for somebody whose signature fails.

use std::path::{Path, PathBuf};

use hookgate_webhook::Provider;
use serde_json::Value;

use crate::command_line::{Ran, run, run_in};
use crate::provider::{self, SECRET, Signed};

fn vectors(provider: Provider) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../webhook/tests/vectors");
    directory.join(format!("{}.jsonl", provider.name()))
}

/// Every file of recordings.
fn all_vectors() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../webhook/tests/vectors");
    let files = std::fs::read_dir(directory).expect("the vectors are there");
    let paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    assert!(paths.len() > 20, "one file a provider: {paths:?}");
    paths
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).expect("a vector is JSON"))
        .collect()
}

#[tokio::test]
async fn every_published_vector_gets_the_verdict_it_expects() {
    for path in all_vectors() {
        let ran = run(&["verify", "--jsonl", &path.display().to_string()], &[]).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let vectors = lines(&path);
        assert_eq!(ran.lines.len(), vectors.len(), "one verdict a line");
        for (verdict, vector) in ran.lines.iter().zip(&vectors) {
            assert!(verdict.starts_with(r#"{"name":"#), "{verdict}");
            let verdict: Value = serde_json::from_str(verdict).expect("a verdict is JSON");
            assert_eq!(verdict["name"], vector["name"]);
            assert_eq!(verdict["verdict"], vector["expect"], "{}", vector["name"]);
            for field in ["event_id", "event_type", "object_id", "event_time"] {
                assert_eq!(verdict[field], vector[field], "{field} of {}", vector["name"]);
            }
            assert_eq!(verdict.as_object().map(serde_json::Map::len), Some(6));
        }
    }
}

#[tokio::test]
async fn a_vector_that_differs_from_its_expectation_is_named_with_its_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("mutated.jsonl");
    let mut vectors = lines(&vectors(Provider::Stripe));
    let changed = vectors
        .iter()
        .position(|vector| vector["expect"] == "ok" && vector["now"].is_number())
        .expect("a good vector");
    vectors[changed]["body_b64"] = "e30=".into();
    let text: String = vectors.iter().map(|vector| format!("{vector}\n")).collect();
    std::fs::write(&path, text).expect("the directory takes a file");
    let ran = run(&["verify", "--jsonl", &path.display().to_string()], &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let sentence = ran.sentence();
    assert!(sentence.contains(&format!("line {}", changed + 1)), "{sentence}");
    assert!(
        sentence.contains(vectors[changed]["name"].as_str().expect("a name")),
        "{sentence}"
    );
    let verdicts: Vec<_> = ran.lines.iter().filter(|line| line.starts_with('{')).collect();
    assert_eq!(verdicts.len(), vectors.len(), "the others are judged too");
    assert!(
        verdicts[changed].contains("bad_signature"),
        "{}",
        verdicts[changed]
    );
}

#[tokio::test]
async fn a_line_that_is_no_vector_is_named_without_its_secret() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("broken.jsonl");
    let good = lines(&vectors(Provider::Github)).swap_remove(0);
    let with = |field: &str, value: Value| {
        let mut vector = good.clone();
        vector[field] = value;
        vector.to_string()
    };
    let broken = [
        "no JSON".to_owned(),
        "{}".to_owned(),
        with("provider", "nobody".into()),
        with("body_b64", "not base64".into()),
        with("secrets", "whsec_canary".into()),
        with("secrets", vec![""].into()),
    ];
    for line in broken {
        std::fs::write(&path, format!("{good}\n\n{line}\n")).expect("the directory takes a file");
        let ran = run(&["verify", "--jsonl", &path.display().to_string()], &[]).await;
        assert_eq!(ran.code, Some(1), "{line}: {ran:#?}");
        assert!(ran.sentence().contains("line 3"), "{line}: {ran:#?}");
        assert!(!ran.sentence().contains("canary"), "{ran:#?}");
    }
    let ran = run(&["verify", "--jsonl", "/nowhere/vectors.jsonl"], &[]).await;
    assert_ne!(ran.code, Some(0));
    assert!(ran.sentence().contains("/nowhere/vectors.jsonl"), "{ran:#?}");
}

/// Saves a delivery as two files and asks about it.
async fn diagnosed(delivery: &Signed, secret: &str, options: &[&str]) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &[u8]| {
        std::fs::write(directory.path().join(name), text).expect("the directory takes a file");
    };
    write("headers", head(delivery).as_bytes());
    write("body", &delivery.body);
    let files = ["--headers", "headers", "--body", "body"];
    ask(directory.path(), delivery, secret, &[&files, options].concat()).await
}

fn head(delivery: &Signed) -> String {
    let headers = delivery.headers.iter();
    let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("POST /webhooks/x HTTP/1.1\r\n{}\r\n", headers.collect::<String>())
}

async fn ask(directory: &Path, delivery: &Signed, secret: &str, options: &[&str]) -> Ran {
    let name = format!("{}_WEBHOOK_SECRET", delivery.source.to_uppercase());
    let arguments = [&["verify", "--source", &delivery.source], options].concat();
    run_in(directory, &arguments, &[(&name, secret)]).await
}

#[tokio::test]
async fn a_saved_delivery_that_is_good_is_said_to_be_so() {
    let event = provider::stripe("evt_1");
    let ran = diagnosed(&event, SECRET, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let first = &ran.lines[0];
    let good = "The signature is good: secret 0 of 1 fits; event evt_1 (invoice.paid); it stays good for ";
    assert!(first.starts_with(good), "{ran:#?}");
    assert!(!ran.text().contains("Stripe-Signature: "), "{ran:#?}");
}

#[tokio::test]
async fn a_delivery_that_fails_is_said_why_in_the_first_line_and_costs_exit_code_1() {
    let mut event = provider::stripe("evt_1");
    event.body.push(b'\n');
    let ran = diagnosed(&event, SECRET, &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert_eq!(
        ran.lines[0],
        "The signature fits secret 0 and the body without the line break at its end: keep the body byte for byte, on its \
         way here and when it is saved."
    );
    assert!(ran.text().contains("verdict  bad_signature"), "{ran:#?}");
    assert_eq!(ran.sentence(), "", "it is said once");

    event.headers.clear();
    let ran = diagnosed(&event, SECRET, &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.lines[0].starts_with("The Stripe-Signature header is missing: "),
        "{ran:#?}"
    );
}

#[tokio::test]
async fn headers_that_would_pass_are_printed_on_request_alone_and_pass() {
    for provider in [
        Provider::Stripe,
        Provider::Github,
        Provider::Shopify,
        Provider::StandardWebhooks,
    ] {
        let mut event = provider::event(provider);
        event.body.insert(1, b' ');
        let ran = diagnosed(&event, SECRET, &[]).await;
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(!ran.text().contains("would pass for this body"), "{ran:#?}");
        let ran = diagnosed(&event, SECRET, &["--sign"]).await;
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        let mut lines = ran.lines.iter();
        lines
            .find(|line| line.starts_with("these headers would pass"))
            .expect("they are announced");
        for (name, value) in lines.filter_map(|line| line.strip_prefix("  ")?.split_once(": ")) {
            event.headers.retain(|(own, _)| own != name);
            event.headers.push((name.to_owned(), value.to_owned()));
        }
        let ran = diagnosed(&event, SECRET, &[]).await;
        assert_eq!(ran.code, Some(0), "{}: {ran:#?}", provider.name());
    }
}

#[tokio::test]
async fn a_saved_delivery_can_be_judged_at_the_time_when_it_came() {
    let body = provider::stripe("evt_1").body;
    let stale = provider::sign_at(Provider::Stripe, SECRET, "", &body, 1_790_000_010);
    let ran = diagnosed(&stale, SECRET, &["--at", "1790003610"]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let old =
        "The signature fits secret 0, but it was made 3600 s before this moment, where 300 s are allowed: ";
    assert!(ran.lines[0].starts_with(old), "{ran:#?}");
    for at in ["1790000010", "2026-09-21T14:13:30Z"] {
        let ran = diagnosed(&stale, SECRET, &["--at", at]).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.lines[0].ends_with("it stays good for 300 s."), "{ran:#?}");
    }
    let ran = diagnosed(&stale, SECRET, &["--at", "yesterday"]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains("yesterday"), "{ran:#?}");
}

#[tokio::test]
async fn a_whole_request_and_what_curl_printed_are_read_as_well() {
    let event = provider::event(Provider::Github);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &[u8]| {
        std::fs::write(directory.path().join(name), text).expect("the directory takes a file");
    };
    write("request", &[head(&event).as_bytes(), &event.body].concat());
    let curl: String = head(&event).lines().map(|line| format!("> {line}\n")).collect();
    write(
        "curl",
        format!("* Connected: yes\n{curl}< HTTP/1.1 200 OK\n< X-Hub-Signature-256: no\n").as_bytes(),
    );
    write("body", &event.body);
    for options in [
        &["--request", "request"][..],
        &["--headers", "curl", "--body", "body"],
    ] {
        let ran = ask(directory.path(), &event, SECRET, options).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.lines[0].contains(&event.event_id), "{ran:#?}");
    }
    let wrong = [
        &["--headers", "curl"][..],
        &["--body", "body"],
        &["--request", "request", "--headers", "curl", "--body", "body"],
        &["--request", "nowhere"],
        &["--request", "body"],
        &[],
    ];
    for options in wrong {
        let ran = ask(directory.path(), &event, SECRET, options).await;
        assert_eq!(ran.code, Some(64), "{options:?}: {ran:#?}");
    }
}

#[tokio::test]
async fn a_diagnosis_as_json_has_a_word_for_the_cause_and_no_secret() {
    let mut event = provider::stripe("evt_1");
    let ran = diagnosed(&event, SECRET, &["--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let good: Value = serde_json::from_str(&ran.lines[0]).expect("it is JSON");
    assert_eq!(good["ok"], true);
    assert_eq!(good["events"][0]["id"], "evt_1");
    assert_eq!(good["events"][0]["type"], "invoice.paid");
    event.source = "github".to_owned();
    let ran = diagnosed(&event, "another secret", &["--json"]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let bad: Value = serde_json::from_str(&ran.lines[0]).expect("it is JSON");
    assert_eq!((&bad["ok"], &bad["secret"]), (&Value::Bool(false), &Value::Null));
    assert_eq!(bad["cause"], "looks_like_other_provider");
    assert_eq!(bad["refusal"], "missing_signature");
    assert_eq!(bad["body_bytes"], event.body.len());
    assert!(!ran.text().contains("another secret"), "{ran:#?}");
}

#[tokio::test]
async fn a_delivery_for_another_source_of_the_configuration_is_told_which() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let event = provider::sign(Provider::Github, "of the eu", "", br#"{"a":1}"#);
    let toml = "[sources.github]\nsecrets = [\"of the us\"]\n\
                [sources.github-eu]\nprovider = \"github\"\nsecrets = [\"of the eu\"]\n";
    let request = [head(&event).as_bytes(), &event.body].concat();
    std::fs::write(directory.path().join("request"), request).expect("the directory takes a file");
    std::fs::write(directory.path().join("hookgate.toml"), toml).expect("the directory takes a file");
    let arguments = [
        "verify",
        "--source",
        "github",
        "--request",
        "request",
        "--config",
        "hookgate.toml",
    ];
    let ran = run_in(directory.path(), &arguments, &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.lines[0].starts_with("The signature fits secret 0 of source github-eu: "),
        "{ran:#?}"
    );
}

#[tokio::test]
async fn a_source_that_is_not_configured_is_a_usage_error() {
    let ran = run(
        &["verify", "--source", "github", "--headers", "h", "--body", "b"],
        &[("STRIPE_WEBHOOK_SECRET", SECRET)],
    )
    .await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains("github"), "{ran:#?}");
}
