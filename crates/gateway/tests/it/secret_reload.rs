//! Reading secrets again: from where, what counts as other secrets, and that what cannot be used changes nothing.

use hookgate_webhook::Provider;

use crate::embedded::{self, Embedded};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, SECRET, Signed};
use crate::secret_file::{Mounted, SecretFile, hang_up, reloads, used};

const OTHER: &str = "whsec_b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXItb28=";

/// A fresh event, signed by this secret.
fn signed_by(provider: Provider, secret: &str) -> Signed {
    let event = provider::event(provider);
    let mut signed = provider::sign(provider, secret, &event.event_id, &event.body);
    signed
        .headers
        .splice(0..0, event.headers.into_iter().filter(unsigned));
    signed
}

fn unsigned(header: &(String, String)) -> bool {
    !header.0.to_ascii_lowercase().contains("signature") && !header.0.starts_with("webhook-")
}

async fn takes(replica: &Replica, secret: &str) -> bool {
    let answer = replica.deliver(&signed_by(Provider::Stripe, secret)).await;
    assert!(
        answer.is_ok(false) || answer.error() == "bad_signature",
        "{answer:?}"
    );
    answer.status == 200
}

#[tokio::test]
async fn a_mounted_secret_whose_link_is_swapped_is_noticed() {
    let mut mounted = Mounted::new(&[SECRET]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        (
            "STRIPE_WEBHOOK_SECRET_FILE",
            &mounted.path().display().to_string(),
        ),
        ("HOOKGATE_SECRET_POLL", "100ms"),
    ])
    .await;
    assert!(takes(&replica, SECRET).await);
    for (swaps, secrets) in [(1.0, &[OTHER, SECRET][..]), (2.0, &[OTHER])] {
        mounted.swap(secrets);
        until("the swap is noticed", async || {
            reloads(&replica, "changed").await == swaps
        })
        .await;
        assert!(takes(&replica, OTHER).await);
    }
    assert!(!takes(&replica, SECRET).await, "it has expired");
    assert_eq!(reloads(&replica, "failed").await, 0.0);
}

/// Contents that cannot be used, by what is wrong with them.
const USELESS: [(&str, &[u8]); 4] = [
    ("empty", b""),
    ("no text", b"\xff\xfe\x00canary\n"),
    ("blank", b"\n \n\t\n"),
    ("not of the scheme's form", b"whsec_canary-no-base-64\n"),
];

#[tokio::test]
async fn a_file_that_cannot_be_used_leaves_the_secrets_before_it_and_is_told_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = SecretFile::new(&directory, &[SECRET]);
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        (
            "STANDARD_WEBHOOKS_WEBHOOK_SECRET_FILE",
            &file.path().display().to_string(),
        ),
        ("HOOKGATE_SECRET_POLL", "100ms"),
    ])
    .await;
    let mut failed = 0.0;
    let mut fails = async |what: &str| {
        failed += 1.0;
        until(what, async || reloads(&replica, "failed").await == failed).await;
        let answer = replica
            .deliver(&signed_by(Provider::StandardWebhooks, SECRET))
            .await;
        assert!(answer.is_ok(false), "{what}: {answer:?}");
        let told = replica.lines_of_level("ERROR");
        assert_eq!(told.len() as f64, failed, "{what}: {told:#?}");
        let last = told.last().expect("a line");
        assert!(
            last.contains("STANDARD_WEBHOOKS_WEBHOOK_SECRET_FILE") || last.contains("secret 0"),
            "{what}: {last}"
        );
        assert!(last.contains("stay valid"), "{what}: {last}");
        assert!(!last.contains("canary"), "{what}: {last}");
    };
    for (what, content) in USELESS {
        file.replace_bytes(content);
        fails(what).await;
    }
    std::fs::remove_file(file.path()).expect("the file is there");
    fails("missing").await;
    std::fs::create_dir(file.path()).expect("the place is free");
    fails("a directory").await;
    std::fs::remove_dir(file.path()).expect("the directory is empty");
    fails("missing again").await;
    assert_eq!(reloads(&replica, "changed").await, 0.0);

    file.replace(&[OTHER]);
    until("the next good one counts", async || {
        reloads(&replica, "changed").await == 1.0
    })
    .await;
    let answer = replica
        .deliver(&signed_by(Provider::StandardWebhooks, OTHER))
        .await;
    assert!(answer.is_ok(false), "{answer:?}");
    let answer = replica
        .deliver(&signed_by(Provider::StandardWebhooks, SECRET))
        .await;
    assert_eq!(answer.error(), "bad_signature");
}

