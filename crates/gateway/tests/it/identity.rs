//! Whose events a source takes, and what it makes of a body that comes again under an id that nobody signed.

use hookgate_harness::Upstream;
use hookgate_ledger::{Change, Changed, Reason, State};
use hookgate_webhook::Provider;

use crate::command_line::run_with_file;
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::provider::{self, SECRET, Signed};
use crate::rules::{Ruled, Says, counted, fresh_id, ignored};

const LIVE: &str = "[sources.stripe]\nmode = \"live\"\n";
const ONE_ACCOUNT: &str = "[sources.stripe]\naccounts = [\"acct_1\", \"acct_2\"]\n";

/// One event for this source and one that is not.
fn pair(setting: &str) -> (Signed, Signed, &'static str, &'static str) {
    let (ours, others) = (fresh_id(), fresh_id());
    match setting {
        LIVE => (
            Says::new(&ours).signed(),
            Says {
                livemode: "false",
                ..Says::new(&others)
            }
            .signed(),
            "mode",
            "other_mode",
        ),
        _ => (
            Says {
                account: "acct_2",
                ..Says::new(&ours)
            }
            .signed(),
            Says {
                account: "acct_3",
                ..Says::new(&others)
            }
            .signed(),
            "account",
            "other_account",
        ),
    }
}

/// Both are answered 200, whichever comes first; only the source's own reaches the target.
async fn check(stores: Stores, forwarding: bool, setting: &str, others_first: bool) {
    let about = format!("{stores:?}, forward {forwarding}, {setting}, others first {others_first}");
    let target = Upstream::start().await;
    let deployment = Deployment::on(stores).await;
    let deployment = match forwarding {
        true => deployment.forwarding_to(&target),
        false => deployment.delivering_to(&target),
    };
    let ruled = Ruled::by(deployment, setting);
    let replica = ruled.deployment.replica().await;
    let (ours, others, reason, kept_as) = pair(setting);
    let order = if others_first {
        [&others, &ours]
    } else {
        [&ours, &others]
    };
    for event in order {
        let answer = replica.deliver(event).await;
        assert!(answer.is_ok(false), "{about}: {answer:?}");
    }
    target.wait_for(1).await;
    let lines = replica.delivery_lines(&others.event_id).await;
    let line = lines
        .iter()
        .find(|line| line["event.id"] == others.event_id.as_str());
    assert_eq!(
        line.expect("a line")["reason"],
        kept_as,
        "{about}: the log says that it was set aside"
    );
    if stores.have_a_ledger() {
        ruled.deployment.wait_for_state(&ours, State::Done).await;
        let entry = ruled.deployment.entry(&others).await.expect("it is kept");
        let entry = (
            entry.state,
            entry.attempts,
            entry.last_error.as_deref().unwrap_or_default().to_owned(),
        );
        assert_eq!(entry, (State::Done, 0, kept_as.to_owned()), "{about}");
    }
    for event in order {
        let answer = replica.deliver(event).await;
        assert!(answer.is_ok(true), "{about}: {answer:?}");
    }
    assert_eq!(ignored(&replica, "stripe", reason).await, 1.0, "{about}");
    assert_eq!(target.count_for(&ours.target_id()), 1, "{about}");
    assert_eq!(target.requests().len(), 1, "{about}: nobody saw the other one");
}

#[tokio::test]
async fn an_event_of_another_mode_or_account_is_kept_and_handled_by_nobody_whichever_comes_first() {
    for setting in [LIVE, ONE_ACCOUNT] {
        for others_first in [false, true] {
            for stores in Stores::KEEPING {
                check(stores, false, setting, others_first).await;
            }
            for stores in [Stores::RedisAndPostgres, Stores::RedisAlone] {
                check(stores, true, setting, others_first).await;
            }
        }
    }
}

