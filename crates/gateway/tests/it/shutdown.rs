//! The end of a replica: it finishes what it has in hand, or gives it back so that another goes on at once.

use hookgate_harness::{Answer, Gate, RedisServer, Upstream};
use hookgate_ledger::State;
use tokio::net::TcpStream;

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider;

#[tokio::test]
async fn a_stop_waits_for_what_is_in_hand_and_takes_nothing_more() {
    for stores in Stores::ALL {
        let (target, gate) = (Upstream::start().await, Gate::closed());
        target.answer(Answer::Gate(gate.clone(), 200));
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let replica = deployment.replica().await;
        let events = [provider::fresh(), provider::fresh(), provider::fresh()];
        let mut sent = [0, 1, 2].map(|number| replica.send(&events[number]));
        target.wait_for(3).await;
        replica.process().signal("TERM");
        until("it is not ready", async || {
            replica.admin("/readyz").await.0 == 503
        })
        .await;
        assert_eq!(
            replica.admin("/healthz").await.0,
            200,
            "{stores:?}: it still lives"
        );
        until("it listens no more", async || {
            TcpStream::connect(replica.public()).await.is_err()
        })
        .await;

        gate.open();
        for sent in &mut sent {
            assert!(sent.answer().await.is_ok(false), "{stores:?}");
        }
        assert_eq!(replica.process().wait_exit().await, Some(0), "{stores:?}");
        for event in &events {
            let row = stores.have_a_ledger().then_some((State::Done, 1));
            assert_eq!(deployment.state(event).await, row, "{stores:?}");
            let claim = RedisServer::shared().await.cli(&["GET", &event.claim_key()]);
            let in_redis = matches!(stores, Stores::RedisAndPostgres | Stores::RedisAlone);
            assert_eq!(claim.starts_with("d:"), in_redis, "{stores:?}: {claim}");
        }
    }
}

#[tokio::test]
async fn a_stop_gives_back_what_would_outlive_the_grace() {
    for stores in Stores::SHARED {
        let target = Upstream::start().await;
        target.answer(Answer::Hang);
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let deployment = deployment
            .set("HOOKGATE_SHUTDOWN_GRACE", "2s")
            .set("HOOKGATE_CLAIM_WAIT", "0s");
        let (stopped, other) = (deployment.replica().await, deployment.replica().await);
        let event = provider::fresh();
        let mut sent = stopped.send(&event);
        target.wait_for(1).await;
        stopped.process().signal("TERM");
        let answer = sent.answer().await;
        assert_eq!(
            answer.error(),
            "handler_failed",
            "{stores:?}: the provider is told: {answer:?}"
        );
        assert_eq!(stopped.process().wait_exit().await, Some(0), "{stores:?}");
        let claim = RedisServer::shared().await.cli(&["EXISTS", &event.claim_key()]);
        assert_eq!(claim, "0", "{stores:?}");
        let row = stores.have_a_ledger().then_some((State::Failed, 1));
        assert_eq!(deployment.state(&event).await, row, "{stores:?}");

        // At once: no lease has to end, although it would last fifteen seconds.
        target.answer(Answer::Status(200));
        let answer = other.deliver(&event).await;
        assert!(answer.is_ok(false), "{stores:?}: {answer:?}");
        assert_eq!(target.count_for(&event.target_id()), 2, "{stores:?}");
    }
}

#[tokio::test]
async fn a_worker_that_stops_finishes_its_deliveries() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let replica = deployment.replica().await;
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    replica.process().signal("TERM");
    until("it is not ready", async || {
        replica.admin("/readyz").await.0 == 503
    })
    .await;
    gate.open();
    assert_eq!(replica.process().wait_exit().await, Some(0));
    assert_eq!(deployment.state(&event).await, Some((State::Done, 1)));
}

#[tokio::test]
async fn a_worker_that_stops_gives_back_what_would_outlive_the_grace() {
    let target = Upstream::start().await;
    target.answer(Answer::Hang);
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let deployment = deployment.set("HOOKGATE_SHUTDOWN_GRACE", "2s");
    let replica = deployment.replica().await;
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    assert_eq!(replica.stop().await, Some(0));
    let entry = deployment.entry(&event).await.expect("the event is kept");
    // Queued or parked, it is due; running, its lease would last twenty seconds.
    assert_ne!(entry.state, State::Running);

    target.answer(Answer::Status(200));
    let other = deployment.replica().await;
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 2);
    assert_eq!(target.count_for(&event.target_id()), 2);
    assert_eq!(other.stop().await, Some(0));
}

#[tokio::test]
async fn a_stop_under_load_resets_no_accepted_connection() {
    let deployment = Deployment::on(Stores::RedisAndPostgres).await;
    let (stopped, other) = (deployment.replica().await, deployment.replica().await);
    let events: Vec<_> = (0..200).map(|_| provider::fresh()).collect();
    let mut sent: Vec<_> = events.iter().map(|event| stopped.send(event)).collect();
    sent[0].answer().await;
    stopped.process().signal("TERM");
    let mut kept = 0;
    for (event, sent) in events.iter().zip(&mut sent).skip(1) {
        match sent.outcome().await {
            Some(answer) if answer.is_ok(false) => kept += 1,
            // Told so, or never accepted: either way the provider knows, and its next try is well.
            Some(answer) => assert!(answer.says_later(503, "unavailable"), "{answer:?}"),
            None => {}
        }
        assert_eq!(other.deliver(event).await.status, 200);
    }
    assert_eq!(stopped.process().wait_exit().await, Some(0));
    assert!(kept > 0, "something was in hand");
    for event in &events {
        assert_eq!(deployment.state(event).await, Some((State::Done, 0)));
    }
}
