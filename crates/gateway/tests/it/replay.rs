//! A finished event that a person wants to run again: once for each time they ask, under a new id, and written down.
//! A provider that sends it again changes nothing.

use hookgate_harness::{Answer, Upstream};
use hookgate_ledger::{Change, Changed, Reason, State};

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider::{self, Signed};

/// What targets know a replayed event by.
fn replayed_id(event: &Signed, generation: u32) -> String {
    format!("{}@{generation}:{}", event.source, event.event_id)
}

async fn replay(deployment: &Deployment, event: &Signed) -> Changed {
    let reason = Reason {
        actor: "maria".to_owned(),
        why: "the handler had a bug".to_owned(),
    };
    let (desk, key) = (deployment.desk(), event.key());
    let changed = desk.change(&key, Change::Replay, Some(0), &reason);
    changed.await.expect("the ledger answers")
}

#[tokio::test]
async fn a_finished_event_is_run_again_for_a_person_and_not_for_a_copy() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let (replica, event) = (deployment.replica().await, provider::fresh());
        assert!(replica.deliver(&event).await.is_ok(false), "{stores:?}");
        deployment.wait_for_state(&event, State::Done).await;
        assert!(replica.deliver(&event).await.is_ok(true), "{stores:?}");
        assert_eq!(target.requests().len(), 1, "{stores:?}");

        let both = tokio::join!(replay(&deployment, &event), replay(&deployment, &event));
        let both = [both.0, both.1];
        let won = both
            .iter()
            .filter(|changed| **changed == Changed::Done { generation: 1 });
        assert_eq!(won.count(), 1, "{stores:?}: {both:?}");

        target.wait_until(|calls| calls.len() == 2).await;
        deployment.wait_for_state(&event, State::Done).await;
        let runs = target.requests_for(&replayed_id(&event, 1));
        assert_eq!(runs.len(), 1, "{stores:?}");
        assert_eq!(runs[0].header("idempotency-key"), runs[0].id(), "{stores:?}");
        assert_eq!(runs[0].header("hookgate-attempt"), Some("1"), "{stores:?}");
        assert_eq!(runs[0].body, event.body, "{stores:?}");
        let detail = deployment.desk().event(&event.key()).await;
        let audit = detail.expect("the ledger answers").expect("it is kept").audit;
        let written: Vec<_> = audit
            .iter()
            .map(|row| (row.actor.as_str(), row.action.as_str(), row.detail.as_deref()))
            .collect();
        assert_eq!(
            written,
            [("maria", "replay", Some("the handler had a bug"))],
            "{stores:?}"
        );
        let counted = "hookgate_replays_total{source=\"stripe\"}";
        until("it is counted", async || replica.metric(counted).await == 1.0).await;

        // The claim's done mark and the row say the same as before.
        assert!(replica.deliver(&event).await.is_ok(true), "{stores:?}");
        assert_eq!(target.requests().len(), 2, "{stores:?}");
    }
}

#[tokio::test]
async fn a_replay_that_fails_is_tried_again_under_its_own_id_and_counts_once() {
    let target = Upstream::start().await;
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let deployment = deployment.set("HOOKGATE_RETRY_BASE", "20ms");
    let (replica, event) = (deployment.replica().await, provider::fresh());
    assert!(replica.deliver(&event).await.is_ok(false));
    deployment.wait_for_state(&event, State::Done).await;
    target.answer(Answer::FailFirst {
        times: 2,
        status: 500,
    });
    assert_eq!(replay(&deployment, &event).await, Changed::Done { generation: 1 });
    target.wait_until(|calls| calls.len() == 4).await;
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 3);
    assert_eq!(target.count_for(&replayed_id(&event, 1)), 3);
    let counted = "hookgate_replays_total{source=\"stripe\"}";
    until("it is counted", async || replica.metric(counted).await == 1.0).await;
}

#[tokio::test]
async fn an_event_that_nobody_wanted_can_be_delivered_when_somebody_does() {
    for stores in Stores::KEEPING {
        let deployment = Deployment::on(stores).await;
        let unwanting = deployment.replica().await;
        let event = provider::stripe("evt_of_a_type_nobody_knew");
        assert!(unwanting.deliver(&event).await.is_ok(false), "{stores:?}");
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(entry.last_error.as_deref(), Some("no_consumer"), "{stores:?}");
        assert_eq!(unwanting.stop().await, Some(0), "{stores:?}");

        let target = Upstream::start().await;
        let deployment = deployment.delivering_to(&target);
        let wanting = deployment.replica().await;
        assert!(wanting.deliver(&event).await.is_ok(true), "{stores:?}");
        assert_eq!(replay(&deployment, &event).await, Changed::Done { generation: 1 });
        target.wait_for(1).await;
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!((entry.attempts, entry.last_error), (1, None), "{stores:?}");
        assert_eq!(target.count_for(&replayed_id(&event, 1)), 1, "{stores:?}");
    }
}
