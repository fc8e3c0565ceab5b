//! Without a secret nobody is let in: the start is refused, or the source does not exist. No request is ever
//! accepted unsigned.

use hookgate_webhook::Provider;

use crate::command_line::{Ran, run, run_with_file};
use crate::embedded::{self, Embedded};
use crate::gateway::Replica;
use crate::provider::{self, SECRET};

fn is_refused(ran: &Ran, naming: &str) {
    assert_eq!(ran.code, Some(64), "{ran:#?}");
    assert!(ran.sentence().contains(naming), "{naming} is not named: {ran:#?}");
}

#[tokio::test]
async fn no_secret_at_all_stops_the_start() {
    let commands: [&[&str]; 4] = [&["serve"], &["receive"], &["work"], &["config", "check"]];
    for command in commands {
        is_refused(&run(command, &[]).await, "STRIPE_WEBHOOK_SECRET");
    }
}

#[tokio::test]
async fn an_empty_or_blank_secret_stops_the_start_and_is_named() {
    let blanks = ["", " ", "\t\n", ",", "a,", ",a", "a,,b", " , "];
    for provider in Provider::ALL {
        let name = format!("{}_WEBHOOK_SECRET", provider.name().to_uppercase());
        for blank in blanks {
            is_refused(&run(&["serve"], &[(&name, blank)]).await, &name);
        }
    }
    for toml in [
        "[sources.stripe]\nsecrets = []\n",
        "[sources.stripe]\nsecrets = ['']\n",
        "[sources.stripe]\nsecrets = ['a', ' ']\n",
        "[sources.stripe]\n",
        "[sources.shop]\nprovider = 'shopify'\n",
    ] {
        let ran = run_with_file(&["serve"], toml, &[]).await;
        is_refused(
            &ran,
            if toml.contains("shopify") {
                "SHOP_WEBHOOK_SECRET"
            } else {
                "stripe"
            },
        );
    }
}

#[tokio::test]
async fn an_empty_missing_or_unreadable_secret_file_stops_the_start_and_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("the directory takes a file");
        path.display().to_string()
    };
    for path in [
        file("empty", ""),
        file("blank", "\n \n\t\n"),
        directory.path().join("missing").display().to_string(),
        directory.path().display().to_string(),
    ] {
        let ran = run(&["serve"], &[("STRIPE_WEBHOOK_SECRET_FILE", &path)]).await;
        is_refused(&ran, "STRIPE_WEBHOOK_SECRET_FILE");
    }
}

#[tokio::test]
async fn a_secret_that_its_scheme_cannot_use_stops_the_start_unseen() {
    for secret in ["whsec_c2hvcnQ=", "whsec_not-base-64-canary", "whpk_AAAA"] {
        let ran = run(&["serve"], &[("STANDARD_WEBHOOKS_WEBHOOK_SECRET", secret)]).await;
        is_refused(&ran, "standard_webhooks");
        assert!(!ran.text().contains(secret), "{ran:#?}");
    }
}

#[tokio::test]
async fn a_secret_file_holds_one_secret_a_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("secrets");
    std::fs::write(&path, format!("first-secret\n\n{SECRET}\n")).expect("the directory takes a file");
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("STRIPE_WEBHOOK_SECRET_FILE", &path.display().to_string()),
    ])
    .await;
    assert!(replica.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    let body = provider::stripe("evt_2").body;
    let first = provider::sign(Provider::Stripe, "first-secret", "", &body);
    assert!(replica.deliver(&first).await.is_ok(false));
}

#[tokio::test]
async fn only_sources_with_a_secret_exist() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
    ])
    .await;
    for provider in [Provider::Github, Provider::Shopify, Provider::StandardWebhooks] {
        let answer = replica.deliver(&provider::event(provider)).await;
        assert_eq!(
            (answer.status, answer.error()),
            (404, "unknown_source"),
            "{}",
            provider.name()
        );
    }
    assert!(
        replica
            .deliver(&provider::event(Provider::Stripe))
            .await
            .is_ok(false)
    );
}

#[tokio::test]
async fn nothing_unsigned_or_signed_with_an_empty_or_published_key_is_accepted() {
    let replica = Embedded::serve().await;
    for provider in [
        Provider::Stripe,
        Provider::Github,
        Provider::Shopify,
        Provider::StandardWebhooks,
    ] {
        let event = provider::event(provider);
        let source = event.source.as_str();
        let unsigned = replica.post(source, &[], event.body.clone()).await;
        assert_eq!(unsigned.error(), "missing_signature", "{source}");
        let published = provider.knowledge().dev_secrets[0];
        let signed = provider::sign(provider, published, &event.event_id, &event.body);
        let answer = replica.deliver(&signed).await;
        assert_eq!(
            answer.error(),
            "bad_signature",
            "{source}: dev secrets are for dev"
        );
    }
    // HMAC-SHA256 under the empty key over an empty body: what a check without a secret would compute.
    let empty = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
    let header = [("X-Hub-Signature-256".to_owned(), format!("sha256={empty}"))];
    assert_eq!(replica.post("github", &header, "").await.error(), "bad_signature");
    assert_eq!(replica.sql("SELECT count(*) FROM webhook_events").await, "0");
}
