//! The configuration as an operator meets it: a file and an environment, `config check` and `config show`,
//! and errors that name the place and keep the secrets.

use hookgate_webhook::Provider;

use crate::command_line::{run, run_with_file};
use crate::embedded;
use crate::gateway::Replica;
use crate::provider::{self, SECRET};

const TWO_SHOPS: &str = r#"
handler = "inbox"
max_body_bytes = 5000
retry_base = "3s"

[sources.shop-eu]
provider = "shopify"
secrets = ["canary-eu-old", "canary-eu"]

[sources.shop-us]
provider = "shopify"
secrets = ["canary-us"]
max_body_bytes = 9000
"#;

#[tokio::test]
async fn a_file_can_name_two_sources_of_one_provider_and_each_has_its_own_secrets() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.toml");
    std::fs::write(&file, TWO_SHOPS).expect("the directory takes a file");
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("HOOKGATE_CONFIG", &file.display().to_string()),
        ("SHOP_US_WEBHOOK_SECRET", SECRET),
    ])
    .await;
    let event = provider::event(Provider::Shopify);
    let to = async |source: &str, secret: &str| {
        let signed = provider::sign(Provider::Shopify, secret, &event.event_id, &event.body);
        let mut headers = event.headers.clone();
        headers.truncate(event.headers.len() - signed.headers.len());
        headers.extend(signed.headers);
        replica.post(source, &headers, event.body.clone()).await
    };
    assert!(to("shop-eu", "canary-eu").await.is_ok(false));
    assert!(
        to("shop-eu", "canary-eu-old").await.is_ok(true),
        "the same event of the same source"
    );
    assert!(
        to("shop-us", SECRET).await.is_ok(false),
        "another source, another event"
    );
    assert_eq!(
        to("shop-us", "canary-us").await.error(),
        "bad_signature",
        "the environment wins"
    );
    assert_eq!(to("shop-us", "canary-eu").await.error(), "bad_signature");
    assert_eq!(to("shopify", SECRET).await.error(), "unknown_source");
    let large = vec![b' '; 7_000];
    assert_eq!(
        replica.post("shop-eu", &[], large.clone()).await.error(),
        "body_too_large"
    );
    assert_eq!(
        replica.post("shop-us", &[], large).await.error(),
        "missing_signature"
    );
}

#[tokio::test]
async fn show_prints_every_setting_with_its_origin_and_no_secret() {
    let settings = [
        ("HOOKGATE_RETRY_BASE", "7s"),
        ("REDIS_URL", "rediss://user:canary@redis.example:6379"),
        ("DATABASE_URL", "postgres://user:canary@db.example/canary"),
        (
            "HOOKGATE_TARGET_URL",
            "https://canary:canary@target.example/canary",
        ),
        ("HOOKGATE_TARGET_SECRET", SECRET),
        ("STRIPE_WEBHOOK_SECRET", "canary-one,canary-two"),
    ];
    let ran = run_with_file(&["config", "show"], TWO_SHOPS, &settings).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let line = |name: &str| {
        let found = ran
            .lines
            .iter()
            .find(|line| line.starts_with(&format!("{name} ")));
        found
            .unwrap_or_else(|| panic!("{name} is not shown: {ran:#?}"))
            .clone()
    };
    for setting in hookgate_gateway::config::setting::ALL {
        line(setting.name);
    }
    assert!(
        line("HOOKGATE_RETRY_BASE").contains("7s"),
        "the environment wins over the file"
    );
    let from_file = line("HOOKGATE_MAX_BODY_BYTES");
    assert!(
        from_file.contains("5000") && from_file.contains("hookgate.toml"),
        "{from_file}"
    );
    assert!(line("HOOKGATE_CLAIM_TTL").contains("default"));
    assert!(line("REDIS_URL").contains("rediss://(redacted)"));
    for source in ["shop-eu", "shop-us", "stripe"] {
        assert!(ran.text().contains(&format!("source {source}")), "{ran:#?}");
    }
    assert!(ran.text().contains("2 secret(s)"), "{ran:#?}");
    for secret in ["canary", "example", &SECRET[6..]] {
        assert!(!ran.text().contains(secret), "{secret} is shown: {ran:#?}");
    }
}