#[tokio::test]
async fn what_a_provider_leaves_unsaid_passes_only_where_that_is_no_surprise() {
    let deployment = Deployment::on(Stores::Embedded).await;
    let settings = "
        [sources.stripe]
        mode = \"live\"
        [sources.github]
        mode = \"live\"
        [sources.mine]
        provider = \"stripe\"
        accounts = [\"acct_1\"]
        [sources.sandbox]
        provider = \"stripe\"
        mode = \"test\"";
    let deployment = deployment
        .set("GITHUB_WEBHOOK_SECRET", SECRET)
        .set("MINE_WEBHOOK_SECRET", SECRET)
        .set("SANDBOX_WEBHOOK_SECRET", SECRET);
    let ruled = Ruled::by(deployment, settings);
    let replica = ruled.deployment.replica().await;
    let silent = Says {
        livemode: "",
        ..Says::new("evt_silent")
    };
    for source in ["stripe", "mine", "sandbox"] {
        let mut event = silent.signed();
        source.clone_into(&mut event.source);
        assert!(replica.deliver(&event).await.is_ok(false), "{source}");
    }
    assert!(
        replica
            .deliver(&provider::event(Provider::Github))
            .await
            .is_ok(false)
    );
    assert_eq!(
        ignored(&replica, "stripe", "mode").await,
        1.0,
        "Stripe always says it"
    );
    assert_eq!(ignored(&replica, "sandbox", "mode").await, 1.0);
    assert_eq!(
        ignored(&replica, "mine", "account").await,
        1.0,
        "it is of none of these accounts"
    );
    assert_eq!(
        ignored(&replica, "github", "mode").await,
        0.0,
        "GitHub never says it"
    );
}

#[tokio::test]
async fn an_event_that_was_set_aside_can_be_delivered_later() {
    let target = Upstream::start().await;
    let deployment = Deployment::on(Stores::Embedded).await.delivering_to(&target);
    let ruled = Ruled::by(deployment, LIVE);
    let replica = ruled.deployment.replica().await;
    let (_, others, ..) = pair(LIVE);
    assert!(replica.deliver(&others).await.is_ok(false));
    let reason = Reason {
        actor: "maria".to_owned(),
        why: "it was ours after all".to_owned(),
    };
    let (desk, key) = (ruled.deployment.desk(), others.key());
    let changed = desk.change(&key, Change::Replay, Some(0), &reason).await;
    assert_eq!(
        changed.expect("the ledger answers"),
        Changed::Done { generation: 1 }
    );
    assert_eq!(target.wait_for(1).await[0].body, others.body);
}

/// The same delivery under another id, which its provider does not sign.
fn captured(event: &Signed) -> Signed {
    let mut copy = event.clone();
    copy.event_id = fresh_id();
    let mut renamed = 0;
    for (_, value) in copy
        .headers
        .iter_mut()
        .filter(|(_, value)| *value == event.event_id)
    {
        value.clone_from(&copy.event_id);
        renamed += 1;
    }
    assert_eq!(renamed, 1, "the id stands in one header: {event:?}");
    copy
}

async fn guarded(stores: Stores, setting: &str, target: &Upstream) -> (Ruled, Replica) {
    let deployment = Deployment::on(stores).await.delivering_to(target);
    let deployment = deployment
        .set("GITHUB_WEBHOOK_SECRET", SECRET)
        .set("SHOPIFY_WEBHOOK_SECRET", SECRET);
    let file = format!("[sources.github]\n{setting}\n[sources.shopify]\n{setting}\n");
    let ruled = Ruled::by(deployment, &file);
    let replica = ruled.deployment.replica().await;
    (ruled, replica)
}

#[tokio::test]
async fn a_body_under_a_new_id_is_flagged_unless_told_otherwise_and_handled_all_the_same() {
    for (setting, suspected) in [
        ("", 1.0),
        ("replay_guard = \"flag\"", 1.0),
        ("replay_guard = \"off\"", 0.0),
    ] {
        for stores in Stores::KEEPING {
            let target = Upstream::start().await;
            let (ruled, replica) = guarded(stores, setting, &target).await;
            for (n, provider) in [Provider::Github, Provider::Shopify].into_iter().enumerate() {
                let (event, source) = (provider::event(provider), provider.name());
                let copy = captured(&event);
                for delivery in [&event, &copy] {
                    let answer = replica.deliver(delivery).await;
                    assert!(answer.is_ok(false), "{stores:?} {setting} {source}: {answer:?}");
                }
                target.wait_for(2 * (n + 1)).await;
                assert_eq!(target.count_for(&copy.target_id()), 1, "{stores:?} {setting}");
                assert!(
                    replica.deliver(&copy).await.is_ok(true),
                    "a plain duplicate by now"
                );
                let counter = counted(&replica, "replays_suspected_total", source).await;
                assert_eq!(counter, suspected, "{stores:?} {setting} {source}");
                let linked = format!(
                    "SELECT twin_of FROM webhook_events WHERE event_id = '{}'",
                    copy.event_id
                );
                let expected = if suspected > 0.0 {
                    event.event_id.as_str()
                } else {
                    ""
                };
                assert_eq!(
                    ruled.deployment.sql(&linked).await,
                    expected,
                    "{stores:?} {setting} {source}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_body_under_a_new_id_is_suppressed_where_that_is_asked_for() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        let (ruled, replica) = guarded(stores, "replay_guard = \"suppress\"", &target).await;
        for provider in [Provider::Github, Provider::Shopify] {
            let (event, source) = (provider::event(provider), provider.name());
            let copy = captured(&event);
            assert!(replica.deliver(&event).await.is_ok(false), "{stores:?} {source}");
            assert!(replica.deliver(&copy).await.is_ok(true), "{stores:?} {source}");
            ruled.deployment.wait_for_state(&event, State::Done).await;
            assert_eq!(
                ruled.deployment.state(&copy).await,
                Some((State::Twin, 0)),
                "{stores:?} {source}"
            );
            assert_eq!(target.count_for(&copy.target_id()), 0, "{stores:?} {source}");
            assert_eq!(counted(&replica, "replays_suspected_total", source).await, 1.0);
            assert_eq!(replica.duplicates(source, "content").await, 1.0);
            assert_eq!(replica.deliveries(source, "twin").await, 1.0);
            let shown = ruled.deployment.desk().event(&copy.key()).await;
            let shown = shown.expect("the ledger answers").expect("it is kept");
            assert_eq!(shown.summary.twin_of.as_deref(), Some(event.event_id.as_str()));
        }
    }
}

#[tokio::test]
async fn one_delivery_id_at_two_sources_names_two_events() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let file = "
            [sources.repo-a]
            provider = \"github\"
            secrets = [\"secret of a\"]
            [sources.repo-b]
            provider = \"github\"
            secrets = [\"secret of b\"]";
        let ruled = Ruled::by(deployment, file);
        let replica = ruled.deployment.replica().await;
        let id = fresh_id();
        let event = |source: &str, secret: &str| {
            let body = format!("{{\"for\":\"{source}\"}}");
            let mut signed = provider::sign(Provider::Github, secret, &id, body.as_bytes());
            source.clone_into(&mut signed.source);
            signed.headers.push(("X-GitHub-Delivery".to_owned(), id.clone()));
            signed
                .headers
                .push(("X-GitHub-Event".to_owned(), "push".to_owned()));
            signed
        };
        let (a, b) = (event("repo-a", "secret of a"), event("repo-b", "secret of b"));
        assert!(replica.deliver(&a).await.is_ok(false), "{stores:?}");
        assert!(replica.deliver(&b).await.is_ok(false), "{stores:?}");
        assert!(replica.deliver(&a).await.is_ok(true), "{stores:?}");
        let reached = target.wait_for(2).await;
        let bodies: Vec<_> = [&a, &b].map(|event| event.body.as_slice()).into();
        assert!(
            reached.iter().all(|call| bodies.contains(&&*call.body)),
            "{stores:?}"
        );
        assert_eq!(
            target.count_for(&a.target_id()) + target.count_for(&b.target_id()),
            2
        );
    }
}

#[tokio::test]
async fn settings_that_would_swallow_everything_or_do_nothing_are_named_in_one_sentence() {
    let cases = [
        ("shopify", "mode = \"test\"", "shopify never says which mode"),
        (
            "standard_webhooks",
            "accounts = [\"a\"]",
            "standard_webhooks never says which account",
        ),
        (
            "stripe",
            "accounts = []",
            "accounts = [] would set every event aside",
        ),
        (
            "stripe",
            "mode = \"sandbox\"",
            "mode is not accepted: expected \"live\", \"test\" or \"any\"",
        ),
        ("stripe", "twin_rule = \"object\"", "needs twin_types"),
        (
            "github",
            "twin_rule = \"content\"",
            "github do not set apart what changed",
        ),
        (
            "stripe",
            "twin_types = [\"a\"]",
            "twin_types has no effect without twin_rule",
        ),
        (
            "stripe",
            "twin_window = \"soon\"",
            "twin_window is not accepted: expected a duration",
        ),
        (
            "stripe",
            "twin_rule = \"object\"\ntwin_types = [\"a\"]\ntwin_window = \"1m\"",
            "twin_window has no effect with twin_rule = \"object\"",
        ),
    ];
    for (provider, settings, sentence) in cases {
        let file = format!("[sources.s]\nprovider = \"{provider}\"\nsecrets = [\"{SECRET}\"]\n{settings}\n");
        let ran = run_with_file(&["config", "check", "--offline"], &file, &[]).await;
        assert_eq!(ran.code, Some(64), "{settings}: {ran:#?}");
        assert!(ran.sentence().contains(sentence), "{settings}: {ran:#?}");
    }
    let idle = "[sources.github]\nsecrets = [\"some secret\"]\nmode = \"live\"\n";
    let ran = run_with_file(&["config", "check", "--offline"], idle, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.text()
            .contains("warning: source github: mode = \"live\" has no effect"),
        "{ran:#?}"
    );

    let forward = [
        ("DATABASE_URL", "none"),
        ("HOOKGATE_HANDLER", "forward"),
        ("HOOKGATE_TARGET_URL", "http://127.0.0.1:1/"),
    ];
    for (settings, code) in [
        ("", 0),
        ("replay_guard = \"flag\"", 64),
        ("twin_rule = \"object\"\ntwin_types = [\"a\"]", 64),
    ] {
        let file = format!("[sources.shopify]\nsecrets = [\"some secret\"]\n{settings}\n");
        let ran = run_with_file(&["config", "check", "--offline"], &file, &forward).await;
        assert_eq!(ran.code, Some(code), "{settings}: {ran:#?}");
        assert!(
            code == 0 || ran.sentence().contains("needs a ledger"),
            "{settings}: {ran:#?}"
        );
    }
}
