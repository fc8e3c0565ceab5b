//! What one target may take, and what it may not take from others.

use std::path::PathBuf;
use std::time::Duration;

use hookgate_harness::{Answer, PostgresServer, Upstream};
use hookgate_ledger::{Limits, Operations, PostgresLedger, Reason, State};
use hookgate_webhook::Provider;
use tempfile::TempDir;

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider::{self, SECRET, Signed};

/// A folder with a configuration file in it.
fn file(toml: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.toml");
    std::fs::write(&file, toml).expect("it can be written");
    (directory, file)
}

#[tokio::test]
async fn targets_that_hang_take_no_place_from_another() {
    let (slow, slower, other) = (
        Upstream::start().await,
        Upstream::start().await,
        Upstream::start().await,
    );
    slow.answer(Answer::Hang);
    slower.answer(Answer::Hang);
    let (_directory, file) = file(&format!(
        "[targets.slow]\nurl = '{}'\n[targets.slower]\nurl = '{}'\n\
         [sources.github]\ntarget = 'slow'\n[sources.shopify]\ntarget = 'slower'\n",
        slow.url(),
        slower.url()
    ));
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let deployment = Deployment::on(stores)
            .await
            .delivering_to(&other)
            .set("GITHUB_WEBHOOK_SECRET", SECRET)
            .set("SHOPIFY_WEBHOOK_SECRET", SECRET)
            // Each target's bound is larger than all places: only their shares protect them from each other.
            .set("HOOKGATE_WORKER_CONCURRENCY", "6")
            .set("HOOKGATE_SHUTDOWN_GRACE", "3s")
            .set("HOOKGATE_CONFIG", &file.display().to_string());
        let replica = deployment.replica().await;
        let before = [slow.requests().len(), slower.requests().len()];
        for provider in [Provider::Github, Provider::Shopify] {
            for _ in 0..10 {
                assert!(replica.deliver(&provider::event(provider)).await.is_ok(false));
            }
        }
        slow.wait_for(before[0] + 2).await;
        slower.wait_for(before[1] + 2).await;
        for _ in 0..20 {
            let event = provider::fresh();
            assert!(replica.deliver(&event).await.is_ok(false));
            deployment.wait_for_state(&event, State::Done).await;
        }
        let now = [slow.requests().len(), slower.requests().len()];
        assert_eq!(now, before.map(|before| before + 2), "{stores:?}: their shares");
    }
}

#[tokio::test]
async fn a_target_never_gets_more_at_once_than_it_may() {
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        target.answer(Answer::Slow(Duration::from_millis(30), 200));
        let deployment = Deployment::on(stores)
            .await
            .delivering_to(&target)
            .set("HOOKGATE_TARGET_CONCURRENCY", "3");
        let replica = deployment.replica().await;
        for _ in 0..40 {
            assert!(replica.deliver(&provider::fresh()).await.is_ok(false));
        }
        let requests = target
            .wait_until(|requests| requests.iter().filter(|one| one.ended.is_some()).count() >= 40)
            .await;
        // Requests that were in hand when one began, itself included.
        let at_once = |one: &hookgate_harness::Request| {
            let began = |other: &&hookgate_harness::Request| other.began <= one.began;
            let going_on = |other: &&hookgate_harness::Request| other.ended.is_none_or(|end| end > one.began);
            requests.iter().filter(began).filter(going_on).count()
        };
        let most = requests.iter().map(at_once).max();
        assert_eq!(most, Some(3), "{stores:?}: its bound is used and kept");
    }
}

#[tokio::test]
async fn a_paused_target_gets_nothing_on_any_replica_until_it_is_resumed() {
    let target = Upstream::start().await;
    let database = PostgresServer::shared().await.create_database().await;
    let deployment = Deployment::with_database("none", &database).delivering_to(&target);
    let replicas = [deployment.replica().await, deployment.replica().await];
    let desk = PostgresLedger::connect(&database.into(), Limits::default()).expect("a URL of Postgres");
    let reason = Reason {
        actor: "cli:maria".into(),
        why: "the service moves".into(),
    };
    assert!(desk.pause("default", &reason).await.expect("it can be paused"));
    let paused = "hookgate_target_paused{target=\"default\"}";
    for replica in &replicas {
        until("the pause is heard", async || replica.metric(paused).await == 1.0).await;
    }
    let events: Vec<Signed> = (0..6).map(|_| provider::fresh()).collect();
    for (event, replica) in events.iter().zip(replicas.iter().cycle()) {
        assert!(replica.deliver(event).await.is_ok(false), "receiving goes on");
    }
    // Both have looked at the queue meanwhile, and heard of the pause anew.
    assert_eq!(target.requests().len(), 0);
    for event in &events {
        assert_eq!(deployment.state(event).await, Some((State::Queued, 0)));
    }
    assert!(desk.resume("default", &reason).await.expect("it can be resumed"));
    for event in &events {
        deployment.wait_for_state(event, State::Done).await;
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
}

#[tokio::test]
async fn a_worker_that_starts_while_a_target_is_paused_sends_it_nothing() {
    let target = Upstream::start().await;
    let database = PostgresServer::shared().await.create_database().await;
    let deployment = Deployment::with_database("none", &database).delivering_to(&target);
    let desk = PostgresLedger::connect(&database.into(), Limits::default()).expect("a URL of Postgres");
    let first = deployment.replica().await;
    let reason = Reason {
        actor: "cli:maria".into(),
        why: "the service moves".into(),
    };
    assert!(desk.pause("default", &reason).await.expect("it can be paused"));
    let paused = "hookgate_target_paused{target=\"default\"}";
    until("the pause is heard", async || first.metric(paused).await == 1.0).await;
    let events: Vec<Signed> = (0..6).map(|_| provider::fresh()).collect();
    for event in &events {
        assert!(first.deliver(event).await.is_ok(false));
    }
    assert_eq!(first.stop().await, Some(0));
    let second = deployment.replica().await;
    until("the pause is heard", async || second.metric(paused).await == 1.0).await;
    assert_eq!(target.requests().len(), 0);
    for event in &events {
        assert_eq!(deployment.state(event).await, Some((State::Queued, 0)));
    }
}

/// Who wrote it down may be gone since.
#[tokio::test]
async fn a_target_that_answers_is_not_down_whoever_said_so() {
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let replica = deployment.replica().await;
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        deployment.wait_for_state(&event, State::Done).await;
        deployment
            .sql("UPDATE targets SET down_since = (SELECT max(received_at) FROM webhook_events)")
            .await;
        until("the ledger knows better", async || {
            assert!(replica.deliver(&provider::fresh()).await.is_ok(false));
            deployment
                .sql("SELECT count(*) FROM targets WHERE down_since IS NOT NULL")
                .await
                == "0"
        })
        .await;
    }
}

/// A handler may take many leases long: it is the crash of a worker that costs one.
#[tokio::test]
async fn a_delivery_longer_than_the_lease_is_neither_doubled_nor_lost() {
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        target.answer(Answer::Slow(Duration::from_secs(4), 200));
        let deployment = Deployment::on(stores)
            .await
            .delivering_to(&target)
            .set("HOOKGATE_WORKER_LEASE", "1s");
        let (replica, _other) = (deployment.replica().await, deployment.replica().await);
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!((entry.attempts, target.requests().len()), (1, 1), "{stores:?}");
    }
}
