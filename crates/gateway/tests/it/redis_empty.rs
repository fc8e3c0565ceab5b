//! Redis that forgets everything while events are done and while others are in hand.

use hookgate_harness::{Answer, Gate, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::Deployment;
use crate::gateway::{Replica, Sent};
use crate::provider::{self, Signed};

const DONE: usize = 1_000;
const IN_HAND: usize = 20;

/// As many as the ledger takes at the same time without making anybody wait for a connection.
const AT_ONCE: usize = 8;

/// Delivers all events, some at the same time, and waits for the answers.
async fn all_answered(replica: &Replica, events: &[Signed], duplicate: bool) {
    for some in events.chunks(AT_ONCE) {
        let mut sent: Vec<_> = some.iter().map(|event| replica.send(event)).collect();
        for sent in &mut sent {
            let answer = sent.answer().await;
            assert!(answer.is_ok(duplicate), "{answer:?}");
        }
    }
}

fn fresh(count: usize) -> Vec<Signed> {
    (0..count).map(|_| provider::fresh()).collect()
}

#[tokio::test]
async fn a_redis_that_forgets_everything_doubles_no_forward() {
    let (redis, target, gate) = (
        RedisServer::start().await,
        Upstream::start().await,
        Gate::closed(),
    );
    let deployment = Deployment::with_postgres(Some(&redis.url()))
        .await
        .forwarding_to(&target);
    let deployment = deployment
        .set("HOOKGATE_CLAIM_WAIT", "10m")
        // As long as it takes to send a thousand copies meanwhile.
        .set("HOOKGATE_HANDLER_TIMEOUT", "10m");
    let (one, two) = (deployment.replica().await, deployment.replica().await);
    let (done, in_hand) = (fresh(DONE), fresh(IN_HAND));
    all_answered(&one, &done, false).await;
    target.answer(Answer::Gate(gate.clone(), 200));
    let mut first: Vec<Sent> = in_hand.iter().map(|event| one.send(event)).collect();
    target.wait_for(DONE + IN_HAND).await;

    assert_eq!(redis.cli(&["FLUSHALL"]), "OK");
    let mut copies: Vec<Sent> = in_hand.iter().map(|event| two.send(event)).collect();
    all_answered(&two, &done, true).await;
    gate.open();
    for first in &mut first {
        assert!(first.answer().await.is_ok(false));
    }
    for copy in &mut copies {
        let answer = copy.answer().await;
        assert!(answer.is_ok(true), "{answer:?}");
    }
    all_answered(&two, &in_hand, true).await;
    assert_eq!(target.requests().len(), DONE + IN_HAND, "each took effect once");
    assert_eq!(
        two.deliveries("stripe", "duplicate").await,
        (DONE + 2 * IN_HAND) as f64
    );
}

#[tokio::test]
async fn a_redis_that_forgets_everything_doubles_nothing_that_is_kept() {
    let (redis, target, gate) = (
        RedisServer::start().await,
        Upstream::start().await,
        Gate::closed(),
    );
    let deployment = Deployment::with_postgres(Some(&redis.url()))
        .await
        .delivering_to(&target);
    let deployment = deployment
        .set("HOOKGATE_WORKER_CONCURRENCY", "32")
        .set("HOOKGATE_HANDLER_TIMEOUT", "10m");
    let replica = deployment.replica().await;
    let (done, in_hand) = (fresh(DONE), fresh(IN_HAND));
    all_answered(&replica, &done, false).await;
    target.wait_for(DONE).await;
    for event in &done {
        deployment.wait_for_state(event, State::Done).await;
    }
    target.answer(Answer::Gate(gate.clone(), 200));
    all_answered(&replica, &in_hand, false).await;
    target.wait_for(DONE + 1).await;

    assert_eq!(redis.cli(&["FLUSHALL"]), "OK");
    all_answered(&replica, &done, true).await;
    all_answered(&replica, &in_hand, true).await;
    gate.open();
    for event in &in_hand {
        deployment.wait_for_state(event, State::Done).await;
    }
    assert_eq!(target.requests().len(), DONE + IN_HAND, "each took effect once");
    assert_eq!(
        replica.deliveries("stripe", "duplicate").await,
        (DONE + IN_HAND) as f64
    );
}
