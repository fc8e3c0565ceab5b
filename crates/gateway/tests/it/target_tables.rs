//! Targets that the configuration file names: what is accepted, and what is said of the rest.

use crate::command_line::{Ran, run_with_file};
use crate::provider::SECRET;

async fn check(toml: &str) -> Ran {
    run_with_file(&["config", "check"], toml, &[("STRIPE_WEBHOOK_SECRET", SECRET)]).await
}

#[tokio::test]
async fn sources_may_share_a_target_that_the_file_names() {
    let ran = check(
        "[targets.crm]\nurl = 'https://crm.example/hook'\nconcurrency = 4\nrate = 2.5\n\
         [sources.stripe]\ntarget = 'crm'\nconcurrency = 2\nretry_max_attempts = 9\nretry_base = '1m'\n",
    )
    .await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_target_is_said_in_one_sentence_that_keeps_its_secrets() {
    let secret_url = "url = 'https://canary:canary@crm.example/canary'";
    for (toml, names) in [
        ("[sources.stripe]\ntarget = 'crm'", "[targets.crm]"),
        (
            "[targets.crm]\n[sources.stripe]\ntarget = 'crm'",
            "url of [targets.crm]",
        ),
        (
            "[targets.crm]\nurl = 'ftp://canary'\n[sources.stripe]\ntarget = 'crm'",
            "url of [targets.crm]",
        ),
        (
            "[targets.default]\nurl = 'http://x'\n[sources.stripe]\ntarget = 'default'",
            "not default",
        ),
        (
            "[targets.'A B']\nurl = 'http://x'\n[sources.stripe]\ntarget = 'A B'",
            "lower-case",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\nrate = 0.0\n[sources.stripe]\ntarget = 'crm'",
            "rate of [targets.crm]",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\nconcurrency = 0\n[sources.stripe]\ntarget = 'crm'",
            "concurrency (a whole number from 1)",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\npath = '/canary'\n[sources.stripe]\ntarget = 'crm'",
            "it takes url, secret",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\nsecret = 'canary'\n[sources.stripe]\ntarget = 'crm'",
            "HOOKGATE_TARGET_SECRET of target crm",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\n[sources.stripe]\ntarget = 'crm'\ntarget_url = 'http://canary'",
            "only one of them",
        ),
        (
            "[targets.crm]\nurl = 'http://x'\n[sources.stripe]\ntarget = 'crm'\ntarget_secret = 'canary'",
            "[targets.crm]",
        ),
        (
            "[targets.stripe]\nurl = 'http://x'\n[sources.stripe]\ntarget_url = 'http://canary'\n\
             [sources.github]\nsecrets = ['canary']\ntarget = 'stripe'",
            "call the source or the [targets.NAME] table otherwise",
        ),
        ("[sources.stripe]\nconcurrency = 0", "concurrency"),
        ("[sources.stripe]\nretry_max_attempts = 0", "retry_max_attempts"),
        ("[sources.stripe]\nretry_base = 'soon'", "retry_base"),
        ("[sources.stripe]\nconsumer = 'nobody'", "consumer"),
        ("consumer = 'pull'", "HOOKGATE_CONSUME_TOKEN"),
        (
            "consumer = 'pull'\nhandler = 'forward'",
            "HOOKGATE_CONSUMER = pull",
        ),
    ] {
        let toml = toml.replace("url = 'http://x'", secret_url);
        let target = match toml.contains("forward") {
            true => format!("target_url = 'http://canary'\n{toml}"),
            false => toml,
        };
        let ran = check(&target).await;
        assert_eq!(ran.code, Some(64), "{target}: {ran:#?}");
        assert!(ran.sentence().contains(names), "{target}: {ran:#?}");
        assert!(!ran.text().contains("canary"), "{target}: {ran:#?}");
    }
}
