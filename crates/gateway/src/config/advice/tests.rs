//! Which settings earn which advice.

use std::collections::BTreeMap;

use super::{Weight, advice};
use crate::config::{Config, Reader};

const STRIPE: (&str, &str) = ("STRIPE_WEBHOOK_SECRET", "whsec_some_secret_of_its_own");
const GITHUB: (&str, &str) = ("GITHUB_WEBHOOK_SECRET", "another secret of its own");
const SHOPIFY: (&str, &str) = ("SHOPIFY_WEBHOOK_SECRET", "a third secret of its own");
const TARGET: (&str, &str) = ("HOOKGATE_TARGET_URL", "https://canary-host.example/canary-path");
const SIGNED: (&str, &str) = (
    "HOOKGATE_TARGET_SECRET",
    "whsec_dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=",
);
const FORWARD: (&str, &str) = ("HOOKGATE_HANDLER", "forward");
const REDIS: (&str, &str) = ("REDIS_URL", "redis://canary-user:canary-word@canary-host:6379");
const POSTGRES: (&str, &str) = (
    "DATABASE_URL",
    "postgres://canary-user:canary-word@canary-host/gate",
);
const NO_LEDGER: (&str, &str) = ("DATABASE_URL", "none");

/// Short of what a default forward takes, so that other advice stands alone.
const QUICK: (&str, &str) = ("HOOKGATE_HANDLER_TIMEOUT", "1s");

/// As long as anybody can send anything again.
const LONG: (&str, &str) = ("HOOKGATE_CLAIM_TTL", "31d");

/// The settings earn exactly this: for each sentence its weight and what stands in it.
fn check(settings: &[(&str, &str)], expected: &[(Weight, &[&str])]) {
    let env: BTreeMap<_, _> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let reader = Reader::new(env, None).expect("no file is read");
    let config = Config::read(&reader, false).expect("the settings are accepted");
    let found = advice(&config);
    for advice in &found {
        for (name, value) in settings {
            let shown = ["HOOKGATE_", "REDIS_URL", "DATABASE_URL"]
                .iter()
                .any(|known| name.starts_with(known));
            assert!(
                shown || !advice.sentence.contains(value),
                "{advice:?} shows a secret"
            );
        }
        assert!(!advice.sentence.contains("canary"), "{advice:?} shows an address");
    }
    assert_eq!(found.len(), expected.len(), "{settings:?} earn {found:#?}");
    for (advice, (weight, needles)) in found.iter().zip(expected) {
        assert_eq!(advice.weight, *weight, "{settings:?}: {advice:?}");
        for needle in *needles {
            assert!(
                advice.sentence.contains(needle),
                "{settings:?}: {advice:?} lacks {needle:?}"
            );
        }
    }
}

use Weight::{Note, Warning};

#[test]
fn a_deployment_as_it_should_be_earns_nothing() {
    check(&[STRIPE, REDIS, POSTGRES, TARGET, SIGNED, LONG], &[]);
    check(&[GITHUB, SHOPIFY, POSTGRES, TARGET, SIGNED], &[]);
    check(
        &[STRIPE, FORWARD, QUICK, REDIS, POSTGRES, TARGET, SIGNED, LONG],
        &[],
    );
}

#[test]
fn a_claim_that_lives_shorter_than_copies_come() {
    let ledger = [STRIPE, REDIS, POSTGRES, TARGET, SIGNED];
    let by_hand: &[&str] = &[
        "source stripe",
        "HOOKGATE_CLAIM_TTL = 7days",
        "by itself for 3days, by hand for 30days",
        "the ledger's row answers",
        "30days",
    ];
    check(&ledger, &[(Note, by_hand)]);
    let short = [&ledger[..], &[("HOOKGATE_CLAIM_TTL", "2d")]].concat();
    check(
        &short,
        &[(
            Warning,
            &[
                "HOOKGATE_CLAIM_TTL = 2days",
                "nothing runs twice",
                "come by themselves",
            ],
        )],
    );
    let alone = [STRIPE, REDIS, NO_LEDGER, FORWARD, QUICK, TARGET, SIGNED];
    check(
        &alone,
        &[(
            Warning,
            &[
                "HOOKGATE_CLAIM_TTL = 7days",
                "no ledger",
                "runs again",
                "DATABASE_URL",
            ],
        )],
    );
    check(&[&alone[..], &[LONG]].concat(), &[]);
    // Nothing is claimed, so nothing is forgotten.
    check(&[STRIPE, ("REDIS_URL", "none"), POSTGRES, TARGET, SIGNED], &[]);
    // GitHub sends nothing by itself, Shopify nothing by hand.
    let hours = ("HOOKGATE_CLAIM_TTL", "1h");
    check(
        &[GITHUB, REDIS, POSTGRES, TARGET, SIGNED, hours],
        &[(Note, &["github can", "(by hand for 7days)"])],
    );
    check(
        &[SHOPIFY, REDIS, POSTGRES, TARGET, SIGNED, hours],
        &[(Warning, &["shopify can", "(by itself for 4h)"])],
    );
}

