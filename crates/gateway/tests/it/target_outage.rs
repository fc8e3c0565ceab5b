//! A target that goes away and comes back, while events go on coming: they are kept and answered all the time, they
//! meet the target again as a ramp and not as a storm, and none dies because of the outage.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Capacity, PATIENCE, Upstream};
use hookgate_ledger::State;
use tokio::time::{Instant, sleep};

use crate::account::all_at_rest;
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// Events that pile up.
const BACKLOG: usize = 400;

/// Calls that one replica may have on their way.
const CONCURRENCY: usize = 4;

/// What the target can do at a time when it is back: less than two replicas would send.
const PLACES: usize = 6;

async fn deliver(replica: &Replica, count: usize) -> Vec<Signed> {
    let events: Vec<_> = (0..count).map(|_| provider::fresh()).collect();
    for some in events.chunks(40) {
        let answers = join_all(some.iter().map(|event| replica.deliver(event))).await;
        assert!(answers.iter().all(|answer| answer.is_ok(false)), "{answers:?}");
    }
    events
}

/// How many events this is true of.
async fn count(deployment: &Deployment, condition: &str) -> usize {
    let count = format!("SELECT CAST(count(*) AS text) FROM webhook_events WHERE {condition}");
    deployment.sql(&count).await.parse().expect("a count is a number")
}

#[tokio::test]
async fn what_piled_up_in_an_outage_is_delivered_as_a_ramp_and_fresh_events_need_not_wait_for_it() {
    let gone = Upstream::start().await;
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&gone);
    let deployment = deployment
        .set("HOOKGATE_TARGET_CONCURRENCY", &CONCURRENCY.to_string())
        .set("HOOKGATE_RETRY_BASE", "20ms")
        .set("HOOKGATE_RETRY_MAX_ATTEMPTS", "12");
    let address = gone.addr();
    drop(gone);
    let replicas = [deployment.replica().await, deployment.replica().await];

    // Connections are refused, and then somebody answers in the target's place.
    let mut backlog = deliver(&replicas[0], BACKLOG / 2).await;
    until("the target is known to be away", async || {
        replicas[0].metric("hookgate_target_up{target=\"default\"}").await == 0.0
    })
    .await;
    let target = Upstream::start_at(address).await;
    target.answer(Answer::Status(503));
    backlog.extend(deliver(&replicas[1], BACKLOG / 2).await);
    target.wait_for(2).await;
    assert_eq!(
        count(&deployment, "state = 'queued' AND tries > 0").await,
        0,
        "it cost no try"
    );
    assert!(
        target.requests().len() < BACKLOG / 4,
        "events wait, and do not knock one by one"
    );

    // It is there and fails at everything, until all that waited has failed at least once.
    target.answer(Answer::Status(500));
    // After a long outage the next probe may be half a minute away.
    let deadline = Instant::now() + 3 * PATIENCE;
    while count(&deployment, "tries = 0").await > 0 {
        assert!(Instant::now() < deadline, "waited in vain: everything was tried");
        sleep(Duration::from_millis(50)).await;
    }

    // It can do a little.
    target.answer(Answer::Capacity(Capacity::new(
        PLACES,
        Duration::from_millis(60),
        429,
    )));
    let mut overtaking = 0;
    while count(&deployment, "state = 'done'").await < BACKLOG / 2 + overtaking {
        let fresh = deliver(&replicas[overtaking % 2], 1).await.remove(0);
        deployment.wait_for_state(&fresh, State::Done).await;
        overtaking += 1;
    }
    assert!(
        overtaking > 0,
        "fresh events are delivered while the backlog is: {overtaking}"
    );

    let events = BACKLOG + overtaking;
    all_at_rest(&deployment, events).await;
    assert_eq!(count(&deployment, "state = 'done'").await, events, "none died");
    let effects = target.requests();
    let effects = effects
        .iter()
        .filter(|request| request.answered == Some(200))
        .count();
    assert_eq!(effects, events, "each took effect once");
    assert!(target.peak() <= 2 * CONCURRENCY, "{}", target.peak());
    for event in backlog.iter().step_by(20) {
        assert!(replicas[0].deliver(event).await.is_ok(true));
    }
}