#[tokio::test]
async fn check_accepts_and_says_what_will_hurt_one_day() {
    let fine = run(&["config", "check"], &[("STRIPE_WEBHOOK_SECRET", SECRET)]).await;
    assert_eq!(fine.code, Some(0), "{fine:#?}");
    assert!(fine.text().contains("accepted: 1 source"), "{fine:#?}");

    let forward = [
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_HANDLER", "forward"),
        ("HOOKGATE_TARGET_URL", "http://127.0.0.1:1"),
    ];
    let advised = async |setting: (&str, &str), needles: &[&str]| {
        let settings = [&forward[..], &[setting]].concat();
        let ran = run(&["config", "check"], &settings).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let warning = ran
            .lines
            .iter()
            .find(|line| line.starts_with("warning: ") && needles.iter().all(|needle| line.contains(needle)));
        assert!(
            warning.is_some(),
            "{setting:?} earns no warning with {needles:?}: {ran:#?}"
        );
    };
    advised(
        ("HOOKGATE_HANDLER_TIMEOUT", "60s"),
        &["stripe", "HOOKGATE_HANDLER_TIMEOUT"],
    )
    .await;
    advised(("HOOKGATE_CLAIM_WAIT", "60s"), &["stripe", "HOOKGATE_CLAIM_WAIT"]).await;
    advised(
        ("HOOKGATE_CLAIM_LEASE", "1s"),
        &["stripe", "HOOKGATE_CLAIM_LEASE"],
    )
    .await;
    advised(("DATABASE_URL", "none"), &["development only"]).await;
    advised(("DATABASE_URL", "none"), &["stripe", "HOOKGATE_CLAIM_TTL"]).await;
    advised(("REDIS_URL", "redis://127.0.0.1:1"), &["SQLite", "DATABASE_URL"]).await;
    advised(
        ("DATABASE_URL", "postgres://gate:secret@127.0.0.1:6432/hookgate"),
        &["DATABASE_URL", "pooler", "session pooling"],
    )
    .await;
}

#[tokio::test]
async fn settings_that_contradict_each_other_are_refused_with_the_way_out() {
    let secrets = [
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("GITHUB_WEBHOOK_SECRET", SECRET),
    ];
    let refused = async |settings: &[(&str, &str)], needles: &[&str]| {
        let settings = [&secrets[..], settings].concat();
        for command in [&["serve"][..], &["config", "check"]] {
            let ran = run(command, &settings).await;
            assert_eq!(ran.code, Some(64), "{ran:#?}");
            let sentence = ran.sentence();
            assert!(
                needles.iter().all(|needle| sentence.contains(needle)),
                "{needles:?}: {sentence}"
            );
        }
    };
    refused(&[("DATABASE_URL", "none")], &["stripe", "inbox", "DATABASE_URL"]).await;
    refused(
        &[("HOOKGATE_HANDLER", "forward")],
        &["stripe", "HOOKGATE_TARGET_URL"],
    )
    .await;
    let forward = [
        ("HOOKGATE_HANDLER", "forward"),
        ("HOOKGATE_TARGET_URL", "http://127.0.0.1:1"),
        ("DATABASE_URL", "none"),
    ];
    refused(&forward, &["github", "never retries", "DATABASE_URL"]).await;
}