#[test]
fn rows_that_are_kept_longer_than_the_setting_says() {
    let short = [
        ("HOOKGATE_RETENTION_BODY", "1d"),
        ("HOOKGATE_RETENTION_EVENT", "2d"),
    ];
    let settings = [&[STRIPE, REDIS, POSTGRES, TARGET, SIGNED, LONG], &short[..]].concat();
    let needles: &[&str] = &[
        "HOOKGATE_RETENTION_EVENT = 2days",
        "a copy would run again",
        "keep the rows of stripe for 30days",
    ];
    check(&settings, &[(Warning, needles)]);
    check(&[&[SHOPIFY, POSTGRES, TARGET, SIGNED], &short[..]].concat(), &[]);
    check(
        &[
            &[STRIPE, NO_LEDGER, REDIS, FORWARD, QUICK, TARGET, SIGNED, LONG],
            &short[..],
        ]
        .concat(),
        &[],
    );
}

#[test]
fn times_that_add_up_to_more_than_the_provider_waits() {
    let forward = [STRIPE, FORWARD, REDIS, POSTGRES, TARGET, SIGNED, LONG];
    let needles: &[&str] = &[
        "HOOKGATE_REDIS_TIMEOUT = 100ms",
        "HOOKGATE_CLAIM_WAIT = 2s",
        "HOOKGATE_HANDLER_TIMEOUT = 9s",
        "HOOKGATE_LEDGER_TIMEOUT = 2s",
        "add up to 13s 100ms",
        "stripe waits 10s",
    ];
    check(&forward, &[(Warning, needles)]);
    // Five seconds and nine tenths is what is left.
    check(
        &[&forward[..], &[("HOOKGATE_HANDLER_TIMEOUT", "5900ms")]].concat(),
        &[],
    );
    check(
        &[&forward[..], &[("HOOKGATE_HANDLER_TIMEOUT", "5901ms")]].concat(),
        &[(Warning, &["10s 1ms"])],
    );
    let inbox = [SHOPIFY, REDIS, POSTGRES, TARGET, SIGNED];
    check(
        &[&inbox[..], &[("HOOKGATE_LEDGER_TIMEOUT", "4900ms")]].concat(),
        &[],
    );
    check(
        &[&inbox[..], &[("HOOKGATE_LEDGER_TIMEOUT", "4901ms")]].concat(),
        &[(
            Warning,
            &[
                "HOOKGATE_REDIS_TIMEOUT = 100ms, HOOKGATE_LEDGER_TIMEOUT = 4s 901ms",
                "shopify waits 5s",
                "lower HOOKGATE_LEDGER_TIMEOUT",
            ],
        )],
    );
}

#[test]
fn a_lease_that_ends_before_the_handler() {
    let forward = [STRIPE, FORWARD, QUICK, REDIS, POSTGRES, TARGET, SIGNED, LONG];
    let lease = ("HOOKGATE_CLAIM_LEASE", "1s");
    check(
        &[&forward[..], &[lease]].concat(),
        &[(
            Warning,
            &[
                "HOOKGATE_CLAIM_LEASE = 1s",
                "HOOKGATE_HANDLER_TIMEOUT = 1s",
                "twice",
            ],
        )],
    );
    let inbox = [STRIPE, POSTGRES, ("REDIS_URL", "none"), TARGET, SIGNED];
    let lease = ("HOOKGATE_WORKER_LEASE", "9s");
    check(
        &[&inbox[..], &[lease]].concat(),
        &[(
            Warning,
            &[
                "HOOKGATE_WORKER_LEASE = 9s",
                "HOOKGATE_HANDLER_TIMEOUT = 9s",
                "twice",
            ],
        )],
    );
    check(&[&inbox[..], &[("HOOKGATE_WORKER_LEASE", "10s")]].concat(), &[]);
    // A failed forward of a provider that never retries is the workers'.
    let lease = ("HOOKGATE_WORKER_LEASE", "1s");
    check(
        &[GITHUB, FORWARD, QUICK, POSTGRES, TARGET, SIGNED, lease],
        &[(Warning, &["HOOKGATE_WORKER_LEASE = 1s"])],
    );
    check(&[&forward[..], &[lease]].concat(), &[]);
}

