//! A burst that is more than the database can take: what does not fit is told to come again, in time; what was
//! promised is kept; the process lives, and is well as soon as the burst is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Fault, PostgresServer, Proxy, Upstream};
use hookgate_ledger::State;

use crate::account::all_at_rest;
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::eventually;
use crate::provider::{self, Signed};

/// Deliveries at once.
const BURST: usize = 600;

/// What each answer of the database takes.
const LATENCY: Duration = Duration::from_millis(100);

struct Burst {
    accepted: Vec<Signed>,
    refused: Vec<Signed>,
}

async fn burst(replica: &Replica) -> Burst {
    let events: Vec<_> = (0..BURST).map(|_| provider::fresh()).collect();
    let over = AtomicBool::new(false);
    let sending = async {
        let answers = join_all(events.iter().map(|event| replica.deliver(event))).await;
        over.store(true, Ordering::Relaxed);
        answers
    };
    let probing = async {
        while !over.load(Ordering::Relaxed) {
            assert_eq!(replica.admin("/healthz").await.0, 200, "the process lives");
            assert_eq!(replica.admin("/readyz").await.0, 200, "refusing is an answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (answers, ()) = tokio::join!(sending, probing);
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for (event, answer) in events.into_iter().zip(answers) {
        match answer.is_ok(false) {
            true => accepted.push(event),
            false => {
                assert!(answer.says_later(503, "unavailable"), "{answer:?}");
                refused.push(event);
            }
        }
    }
    Burst { accepted, refused }
}

/// Sends the event until it is taken.
async fn deliver(replica: &Replica, event: &Signed) {
    eventually("the event is taken", async || {
        let answer = replica.deliver(event).await;
        let later = answer.says_later(503, "unavailable");
        assert!(later || answer.status == 200, "{answer:?}");
        (!later).then_some(())
    })
    .await;
}

async fn slow_database(target: &Upstream) -> (Deployment, Proxy) {
    let proxy = Proxy::start(PostgresServer::shared().await.addr()).await;
    let deployment = Deployment::on(Stores::PostgresAlone).await;
    let deployment = deployment.through("DATABASE_URL", &proxy).delivering_to(target);
    (deployment, proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_forward_cannot_begin_in_time_is_refused_and_never_called() {
    let target = Upstream::start().await;
    target.answer(Answer::Slow(Duration::from_secs(2), 200));
    let (deployment, proxy) = slow_database(&target).await;
    let deployment = deployment.forwarding_to(&target);
    let replica = Arc::new(deployment.replica().await);
    proxy.set(Fault::DelayReplies(LATENCY));
    let Burst { accepted, refused } = burst(&replica).await;
    assert!(!accepted.is_empty() && !refused.is_empty(), "{}", accepted.len());
    for event in &accepted {
        assert_eq!(target.count_for(&event.target_id()), 1);
        deployment.wait_for_state(event, State::Done).await;
    }
    for event in &refused {
        assert_eq!(target.count_for(&event.target_id()), 0);
    }

    target.answer(Answer::Status(200));
    for event in refused.iter().take(5) {
        deliver(&replica, event).await;
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_inbox_promised_in_a_burst_is_delivered_once() {
    let target = Upstream::start().await;
    let (deployment, proxy) = slow_database(&target).await;
    let replica = deployment.replica().await;
    proxy.set(Fault::DelayReplies(LATENCY));
    let Burst { accepted, refused } = burst(&replica).await;
    assert!(!accepted.is_empty());
    for event in refused.iter().take(5) {
        deliver(&replica, event).await;
    }
    proxy.set(Fault::None);
    let rows: usize = deployment
        .sql("SELECT count(*) FROM webhook_events")
        .await
        .parse()
        .expect("a count is a number");
    assert!(rows >= accepted.len(), "{rows}");
    all_at_rest(&deployment, rows).await;
    for event in &accepted {
        assert_eq!(deployment.state(event).await, Some((State::Done, 1)));
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
}
