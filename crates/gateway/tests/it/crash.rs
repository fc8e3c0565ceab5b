//! Replicas that die or stand still with an event in hand. A crash costs one lease and not the claim's whole
//! life, and whoever comes back late changes nothing.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Gate, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::gateway::{self, Replica, Sent};
use crate::patience::{eventually, until};
use crate::provider::{self, Signed};

/// Long enough for a busy machine to ask once before it ends, short enough to wait for.
const LEASE: &str = "4s";

/// What a target takes that is slower than the lease, and faster than the handler timeout.
const SLOW: Duration = Duration::from_secs(7);

/// Delivers until nobody else has the event in hand.
async fn deliver_until_free(replica: &Replica, event: &Signed) -> gateway::Answer {
    eventually("the event is free", async || {
        let answer = replica.deliver(event).await;
        (!answer.says_later(409, "in_flight")).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_killed_replica_holds_its_event_for_one_lease_and_no_longer() {
    for stores in Stores::SHARED {
        let target = Upstream::start().await;
        target.answer(Answer::Hang);
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let deployment = deployment
            .set("HOOKGATE_CLAIM_LEASE", LEASE)
            .set("HOOKGATE_CLAIM_WAIT", "0s");
        let (killed, other) = (deployment.replica().await, deployment.replica().await);
        let event = provider::fresh();
        let mut lost = killed.send(&event);
        target.wait_for(1).await;
        killed.process().signal("KILL");
        assert_eq!(killed.process().wait_exit().await, None, "a signal ended it");
        assert_eq!(lost.outcome().await, None, "the client gets no answer");

        target.answer(Answer::Status(200));
        let early = other.deliver(&event).await;
        assert!(early.says_later(409, "in_flight"), "{stores:?}: {early:?}");
        assert_eq!(target.count_for(&event.target_id()), 1, "{stores:?}");

        assert!(
            deliver_until_free(&other, &event).await.is_ok(false),
            "{stores:?}"
        );
        assert_eq!(target.count_for(&event.target_id()), 2, "{stores:?}");
        let row = stores.have_a_ledger().then_some((State::Done, 2));
        assert_eq!(deployment.state(&event).await, row, "{stores:?}");
        let taken_over = other.metric("hookgate_claims_taken_over_total").await;
        assert_eq!(
            taken_over,
            f64::from(u8::from(stores != Stores::PostgresAlone)),
            "{stores:?}"
        );
        assert!(other.deliver(&event).await.is_ok(true), "{stores:?}");
    }
}

#[tokio::test]
async fn a_killed_embedded_gateway_finds_its_event_again() {
    let target = Upstream::start().await;
    target.answer(Answer::Hang);
    let deployment = Deployment::on(Stores::Embedded).await.forwarding_to(&target);
    let deployment = deployment
        .set("HOOKGATE_CLAIM_LEASE", "1s")
        .set("HOOKGATE_CLAIM_WAIT", "0s");
    let killed = deployment.replica().await;
    let event = provider::fresh();
    let mut lost = killed.send(&event);
    target.wait_for(1).await;
    killed.process().signal("KILL");
    assert_eq!(lost.outcome().await, None);
    assert_eq!(deployment.state(&event).await, Some((State::Running, 1)));

    target.answer(Answer::Status(200));
    let again = deployment.replica().await;
    assert!(deliver_until_free(&again, &event).await.is_ok(false));
    assert_eq!(deployment.state(&event).await, Some((State::Done, 2)));
    assert!(again.deliver(&event).await.is_ok(true));
    assert_eq!(target.count_for(&event.target_id()), 2);
}

#[tokio::test]
async fn a_killed_worker_s_event_is_taken_up_by_another() {
    let target = Upstream::start().await;
    target.answer(Answer::Hang);
    let deployment = Deployment::on(Stores::RedisAndPostgres)
        .await
        .delivering_to(&target);
    let deployment = deployment.set("HOOKGATE_WORKER_LEASE", "1s");
    let killed = deployment.replica().await;
    let event = provider::fresh();
    assert!(killed.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    killed.process().signal("KILL");
    killed.process().wait_exit().await;
    assert_eq!(deployment.state(&event).await, Some((State::Running, 1)));

    target.answer(Answer::Status(200));
    let other = deployment.replica().await;
    assert!(other.deliver(&event).await.is_ok(true), "it is durably kept");
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 2, "the try that the crash cost is counted");
    assert_eq!(target.count_for(&event.target_id()), 2);
}

#[tokio::test]
async fn a_late_owner_neither_frees_nor_fails_the_event_of_its_successor() {
    join_all(Stores::SHARED.map(a_late_owner_changes_nothing)).await;
}

async fn a_late_owner_changes_nothing(stores: Stores) {
    let (target, late) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(late.clone(), 500));
    let deployment = Deployment::on(stores).await.forwarding_to(&target);
    let deployment = deployment
        .set("HOOKGATE_CLAIM_LEASE", LEASE)
        .set("HOOKGATE_CLAIM_WAIT", "0s");
    let (first, second) = (deployment.replica().await, deployment.replica().await);
    let third = deployment.replica().await;
    let event = provider::fresh();
    let mut failing = first.send(&event);
    target.wait_for(1).await;
    first.process().signal("STOP");

    // Longer than the lease, so that only renewals keep the event with its second owner.
    target.answer(Answer::Slow(SLOW, 200));
    let mut succeeding = take_over(&second, &target, &event).await;
    let held = held_by_second(stores, &deployment, &event).await;

    // Its renewal finds out, or its release does: it counts once either way.
    if stores == Stores::RedisAndPostgres {
        first.process().signal("CONT");
        until("the renewal finds out", async || lost_claims(&first).await == 1.0).await;
        late.open();
    } else {
        late.open();
        first.process().signal("CONT");
    }
    let failed = failing.answer().await;
    assert_eq!(failed.error(), "handler_failed", "{stores:?}: {failed:?}");
    assert_eq!(
        held_by_second(stores, &deployment, &event).await,
        held,
        "{stores:?}"
    );
    let told = third.deliver(&event).await;
    assert!(told.says_later(409, "in_flight"), "{stores:?}: {told:?}");

    let told = deliver_until_free(&third, &event).await;
    assert!(told.is_ok(true), "{stores:?}: {told:?}");
    let done = succeeding.answer().await;
    assert!(done.is_ok(false), "{stores:?}: {done:?}");
    assert_eq!(
        target.count_for(&event.target_id()),
        2,
        "one failed, one took effect"
    );
    let row = stores.have_a_ledger().then_some((State::Done, 2));
    assert_eq!(deployment.state(&event).await, row, "{stores:?}");
    let lost = f64::from(u8::from(stores != Stores::PostgresAlone));
    assert_eq!(lost_claims(&first).await, lost, "{stores:?}");
    assert_eq!(lost_claims(&second).await, 0.0, "{stores:?}");
}

async fn lost_claims(replica: &Replica) -> f64 {
    replica.metric("hookgate_claims_lost_total").await
}

/// Sends the event until the replica runs it, which the target sees; the answer is still to come.
async fn take_over(replica: &Replica, target: &Upstream, event: &Signed) -> Sent {
    eventually("the lease ends", async || {
        let mut sent = replica.send(event);
        tokio::select! {
            answer = sent.answer() => {
                assert!(answer.says_later(409, "in_flight"), "{answer:?}");
                None
            }
            _ = target.wait_for(2) => Some(sent),
        }
    })
    .await
}

/// What a late owner could damage: the claim's value and the row.
async fn held_by_second(
    stores: Stores,
    deployment: &Deployment,
    event: &Signed,
) -> (String, Option<(State, u32)>) {
    let claim = RedisServer::shared().await.cli(&["GET", &event.claim_key()]);
    assert_eq!(
        claim.starts_with("i:"),
        stores != Stores::PostgresAlone,
        "{claim}"
    );
    (claim, deployment.state(event).await)
}

#[tokio::test]
async fn a_manual_redelivery_runs_what_failed_or_got_stuck_and_nothing_that_is_done() {
    for stores in Stores::SHARED {
        let target = Upstream::start().await;
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let deployment = deployment
            .set("HOOKGATE_CLAIM_LEASE", "500ms")
            .set("HOOKGATE_CLAIM_WAIT", "0s");
        let (killed, replica) = (deployment.replica().await, deployment.replica().await);
        let [failed, done, stuck] = [provider::fresh(), provider::fresh(), provider::fresh()];
        target.answer_for(
            &failed.target_id(),
            Answer::FailFirst {
                times: 1,
                status: 500,
            },
        );
        target.answer_for(&stuck.target_id(), Answer::Hang);
        assert_eq!(replica.deliver(&failed).await.status, 500);
        assert!(replica.deliver(&done).await.is_ok(false));
        let mut lost = killed.send(&stuck);
        target.wait_until(|seen| seen.len() == 3).await;
        killed.process().signal("KILL");
        assert_eq!(lost.outcome().await, None);
        target.answer_for(&stuck.target_id(), Answer::Status(200));

        assert!(replica.deliver(&failed).await.is_ok(false), "{stores:?}");
        assert!(replica.deliver(&done).await.is_ok(true), "{stores:?}");
        assert!(
            deliver_until_free(&replica, &stuck).await.is_ok(false),
            "{stores:?}"
        );
        let runs = [&failed, &done, &stuck].map(|event| target.count_for(&event.target_id()));
        assert_eq!(runs, [2, 1, 2], "{stores:?}");
    }
}
