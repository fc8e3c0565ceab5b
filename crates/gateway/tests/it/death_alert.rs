//! People are told of events that die: once per burst, whoever's they were, and at no cost to the others.

use futures_util::future::join_all;
use hookgate_harness::{Answer, Gate, Upstream};
use hookgate_ledger::State;
use serde_json::Value;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// Long enough that a second alert that should not be would come well before the one that should.
const QUIET: &str = "5s";

const SENT: &str = "hookgate_notifications_total{outcome=\"sent\"}";
const FAILED: &str = "hookgate_notifications_total{outcome=\"failed\"}";

/// One try for each event, and a target that refuses all of them.
async fn deadly(stores: Stores, target: &Upstream) -> Deployment {
    target.answer(Answer::Status(500));
    let deployment = Deployment::on(stores).await.delivering_to(target);
    deployment
        .set("HOOKGATE_RETRY_MAX_ATTEMPTS", "1")
        .set("HOOKGATE_NOTIFY_QUIET", QUIET)
}

/// So many events die here.
async fn die(deployment: &Deployment, replica: &Replica, count: usize) -> Vec<Signed> {
    let events: Vec<_> = (0..count).map(|_| provider::fresh()).collect();
    for answer in join_all(events.iter().map(|event| replica.deliver(event))).await {
        assert!(answer.is_ok(false), "{answer:?}");
    }
    for event in &events {
        deployment.wait_for_state(event, State::Dead).await;
    }
    events
}

/// The texts of all alerts so far.
fn texts(sink: &Upstream) -> Vec<String> {
    let requests = sink.requests();
    let texts = requests.iter().map(|request| {
        assert_eq!(request.header("content-type"), Some("application/json"));
        let json: Value = serde_json::from_slice(&request.body).expect("an alert is JSON");
        json["text"].as_str().expect("an alert has a text").to_owned()
    });
    texts.collect()
}

#[tokio::test]
async fn a_burst_is_told_once_over_all_replicas_and_the_next_one_after_the_quiet_time() {
    let (target, sink) = (Upstream::start().await, Upstream::start().await);
    let silent = deadly(Stores::PostgresAlone, &target).await;
    let replica = silent.replica().await;
    let dead = die(&silent, &replica, 50).await;
    // Long enough ago that all are counted when the first one looks.
    silent
        .sql("UPDATE webhook_events SET processed_at = processed_at - interval '1 minute'")
        .await;

    // Two that tell, and one that does not and where all die.
    let telling = silent.set("HOOKGATE_NOTIFY_URL", &sink.url());
    let tellers = [telling.replica().await, telling.replica().await];
    sink.wait_for(1).await;
    let first = &texts(&sink)[0];
    assert!(
        first.contains("50 events") && first.contains("(stripe 50)"),
        "{first}"
    );
    assert!(
        first.contains("the target answered 500") && first.contains("hookgate dead-letters list"),
        "{first}"
    );
    assert!(
        dead.iter().any(|event| first.contains(&event.target_id())),
        "{first}"
    );

    let late = die(&telling, &replica, 1).await;
    sink.wait_for(2).await;
    let told = texts(&sink);
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(
        told[1].contains("1 event ") && told[1].contains(&late[0].target_id()),
        "{told:#?}"
    );
    for teller in &tellers {
        assert_eq!(teller.stop().await, Some(0));
    }
}

#[tokio::test]
async fn an_embedded_gateway_tells_too() {
    let (target, sink) = (Upstream::start().await, Upstream::start().await);
    let deployment = deadly(Stores::Embedded, &target).await;
    let deployment = deployment.set("HOOKGATE_NOTIFY_URL", &sink.url());
    let replica = deployment.replica().await;
    die(&deployment, &replica, 3).await;
    let all = async || {
        let told = texts(&sink);
        let counts = told
            .iter()
            .filter_map(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        counts.sum::<u64>() == 3
    };
    until("each death is told once", all).await;
    until("the alert is counted", async || replica.metric(SENT).await >= 1.0).await;
}

#[tokio::test]
async fn an_alert_that_fails_is_tried_again() {
    let (target, sink) = (Upstream::start().await, Upstream::start().await);
    sink.answer(Answer::FailFirst {
        times: 1,
        status: 500,
    });
    let deployment = deadly(Stores::PostgresAlone, &target).await;
    let replica = deployment.replica().await;
    die(&deployment, &replica, 2).await;
    let telling = deployment.set("HOOKGATE_NOTIFY_URL", &sink.url());
    let teller = telling.replica().await;
    sink.wait_for(2).await;
    until("the alert is counted", async || teller.metric(SENT).await == 1.0).await;
    assert_eq!(teller.metric(FAILED).await, 0.0);
    assert_eq!(texts(&sink)[0], texts(&sink)[1]);
}

#[tokio::test]
async fn a_sink_that_cannot_be_reached_changes_nothing_and_keeps_its_address_secret() {
    let target = Upstream::start().await;
    let deployment = deadly(Stores::PostgresAlone, &target).await;
    let deployment = deployment.set(
        "HOOKGATE_NOTIFY_URL",
        "http://user:canary@127.0.0.1:1/canary/path",
    );
    let replica = deployment.replica().await;
    die(&deployment, &replica, 2).await;
    until("the alert is given up", async || {
        replica.metric(FAILED).await >= 1.0
    })
    .await;
    target.answer(Answer::Status(200));
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    deployment.wait_for_state(&event, State::Done).await;
    let warnings = replica.lines_of_level("WARN");
    let alerts = warnings
        .iter()
        .filter(|line| line.contains("HOOKGATE_NOTIFY_URL"));
    assert_eq!(alerts.count(), 1, "once a minute: {warnings:#?}");
    assert!(!replica.process().lines().join("\n").contains("canary"));
    assert_eq!(replica.stop().await, Some(0));
}

#[tokio::test]
async fn a_sink_that_hangs_delays_no_event_and_no_shutdown_and_is_told_by_the_next_process() {
    let (target, sink) = (Upstream::start().await, Upstream::start().await);
    let gate = Gate::closed();
    sink.answer(Answer::Gate(gate.clone(), 200));
    let deployment = deadly(Stores::PostgresAlone, &target).await;
    let deployment = deployment.set("HOOKGATE_NOTIFY_URL", &sink.url());
    let replica = deployment.replica().await;
    let dead = die(&deployment, &replica, 1).await;
    sink.wait_for(1).await;
    target.answer(Answer::Status(200));
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(replica.stop().await, Some(0));

    gate.open();
    let before = sink.requests().len();
    let next = deployment.replica().await;
    sink.wait_for(before + 1).await;
    assert!(texts(&sink)[before].contains(&dead[0].target_id()));
    until("the alert is counted", async || next.metric(SENT).await == 1.0).await;
}