#[tokio::test]
async fn sighup_tells_what_came_of_it_each_time_and_counts_no_new_spelling_as_a_change() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = SecretFile::new(&directory, &[SECRET, OTHER]);
    let replica = Embedded::serve_from_file(&file, &[("HOOKGATE_SECRET_POLL", "off")]).await;
    for outcome in ["changed", "unchanged", "failed"] {
        let series = format!("hookgate_secret_reloads_total{{outcome=\"{outcome}\"}}");
        assert_eq!(replica.series().await.get(&series), Some(&0.0), "{outcome}");
    }
    assert_eq!(
        (used(&replica, 0).await, used(&replica, 1).await),
        (Some(0.0), Some(0.0))
    );
    assert!(takes(&replica, OTHER).await);
    file.replace_bytes(format!("\n  {SECRET}  \r\n\n{OTHER}").as_bytes());
    hang_up(&replica).await;
    assert_eq!(reloads(&replica, "unchanged").await, 1.0);
    assert_eq!(used(&replica, 1).await, Some(1.0), "nothing begins anew");
    file.replace_bytes(b"");
    for times in [1.0, 2.0] {
        hang_up(&replica).await;
        assert_eq!(reloads(&replica, "failed").await, times, "who asks is answered");
    }
    assert!(takes(&replica, SECRET).await && takes(&replica, OTHER).await);
    file.replace(&[OTHER]);
    hang_up(&replica).await;
    assert_eq!(reloads(&replica, "changed").await, 1.0);
    assert!(!takes(&replica, SECRET).await && takes(&replica, OTHER).await);
}

#[tokio::test]
async fn of_a_configuration_file_only_the_secrets_are_read_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (config, listed) = (
        directory.path().join("hookgate.toml"),
        directory.path().join("listed"),
    );
    let write = |text: &str| std::fs::write(&config, text).expect("the directory takes a file");
    write(&format!(
        "max_body_bytes = 5000\n[sources.stripe]\nsecrets = ['{SECRET}']\n"
    ));
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("HOOKGATE_CONFIG", &config.display().to_string()),
        ("HOOKGATE_SECRET_POLL", "off"),
    ])
    .await;
    write(&format!(
        "max_body_bytes = 1\n[sources.stripe]\nprovider = 'github'\nsecrets = ['{OTHER}']\n[sources.shopify]\nsecrets = ['{SECRET}']\n"
    ));
    hang_up(&replica).await;
    assert!(
        takes(&replica, OTHER).await,
        "as long a body as before, of the provider as before"
    );
    assert!(!takes(&replica, SECRET).await);
    let elsewhere = replica.deliver(&provider::event(Provider::Shopify)).await;
    assert_eq!(elsewhere.error(), "unknown_source", "no source comes");

    std::fs::write(&listed, SECRET).expect("the directory takes a file");
    write(&format!(
        "[sources.stripe]\nsecret_file = '{}'\n",
        listed.display()
    ));
    hang_up(&replica).await;
    assert!(
        takes(&replica, SECRET).await,
        "they may move to a file of their own"
    );
    for (number, text) in [
        "[sources.shopify]\nsecrets = ['x']\n",
        "not toml",
        "[sources.stripe]\nsecrets = [1]\n",
    ]
    .into_iter()
    .enumerate()
    {
        write(text);
        hang_up(&replica).await;
        assert_eq!(reloads(&replica, "failed").await, (number + 1) as f64, "{text}");
        assert!(takes(&replica, SECRET).await, "no source goes: {text}");
    }
}

#[tokio::test]
async fn no_role_is_ended_by_sighup() {
    for role in ["serve", "receive", "work", "sweep", "dev"] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = embedded::url(&directory.path().join("hookgate.db"));
        let settings = [
            ("DATABASE_URL", database.as_str()),
            ("STRIPE_WEBHOOK_SECRET", SECRET),
        ];
        let replica = Replica::start(role, &settings).await;
        hang_up(&replica).await;
        let lines = replica.process().lines().join("\n");
        assert!(lines.contains("nothing was read again"), "{role}: {lines}");
        assert_eq!(replica.admin("/readyz").await.0, 200, "{role} lives");
        assert_eq!(replica.stop().await, Some(0), "{role}");
    }
}
