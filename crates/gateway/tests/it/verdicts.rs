//! What a target's answer means for the event.

use hookgate_harness::{Answer, Upstream};
use hookgate_ledger::State;
use hookgate_webhook::Provider;

use crate::deployment::{Deployment, Stores};
use crate::patience::eventually;
use crate::provider::{self, Signed};

const WITH_WORKERS: [Stores; 2] = [Stores::PostgresAlone, Stores::Embedded];

/// One replica, one event, and the target's answer to it.
async fn delivered(stores: Stores, answer: Answer) -> (Deployment, Upstream, Signed) {
    let target = Upstream::start().await;
    target.answer(answer);
    let deployment = Deployment::on(stores).await.delivering_to(&target);
    let event = provider::fresh();
    let replica = deployment.replica().await;
    assert!(replica.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    // Its first run is settled: then it no longer runs.
    eventually("the run is settled", async || {
        let entry = deployment.entry(&event).await?;
        (entry.attempts == 1 && entry.last_error.is_some() && entry.state != State::Running).then_some(())
    })
    .await;
    assert_eq!(replica.stop().await, Some(0));
    (deployment, target, event)
}

fn asking(status: u16, retry_after: &str) -> Answer {
    Answer::StatusWithHeaders(status, vec![("retry-after".into(), retry_after.into())])
}

#[tokio::test]
async fn an_answer_that_is_final_buries_the_event_at_once() {
    for stores in WITH_WORKERS {
        for status in [410, 400, 422] {
            let (deployment, target, event) = delivered(stores, asking(status, "1")).await;
            let entry = deployment.wait_for_state(&event, State::Dead).await;
            assert_eq!(entry.last_error, Some(format!("the target answered {status}")));
            assert_eq!((entry.attempts, target.requests().len()), (1, 1), "{stores:?}");
        }
    }
}

#[tokio::test]
async fn a_target_that_asks_for_time_gets_it() {
    for stores in WITH_WORKERS {
        let date = "Fri, 31 Dec 2399 23:59:59 GMT";
        for (answer, hours, tries) in [
            (asking(503, "7200"), 2, 0),
            (asking(429, "7200"), 2, 0),
            (asking(500, "7200"), 2, 1),
            (asking(503, date), 24, 0),
        ] {
            let (deployment, _target, event) = delivered(stores, answer).await;
            let waits = deployment.sql(&match stores {
                Stores::Embedded => "SELECT (next_attempt_at - leased_at) / 3600000, tries FROM webhook_events".to_owned(),
                _ => "SELECT floor(extract(epoch FROM next_attempt_at - leased_at) / 3600), tries FROM webhook_events".to_owned(),
            }).await;
            let (waited, paid) = waits.split_once('|').expect("two columns");
            let waited: u64 = waited.parse().expect("whole hours");
            // Up to a tenth more, so that not all come at that very moment.
            assert!(
                (hours..=hours + hours / 10).contains(&waited),
                "{stores:?}: {waits}"
            );
            assert_eq!(paid, tries.to_string(), "{stores:?}, asked for {hours} h");
            assert_eq!(deployment.state(&event).await, Some((State::Queued, 1)));
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Upstream::start().await;
    let location = vec![("location".to_owned(), elsewhere.url())];
    for status in [301, 307, 308] {
        let answer = Answer::StatusWithHeaders(status, location.clone());
        let (deployment, target, event) = delivered(Stores::Embedded, answer).await;
        let entry = deployment.entry(&event).await.expect("it is kept");
        assert_eq!(entry.last_error, Some(format!("the target answered {status}")));
        assert_eq!((target.requests().len(), elsewhere.requests().len()), (1, 0));
    }
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_costs_no_try_and_gets_its_events_when_it_can() {
    for stores in WITH_WORKERS {
        let target = Upstream::start().await;
        let (url, address) = (target.url(), target.addr());
        drop(target);
        let deployment = Deployment::on(stores)
            .await
            .set("HOOKGATE_TARGET_URL", &url)
            .set("HOOKGATE_RETRY_MAX_ATTEMPTS", "1")
            .set("HOOKGATE_RETRY_BASE", "10ms");
        let replica = deployment.replica().await;
        let events: Vec<Signed> = (0..8).map(|_| provider::fresh()).collect();
        for event in &events {
            assert!(replica.deliver(event).await.is_ok(false));
        }
        eventually("the target is known to be away", async || {
            (replica.metric("hookgate_target_up{target=\"default\"}").await == 0.0).then_some(())
        })
        .await;
        let target = Upstream::start_at(address).await;
        for event in &events {
            deployment.wait_for_state(event, State::Done).await;
            assert_eq!(target.count_for(&event.target_id()), 1);
        }
        let up = replica.metric("hookgate_target_up{target=\"default\"}").await;
        assert_eq!(up, 1.0, "{stores:?}");
        let tries = deployment
            .sql("SELECT max(tries), sum(CASE WHEN attempts > 1 THEN 1 ELSE 0 END) > 0 FROM webhook_events");
        let tries = tries.await.replace("|t", "|1");
        assert_eq!(
            tries, "1|1",
            "{stores:?}: some were tried in vain, and none paid for it"
        );
    }
}

#[tokio::test]
async fn an_event_held_for_too_long_dies_because_its_target_is_down() {
    for stores in WITH_WORKERS {
        let (deployment, target, event) = delivered(stores, Answer::Status(503)).await;
        let past = match stores {
            Stores::Embedded => "deadline_at = 0, next_attempt_at = 0",
            _ => "deadline_at = now(), next_attempt_at = now()",
        };
        deployment.sql(&format!("UPDATE webhook_events SET {past}")).await;
        let replica = deployment.replica().await;
        let entry = deployment.wait_for_state(&event, State::Dead).await;
        let error = entry.last_error.unwrap_or_default();
        assert_eq!(
            error, "target_down: held for 72 h: the target answered 503",
            "{stores:?}"
        );
        assert_eq!(target.requests().len(), 2);
        eventually("the death is counted", async || {
            let series = "hookgate_attempts_total{outcome=\"dead\",source=\"stripe\"}";
            (replica.metric(series).await == 1.0).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_source_has_rules_of_its_own() {
    let target = Upstream::start().await;
    target.answer(Answer::Status(500));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.toml");
    let toml = "retry_base = '10ms'\n[sources.stripe]\nretry_max_attempts = 3\n[sources.github]\nretry_max_attempts = 1\n";
    std::fs::write(&file, toml).expect("it can be written");
    let deployment = Deployment::on(Stores::PostgresAlone)
        .await
        .delivering_to(&target)
        .set("GITHUB_WEBHOOK_SECRET", provider::SECRET)
        .set("HOOKGATE_CONFIG", &file.display().to_string());
    let replica = deployment.replica().await;
    for (provider, tries) in [(Provider::Stripe, 3), (Provider::Github, 1)] {
        let event = provider::event(provider);
        assert!(replica.deliver(&event).await.is_ok(false));
        let entry = deployment.wait_for_state(&event, State::Dead).await;
        assert_eq!(entry.attempts, tries, "{provider:?}");
        assert_eq!(target.count_for(&event.target_id()), tries as usize);
    }
}

/// A redrive starts the tries again, and what was only held has cost none: the delay follows the tries, however
/// often the event was run.
#[tokio::test]
async fn the_delay_follows_the_tries_and_not_the_runs() {
    for stores in WITH_WORKERS {
        let target = Upstream::start().await;
        target.answer(Answer::Status(500));
        let deployment = Deployment::on(stores)
            .await
            .delivering_to(&target)
            .set("HOOKGATE_RETRY_BASE", "10s");
        let event = provider::fresh();
        let replica = deployment.replica().await;
        assert!(replica.deliver(&event).await.is_ok(false));
        let run_again = "UPDATE webhook_events SET attempts = 20, tries = 0, next_attempt_at = received_at
                         WHERE state = 'queued'";
        eventually("it was tried once", async || {
            let (state, attempts) = deployment.state(&event).await?;
            (state == State::Queued && attempts == 1).then_some(())
        })
        .await;
        deployment.sql(run_again).await;
        eventually("it was tried again", async || {
            let (state, attempts) = deployment.state(&event).await?;
            (state == State::Queued && attempts == 21).then_some(())
        })
        .await;
        let seconds = match stores {
            Stores::Embedded => "(next_attempt_at - leased_at) / 1000",
            _ => "floor(extract(epoch FROM next_attempt_at - leased_at))",
        };
        let soon = deployment
            .sql(&format!(
                "SELECT count(*) FROM webhook_events WHERE {seconds} < 60"
            ))
            .await;
        assert_eq!(soon, "1", "{stores:?}");
    }
}
