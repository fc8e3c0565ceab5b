//! Workers that want the same events at the same time: each event is one worker's, and a worker that stood still
//! for longer than its lease changes nothing of what others have done meanwhile.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Gate, Lottery, Upstream};

use crate::account::{Account, all_at_rest};
use crate::deployment::{Deployment, Stores};
use crate::embedded;
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider;
use crate::worker_crowd::{fill, workers};

/// Calls that one worker has on their way.
const CONCURRENCY: usize = 8;

/// Longer than a busy machine keeps a worker from renewing it.
const LEASE: &str = "10s";

/// Five to fifty milliseconds.
fn uneven() -> Answer {
    let slow = |millis| Answer::Slow(Duration::from_millis(millis), 200);
    let chances = [(25, slow(5)), (25, slow(20)), (25, slow(35))];
    Answer::Lottery(Lottery::new(1, &chances, slow(50)))
}

async fn with_queue(stores: Stores, target: &Upstream, count: usize) -> Deployment {
    let deployment = Deployment::on(stores).await.delivering_to(target);
    let deployment = deployment
        .set("HOOKGATE_TARGET_CONCURRENCY", &CONCURRENCY.to_string())
        .set("HOOKGATE_WORKER_LEASE", LEASE);
    fill(&deployment, count).await;
    deployment
}

/// Stops the process, but not in the middle of writing to a file: there it would hold up everybody else, too.
async fn stand_still(worker: &Replica, deployment: &Deployment) {
    until("it stands still between two writes", async || {
        worker.process().signal("STOP");
        let Some(file) = deployment.file() else {
            return true;
        };
        let free = embedded::hold(file).await.is_some();
        if !free {
            worker.process().signal("CONT");
        }
        free
    })
    .await;
}

#[tokio::test]
async fn workers_that_start_at_the_same_instant_share_the_queue() {
    for (stores, count) in [(Stores::PostgresAlone, 1000), (Stores::Embedded, 200)] {
        let target = Upstream::start().await;
        target.answer(uneven());
        let deployment = with_queue(stores, &target, count).await;
        let workers = workers(&deployment, 4).await;
        all_at_rest(&deployment, count).await;
        for worker in &workers {
            assert_eq!(worker.stop().await, Some(0), "{stores:?}");
        }
        let account = Account::of(&deployment, &target).await;
        assert_eq!(
            (account.done, account.calls),
            (count, count),
            "{stores:?}: {account}"
        );
        assert_eq!(
            (account.cut_off(), account.overlaps),
            (0, 0),
            "{stores:?}: {account}"
        );
        assert!(target.peak() <= 4 * CONCURRENCY, "{stores:?}: {}", target.peak());
    }
}

#[tokio::test]
async fn a_worker_that_stood_still_changes_nothing_that_others_took_over() {
    join_all([Stores::PostgresAlone, Stores::Embedded].map(what_stood_still_is_late)).await;
}

async fn what_stood_still_is_late(stores: Stores) {
    let count = 100;
    let (target, late) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(late.clone(), 500));
    let deployment = with_queue(stores, &target, count).await;
    let deployment = deployment.set("HOOKGATE_WORKER_LEASE", "1s");
    let still = deployment.start("work").await;
    let deployment = deployment.set("HOOKGATE_WORKER_LEASE", LEASE);
    let taken = target.wait_for(CONCURRENCY).await;
    stand_still(&still, &deployment).await;
    let id = taken[0].id().and_then(|id| id.strip_prefix("stripe:"));
    let event = provider::stripe(id.expect("a call names its event"));
    until("its lease has ended", async || {
        let entry = deployment.entry(&event).await;
        entry.expect("it is kept").lease_ended
    })
    .await;

    target.answer(uneven());
    let others = workers(&deployment, 3).await;
    all_at_rest(&deployment, count).await;
    let rows = "SELECT event_id || state || attempts || COALESCE(last_error, '') || processed_at
                    FROM webhook_events ORDER BY 1";
    let (before, finished) = (deployment.sql(rows).await, target.requests().len());

    // Its target's answers come, and it goes on to write them down.
    late.open();
    still.process().signal("CONT");
    assert_eq!(still.stop().await, Some(0), "{stores:?}");
    for other in &others {
        assert_eq!(other.stop().await, Some(0), "{stores:?}");
    }
    assert_eq!(deployment.sql(rows).await, before, "{stores:?}");
    assert_eq!(
        target.requests().len(),
        finished,
        "{stores:?}: it called nobody again"
    );
    let account = Account::of(&deployment, &target).await;
    assert_eq!(
        (account.done, account.doubled),
        (count, 0),
        "{stores:?}: {account}"
    );
    assert_eq!(account.cut_off(), CONCURRENCY, "{stores:?}: {account}");
    assert_eq!(account.calls, count + CONCURRENCY, "{stores:?}: {account}");
}
