//! Events that were given up, and taken up again by people: each is in one place at a time, runs again once however
//! many ask, and shows the reason of its latest death.

use std::time::Duration;

use hookgate_harness::{Answer, PostgresServer, Upstream};
use hookgate_ledger::{Bulk, Change, Changed, Filter, Reason, State};

use crate::account::{Account, all_at_rest};
use crate::deployment::{Deployment, Stores};
use crate::patience::{eventually, until};
use crate::provider::{self, Signed};
use crate::worker_crowd::fill;

fn reason() -> Reason {
    Reason {
        actor: "maria".to_owned(),
        why: "the target is mended".to_owned(),
    }
}

async fn redrive(deployment: &Deployment, event: &Signed) -> Changed {
    let (desk, key, reason) = (deployment.desk(), event.key(), reason());
    let changed = desk.change(&key, Change::Redrive, None, &reason);
    changed.await.expect("the ledger answers")
}

#[tokio::test]
async fn a_dead_letter_is_redriven_once_and_dies_again_for_a_reason_of_its_own() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        target.answer(Answer::Status(500));
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let deployment = deployment
            .set("HOOKGATE_RETRY_BASE", "5ms")
            // Nobody hears the alert, and that changes nothing.
            .set("HOOKGATE_NOTIFY_URL", "http://127.0.0.1:1/");
        let (replica, event) = (deployment.replica().await, provider::fresh());
        let dead = "hookgate_queue_events{state=\"dead\"}";
        assert!(replica.deliver(&event).await.is_ok(false), "{stores:?}");
        let entry = deployment.wait_for_state(&event, State::Dead).await;
        assert_eq!((entry.attempts, target.requests().len()), (5, 5), "{stores:?}");
        assert!(
            entry.last_error.is_some_and(|error| error.contains("500")),
            "{stores:?}"
        );
        until("the depth is seen", async || replica.metric(dead).await == 1.0).await;
        assert!(
            replica.deliver(&event).await.is_ok(true),
            "{stores:?}: a copy changes nothing"
        );
        assert_eq!(target.requests().len(), 5, "{stores:?}");

        target.answer(Answer::Status(404));
        let both = tokio::join!(redrive(&deployment, &event), redrive(&deployment, &event));
        let both = [both.0, both.1];
        let won = both
            .iter()
            .filter(|changed| **changed == Changed::Done { generation: 0 });
        assert_eq!(won.count(), 1, "{stores:?}: {both:?}");
        let entry = deployment.wait_for_state(&event, State::Dead).await;
        assert_eq!((entry.attempts, target.requests().len()), (10, 10), "{stores:?}");
        assert!(
            entry.last_error.is_some_and(|error| error.contains("404")),
            "{stores:?}"
        );

        target.answer(Answer::Status(200));
        assert_eq!(
            redrive(&deployment, &event).await,
            Changed::Done { generation: 0 }
        );
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!((entry.attempts, target.requests().len()), (11, 11), "{stores:?}");
        until("the depth is seen", async || replica.metric(dead).await == 0.0).await;
        let account = Account::of(&deployment, &target).await;
        assert_eq!(
            (account.done, account.after_failures),
            (1, 10),
            "{stores:?}: {account}"
        );
    }
}

#[tokio::test]
async fn a_redrive_of_all_goes_on_through_a_restart_of_the_database_and_runs_each_once() {
    const COUNT: usize = 120;
    let mut postgres = PostgresServer::start().await;
    let database = postgres.create_database().await;
    let target = Upstream::start().await;
    target.answer(Answer::Status(410));
    let deployment = Deployment::with_database("none", &database).delivering_to(&target);
    fill(&deployment, COUNT).await;
    let worker = deployment.start("work").await;
    all_at_rest(&deployment, COUNT).await;
    assert_eq!(
        deployment.sql("SELECT count(*) FROM dead_letters").await,
        COUNT.to_string()
    );

    target.answer(Answer::Status(200));
    let mut bulk = Bulk {
        change: Change::Redrive,
        filter: Filter::default(),
        after: None,
        limit: 10,
        dry_run: false,
        first_in: Duration::ZERO,
        spacing: Duration::ZERO,
    };
    let (mut redriven, mut steps) = (0, 0);
    loop {
        if steps == 4 {
            postgres.kill().await;
        }
        steps += 1;
        let restarts = async {
            if steps == 5 {
                postgres.restart().await;
            }
        };
        let step = eventually("the step is made", async || {
            deployment.desk().change_many(&bulk, &reason()).await.ok()
        });
        let (step, ()) = tokio::join!(step, restarts);
        redriven += step.events;
        match step.next {
            Some(next) => bulk.after = Some(next),
            None => break,
        }
    }
    assert_eq!(redriven, COUNT as u64);
    eventually("all are done", async || {
        let done = "SELECT count(*) FROM webhook_events WHERE state = 'done'";
        (deployment.sql(done).await == COUNT.to_string()).then_some(())
    })
    .await;
    let written =
        "SELECT count(*) || ' ' || count(DISTINCT event_id) FROM audit_log WHERE action = 'redrive'";
    assert_eq!(deployment.sql(written).await, format!("{COUNT} {COUNT}"));
    assert_eq!(worker.stop().await, Some(0));
    let account = Account::of(&deployment, &target).await;
    assert_eq!((account.done, account.doubled), (COUNT, 0), "{account}");
}