#[tokio::test]
async fn a_misspelt_key_is_refused_with_its_line() {
    let misspelt = [
        (
            "handler = 'inbox'\n\nhandeler = 'forward'\n",
            "line 3",
            "handeler",
        ),
        (
            "[sources.stripe]\nsecrets = ['canary']\nhandeler = 'inbox'\n",
            "sources.stripe",
            "handeler",
        ),
        ("[source.stripe]\nsecrets = ['canary']\n", "line 1", "source"),
    ];
    for (toml, place, key) in misspelt {
        let ran = run_with_file(&["config", "check"], toml, &[("STRIPE_WEBHOOK_SECRET", SECRET)]).await;
        assert_eq!(ran.code, Some(64), "{ran:#?}");
        let sentence = ran.sentence();
        assert!(sentence.contains(place) && sentence.contains(key), "{sentence}");
        assert!(sentence.contains("hookgate.toml"), "{sentence}");
        assert!(!sentence.contains("canary"), "{sentence}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_without_quoting_it() {
    let broken = [
        "redis_url = redis://user:canary@host\n",
        "a = 1\ntarget_secret = \"canary\n",
        "redis_url = 'canary' 'canary'\n",
        "[sources.stripe]\nsecrets = [canary]\n",
        "[sources.stripe]\nsecrets = 'canary'\n",
        "[sources.stripe]\nsecrets = [['canary']]\n",
        "[sources.stripe]\nsecrets = { a = 'canary' }\n",
        "[sources.stripe]\nsecrets = ['a']\ntarget_secret = ['canary']\n",
        "[sources.stripe]\nsecrets = ['a']\ntarget_url = 'canary'\n",
        "[sources.stripe]\nsecrets = ['a']\ntarget_url = 4242424242\n",
        "[sources.stripe]\nsecrets = ['a']\nhandler = 'canary'\n",
        "[sources.stripe]\nsecrets = ['a']\nhandler_timeout = 'canary'\n",
        "[sources.stripe]\nsecrets = ['a']\nmax_body_bytes = 'canary'\n",
        "sources = 'canary'\n",
        "[sources]\nstripe = 'canary'\n",
        "redis_url = 'canary'\nredis_url = 'canary'\n",
        "\u{0}canary",
    ];
    for toml in broken {
        let ran = run_with_file(&["config", "check"], toml, &[]).await;
        assert_eq!(ran.code, Some(64), "{toml:?}: {ran:#?}");
        assert_eq!(ran.lines.len(), 1, "{toml:?}: {ran:#?}");
        let sentence = ran.sentence();
        for secret in ["canary", "4242424242"] {
            assert!(!sentence.contains(secret), "{toml:?} is quoted: {sentence}");
        }
    }
    let ran = run(&["config", "check", "--config", "/nowhere/hookgate.toml"], &[]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains("/nowhere/hookgate.toml"), "{ran:#?}");
}

#[tokio::test]
async fn a_name_that_is_no_source_name_is_refused() {
    for name in ["'p:q'", "Shop", "'a b'", "'-a'", "unknown", "''"] {
        let toml = format!("[sources.{name}]\nprovider = 'stripe'\nsecrets = ['a']\n");
        let ran = run_with_file(&["config", "check"], &toml, &[]).await;
        assert_eq!(ran.code, Some(64), "{name}: {ran:#?}");
    }
    let toml = "[sources.shop]\nsecrets = ['a']\n";
    let ran = run_with_file(&["config", "check"], toml, &[]).await;
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    for provider in Provider::ALL {
        assert!(
            ran.sentence().contains(provider.name()),
            "the known providers are listed: {ran:#?}"
        );
    }
}

#[tokio::test]
async fn an_environment_with_bytes_that_are_no_text_does_not_matter_unless_it_is_ours() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let check = async |name: &str| {
        let mut command = crate::gateway::command(&["config", "check"]);
        command
            .env("STRIPE_WEBHOOK_SECRET", SECRET)
            .env(name, OsStr::from_bytes(b"\xff\xfe"));
        let process = hookgate_harness::Process::spawn(command);
        (process.wait_exit().await, process.lines().join("\n"))
    };
    let (code, text) = check("LESSOPEN").await;
    assert_eq!(code, Some(0), "{text}");
    for ours in ["HOOKGATE_LOG", "REDIS_URL", "GITHUB_WEBHOOK_SECRET"] {
        let (code, text) = check(ours).await;
        assert_eq!(code, Some(64), "{text}");
        assert!(text.contains(ours), "{text}");
    }
}