#[test]
fn a_variable_that_is_none_of_ours() {
    let fine = [SHOPIFY, POSTGRES, TARGET, SIGNED];
    let earns = |name: &str, expected: &[(Weight, &[&str])]| {
        check(&[&fine[..], &[(name, "1")]].concat(), expected);
    };
    for (wrong, meant) in [
        ("HOOKGATE_CLAIM_TLL", "HOOKGATE_CLAIM_TTL?"),
        ("HOOKGATE_CLIAM_TTL", "HOOKGATE_CLAIM_TTL?"),
        ("HOOKGATE_HANDLER_TIMOUT", "HOOKGATE_HANDLER_TIMEOUT?"),
        ("HOOKGATE_RETENTION_EVENTS", "HOOKGATE_RETENTION_EVENT?"),
        ("HOOKGATE_TARGET", "HOOKGATE_TARGET_URL?"),
        ("HOOKGATE_LOG_LEVEL", "HOOKGATE_LOG?"),
        ("HOOKGATE_DATABASE_URL", "mean DATABASE_URL?"),
        ("HOOKGATE_REDIS_URL", "mean REDIS_URL?"),
        ("HOOKGATE_CONFIG_FILE", "HOOKGATE_CONFIG?"),
        ("STRPE_WEBHOOK_SECRET", "STRIPE_WEBHOOK_SECRET?"),
        ("SHOPFY_WEBHOOK_SECRET_FILE", "SHOPIFY_WEBHOOK_SECRET_FILE?"),
    ] {
        earns(wrong, &[(Warning, &[wrong, "no effect", meant])]);
    }
    earns(
        "HOOKGATE_FAVOURITE_COLOUR",
        &[(
            Note,
            &["HOOKGATE_FAVOURITE_COLOUR is not a setting", "config show"],
        )],
    );
    earns(
        "KLAVIYO_WEBHOOK_SECRET",
        &[(Note, &["KLAVIYO_WEBHOOK_SECRET opens no source"])],
    );
    for others in [
        "HOOKGATE_CONFIG",
        "HOOKGATE_ADMIN_SERVICE_HOST",
        "HOOKGATE_SERVICE_PORT_HTTP",
        "HOOKGATE_PORT_8080_TCP_ADDR",
        "PATH",
        "MY_HOOKGATE",
    ] {
        earns(others, &[]);
    }
    check(
        &[&fine[..], &[("HOOKGATE_PORT", "tcp://10.0.0.1:8080")]].concat(),
        &[],
    );
    check(
        &[&fine[..], &[("HOOKGATE_PORT", "8080")]].concat(),
        &[(Note, &["HOOKGATE_PORT"])],
    );
}

#[test]
fn secrets_that_keep_nobody_out() {
    let dev = ("SHOPIFY_WEBHOOK_SECRET", "hookgate_dev_shopify");
    check(
        &[dev, POSTGRES, TARGET, SIGNED],
        &[(Warning, &["source shopify", "published dev secret of shopify"])],
    );
    let rotated = ("SHOPIFY_WEBHOOK_SECRET", "a fresh one,hookgate_dev_github");
    check(
        &[rotated, POSTGRES, TARGET, SIGNED],
        &[(Warning, &["published dev secret of github"])],
    );
    check(
        &[SHOPIFY, POSTGRES, TARGET],
        &[(
            Warning,
            &["target default", "HOOKGATE_TARGET_SECRET", "not signed"],
        )],
    );
    let same = ("GITHUB_WEBHOOK_SECRET", SHOPIFY.1);
    check(
        &[SHOPIFY, same, POSTGRES, TARGET, SIGNED],
        &[(Warning, &["source shopify shares a secret with source github"])],
    );
}

#[test]
fn stores_that_promise_less() {
    check(
        &[SHOPIFY, NO_LEDGER, FORWARD, QUICK, TARGET, SIGNED],
        &[(Warning, &["development only"])],
    );
    check(
        &[SHOPIFY, REDIS, TARGET, SIGNED],
        &[(Warning, &["SQLite", "DATABASE_URL"])],
    );
    check(
        &[SHOPIFY, POSTGRES],
        &[(Warning, &["no HOOKGATE_TARGET_URL for shopify"])],
    );
    let pooler = (
        "DATABASE_URL",
        "postgres://canary-user:canary-word@canary-host:6432/gate",
    );
    check(
        &[SHOPIFY, pooler, TARGET, SIGNED],
        &[(
            Warning,
            &["DATABASE_URL", "pooler", "its port", "session pooling"],
        )],
    );
}
