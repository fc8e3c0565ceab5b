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
async fn diagnosed(delivery: &Signed, secret: &str) -> Ran {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let headers = delivery
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers = format!("POST /webhooks/x HTTP/1.1\r\n{}\r\n", headers.collect::<String>());
    std::fs::write(directory.path().join("headers"), headers).expect("the directory takes a file");
    std::fs::write(directory.path().join("body"), &delivery.body).expect("the directory takes a file");
    let name = format!("{}_WEBHOOK_SECRET", delivery.source.to_uppercase());
    let arguments = [
        "verify",
        "--source",
        &delivery.source,
        "--headers",
        "headers",
        "--body",
        "body",
    ];
    run_in(directory.path(), &arguments, &[(&name, secret)]).await
}

#[tokio::test]
async fn a_saved_delivery_that_is_good_is_said_to_be_so() {
    for provider in Provider::ALL {
        let event = provider::event(provider);
        let ran = diagnosed(&event, SECRET).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.text().contains(&event.event_id), "{ran:#?}");
    }
}

#[tokio::test]
async fn a_saved_delivery_that_fails_is_said_why_and_what_would_have_passed() {
    for provider in Provider::ALL {
        let mut event = provider::event(provider);
        event.body.insert(1, b' ');
        let ran = diagnosed(&event, SECRET).await;
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.sentence().starts_with("bad_signature: "), "{ran:#?}");
        // What it proposes is accepted: the headers that a holder of the secret would have sent.
        let mut mended = event.clone();
        mended
            .headers
            .retain(|(name, _)| !ran.text().contains(&format!("  {name}: ")));
        assert!(mended.headers.len() < event.headers.len(), "{ran:#?}");
        let proposed = ran
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
        mended
            .headers
            .extend(proposed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let ran = diagnosed(&mended, SECRET).await;
        assert_eq!(ran.code, Some(0), "{}: {ran:#?}", provider.name());
    }
}

#[tokio::test]
async fn a_body_that_an_editor_or_a_proxy_changed_is_recognised() {
    let saved = provider::stripe("evt_1");
    let mut newline = saved.clone();
    newline.body.push(b'\n');
    let ran = diagnosed(&newline, SECRET).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.text().contains("line break"), "{ran:#?}");

    let stale = provider::sign_at(Provider::Stripe, SECRET, "", &saved.body, provider::now() - 3_600);
    let ran = diagnosed(&stale, SECRET).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.sentence().starts_with("stale_timestamp: "), "{ran:#?}");
    assert!(
        ran.text().contains("secret 0 matches"),
        "the signature itself is good: {ran:#?}"
    );

    let mut unsigned = saved;
    unsigned.headers.clear();
    let ran = diagnosed(&unsigned, SECRET).await;
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.sentence().starts_with("missing_signature: "), "{ran:#?}");
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
