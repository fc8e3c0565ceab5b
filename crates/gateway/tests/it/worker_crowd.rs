//! Many workers on one queue, a target that fails and hangs, and workers that are killed: every event comes to
//! rest, and by the target's own journal each took effect once, except where a kill or a timeout explains more.
//!
//! 400 events here; `HOOKGATE_TEST_CROWD=full` makes it 10,000.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Lottery, Upstream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::account::{Account, all_at_rest};
use crate::crowd::is_full;
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::provider;

/// Calls that one worker has on their way.
const CONCURRENCY: usize = 16;

/// Deliveries under way at the same time while the queue is filled.
const OPEN_MAX: usize = 64;

/// One answer in ten is a failure, one in a hundred never comes.
fn moody() -> Answer {
    let chances = [(10, Answer::Status(500)), (1, Answer::Hang)];
    let well = Answer::Slow(Duration::from_millis(20), 200);
    Answer::Lottery(Lottery::new(20_261_130, &chances, well))
}

/// Puts numbered events into the queue.
pub async fn fill(deployment: &Deployment, count: usize) {
    let receiver = Arc::new(deployment.start("receive").await);
    let (open, mut sending) = (Arc::new(Semaphore::new(OPEN_MAX)), JoinSet::new());
    for number in 0..count {
        let place = Arc::clone(&open)
            .acquire_owned()
            .await
            .expect("the semaphore stays");
        let receiver = Arc::clone(&receiver);
        sending.spawn(async move {
            let answer = receiver
                .deliver(&provider::stripe(&format!("evt_{number}")))
                .await;
            assert!(answer.is_ok(false), "{answer:?}");
            drop(place);
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent.expect("every event is accepted");
    }
}

/// The lease of those that will be killed. The others have a longer one, so that a busy machine takes none of
/// theirs.
const SHORT_LEASE: &str = "4s";

/// Starts workers at the same instant.
pub async fn workers(deployment: &Deployment, count: usize) -> Vec<Replica> {
    join_all((0..count).map(|_| deployment.start("work"))).await
}

/// Waits until the target has been called so often, for as long as it is called at all.
async fn calls(target: &Upstream, count: usize) {
    for step in (0..count).step_by(250).chain([count]) {
        target.wait_for(step).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_killed_workers_and_of_a_moody_target_all_come_to_rest_and_add_up() {
    let count = if is_full() { 10_000 } else { 400 };
    let target = Upstream::start().await;
    target.answer(moody());
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let deployment = deployment
        .set("HOOKGATE_WORKER_LEASE", SHORT_LEASE)
        .set("HOOKGATE_HANDLER_TIMEOUT", "1s")
        .set("HOOKGATE_RETRY_BASE", "50ms")
        .set("HOOKGATE_RETRY_MAX_ATTEMPTS", "3")
        .set("HOOKGATE_TARGET_CONCURRENCY", &CONCURRENCY.to_string());
    fill(&deployment, count).await;

    let lasting = deployment.clone().set("HOOKGATE_WORKER_LEASE", "10s");
    let (victims, survivors) = tokio::join!(workers(&deployment, 2), workers(&lasting, 2));
    for (victim, share) in victims.iter().zip([4, 2]) {
        calls(&target, count / share).await;
        victim.process().signal("KILL");
        assert_eq!(victim.process().wait_exit().await, None, "a signal ended it");
    }
    let killed_at = deployment.sql("SELECT CAST(now() AS text)").await;
    let unfinished = "SELECT count(*) FROM webhook_events WHERE state IN ('queued', 'running')";
    assert_ne!(
        deployment.sql(unfinished).await,
        "0",
        "they were killed in the middle"
    );
    let later = workers(&lasting, 2).await;
    all_at_rest(&deployment, count).await;
    for worker in survivors.iter().chain(&later) {
        assert_eq!(worker.stop().await, Some(0));
    }

    let account = Account::of(&deployment, &target).await;
    println!("{account}");
    assert_eq!((account.events, account.done + account.dead), (count, count));
    let lost = format!(
        "SELECT event_id || ' ' || attempt FROM webhook_attempts
         WHERE outcome = 'lost' AND started_at > '{killed_at}'"
    );
    for run in deployment.sql(&lost).await.lines() {
        let heard = target.requests().iter().any(|call| {
            let id = call
                .id()
                .and_then(|id| id.strip_prefix("stripe:"))
                .unwrap_or_default();
            format!("{id} {}", call.header("hookgate-attempt").unwrap_or_default()) == run
        });
        assert!(!heard, "only killed workers are cut off: {run}: {account}");
    }
    assert!(target.peak() <= 6 * CONCURRENCY, "{}", target.peak());
    assert!(account.after_failures > 0, "{account}");
}
