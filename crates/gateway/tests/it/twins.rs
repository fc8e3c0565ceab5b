//! Two events that a provider made of one change, and the honest ones that only look like it.

use hookgate_harness::{Answer, Gate, Upstream};
use hookgate_ledger::{Change, Changed, Reason, State};

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::Signed;
use crate::rules::{Ruled, Says, counted, fresh_id};

const NO_RULE: &str = "";
const BY_CONTENT: &str = "[sources.stripe]\ntwin_rule = \"content\"\n";
const BY_OBJECT: &str = "[sources.stripe]\ntwin_rule = \"object\"\ntwin_types = [\"invoice.paid\"]\n";
const SHADOW: &str = "[sources.stripe]\ntwin_rule = \"content\"\ntwin_action = \"shadow\"\n";

async fn inbox(stores: Stores, rule: &str, target: &Upstream) -> (Ruled, Replica) {
    let deployment = Deployment::on(stores).await.delivering_to(target);
    let deployment = deployment.set("HOOKGATE_RETRY_BASE", "5ms");
    let ruled = Ruled::by(deployment, rule);
    let replica = ruled.deployment.replica().await;
    (ruled, replica)
}

/// Three changes of one kind to one object, as far apart as a busy second.
fn changes(event_type: &str, contents: [&str; 3]) -> Vec<Signed> {
    let object = fresh_id();
    let change = |(created, content): (i64, &str)| {
        let id = fresh_id();
        Says {
            event_type,
            object: &object,
            content,
            created,
            ..Says::new(&id)
        }
        .signed()
    };
    (0..).zip(contents).map(change).collect()
}

#[tokio::test]
async fn no_honest_update_of_an_object_is_dropped_in_any_order_under_any_rule() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for rule in [NO_RULE, BY_CONTENT, BY_OBJECT] {
        for stores in [Stores::RedisAndPostgres, Stores::Embedded] {
            let target = Upstream::start().await;
            let (_ruled, replica) = inbox(stores, rule, &target).await;
            for order in ORDERS {
                let subscription =
                    changes("customer.subscription.updated", ["a to b", "b to c", "cancelled"]);
                let refunds = changes("charge.refunded", ["10 of 30", "20 of 30", "30 of 30"]);
                for event in order
                    .map(|n| &subscription[n])
                    .into_iter()
                    .chain(order.map(|n| &refunds[n]))
                {
                    let answer = replica.deliver(event).await;
                    assert!(answer.is_ok(false), "{stores:?} {rule} {order:?}: {answer:?}");
                }
            }
            target.wait_for(6 * ORDERS.len()).await;
            assert_eq!(
                replica.duplicates("stripe", "content").await,
                0.0,
                "{stores:?} {rule}"
            );
            assert_eq!(
                counted(&replica, "twins_shadow_total", "stripe").await,
                0.0,
                "{stores:?} {rule}"
            );
        }
    }
}

#[tokio::test]
async fn a_change_that_is_taken_back_and_made_again_is_three_changes() {
    for rule in [NO_RULE, BY_CONTENT, BY_OBJECT, SHADOW] {
        for stores in Stores::KEEPING {
            let target = Upstream::start().await;
            let (_ruled, replica) = inbox(stores, rule, &target).await;
            for event in changes("customer.subscription.updated", ["plan a", "plan b", "plan a"]) {
                assert!(replica.deliver(&event).await.is_ok(false), "{stores:?} {rule}");
            }
            target.wait_for(3).await;
            assert_eq!(
                counted(&replica, "twins_shadow_total", "stripe").await,
                0.0,
                "{stores:?} {rule}"
            );
        }
    }
}

/// Two event objects of one change.
fn twins() -> (Signed, Signed) {
    let (object, first, second) = (fresh_id(), fresh_id(), fresh_id());
    let says = |id, created| {
        Says {
            object: &object,
            created,
            ..Says::new(id)
        }
        .signed()
    };
    (says(&first, 0), says(&second, 1))
}

#[tokio::test]
async fn the_second_event_of_one_change_is_kept_and_not_delivered() {
    for rule in [BY_CONTENT, BY_OBJECT] {
        for stores in Stores::KEEPING {
            let target = Upstream::start().await;
            let (ruled, replica) = inbox(stores, rule, &target).await;
            let (first, second) = twins();
            assert!(replica.deliver(&first).await.is_ok(false), "{stores:?} {rule}");
            let answer = replica.deliver(&second).await;
            assert!(answer.is_ok(true), "{stores:?} {rule}: {answer:?}");
            assert_eq!(answer.json["event_id"], second.event_id.as_str());
            ruled.deployment.wait_for_state(&first, State::Done).await;
            assert_eq!(
                ruled.deployment.state(&second).await,
                Some((State::Twin, 0)),
                "{stores:?} {rule}"
            );
            assert_eq!(target.count_for(&first.target_id()), 1, "{stores:?} {rule}");
            assert_eq!(target.requests().len(), 1, "{stores:?} {rule}");
            assert_eq!(replica.duplicates("stripe", "content").await, 1.0);
            assert_eq!(replica.deliveries("stripe", "twin").await, 1.0);

            assert!(
                replica.deliver(&second).await.is_ok(true),
                "its own copies are plain duplicates"
            );
            let layer = if stores == Stores::PostgresAlone {
                "ledger"
            } else {
                "claim"
            };
            assert_eq!(
                replica.duplicates("stripe", layer).await,
                1.0,
                "{stores:?}: its claim is done"
            );
            assert_eq!(replica.duplicates("stripe", "content").await, 1.0);
        }
    }
}

#[tokio::test]
async fn a_twin_that_a_person_replays_is_delivered_once_and_counted_as_a_replay() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        let (ruled, replica) = inbox(stores, BY_CONTENT, &target).await;
        let (first, second) = twins();
        assert!(replica.deliver(&first).await.is_ok(false), "{stores:?}");
        assert!(replica.deliver(&second).await.is_ok(true), "{stores:?}");
        ruled.deployment.wait_for_state(&first, State::Done).await;
        let reason = Reason {
            actor: "maria".to_owned(),
            why: "it was a change of its own".to_owned(),
        };
        let (desk, key) = (ruled.deployment.desk(), second.key());
        let replay = || desk.change(&key, Change::Replay, Some(0), &reason);
        let (one, other) = tokio::join!(replay(), replay());
        let both = [
            one.expect("the ledger answers"),
            other.expect("the ledger answers"),
        ];
        let won = both
            .iter()
            .filter(|changed| **changed == Changed::Done { generation: 1 });
        assert_eq!(won.count(), 1, "{stores:?}: {both:?}");
        target.wait_until(|calls| calls.len() == 2).await;
        ruled.deployment.wait_for_state(&second, State::Done).await;
        let replayed = format!("stripe@1:{}", second.event_id);
        let runs = target.requests_for(&replayed);
        assert_eq!(runs.len(), 1, "{stores:?}");
        assert_eq!(runs[0].body, second.body, "{stores:?}");
        let detail = desk.event(&key).await.expect("the ledger answers");
        let shown = detail.expect("it is kept").summary;
        assert_eq!(
            shown.twin_of.as_deref(),
            Some(first.event_id.as_str()),
            "{stores:?}"
        );
        let counted = "hookgate_replays_total{source=\"stripe\"}";
        until("it is counted", async || replica.metric(counted).await == 1.0).await;
        assert!(
            replica.deliver(&second).await.is_ok(true),
            "{stores:?}: a plain duplicate"
        );
        assert_eq!(target.requests().len(), 2, "{stores:?}");
    }
}

#[tokio::test]
async fn without_a_rule_and_in_shadow_both_are_delivered() {
    for (rule, shadowed) in [(NO_RULE, 0.0), (SHADOW, 1.0)] {
        for stores in Stores::KEEPING {
            let target = Upstream::start().await;
            let (_ruled, replica) = inbox(stores, rule, &target).await;
            let (first, second) = twins();
            assert!(replica.deliver(&first).await.is_ok(false), "{stores:?} {rule}");
            assert!(replica.deliver(&second).await.is_ok(false), "{stores:?} {rule}");
            target.wait_for(2).await;
            assert_eq!(
                counted(&replica, "twins_shadow_total", "stripe").await,
                shadowed,
                "{stores:?}"
            );
            assert_eq!(replica.duplicates("stripe", "content").await, 0.0, "{stores:?}");
        }
    }
}

#[tokio::test]
async fn of_twins_that_come_to_two_replicas_at_once_one_is_delivered() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone] {
        let target = Upstream::start().await;
        let (ruled, one) = inbox(stores, BY_CONTENT, &target).await;
        let two = ruled.deployment.replica().await;
        for round in 1..=20 {
            let (first, second) = twins();
            let (a, b) = tokio::join!(one.deliver(&first), two.deliver(&second));
            let fresh = [&a, &b].into_iter().filter(|answer| answer.is_ok(false)).count();
            let known = [&a, &b].into_iter().filter(|answer| answer.is_ok(true)).count();
            assert_eq!((fresh, known), (1, 1), "{stores:?}: {a:?}, {b:?}");
            target.wait_for(round).await;
            for event in [&first, &second] {
                assert!(ruled.deployment.entry(event).await.is_some(), "both ids are kept");
            }
        }
        let waiting = "SELECT CAST(count(*) AS TEXT) FROM webhook_events WHERE state NOT IN ('done', 'twin')";
        until("all are at rest", async || {
            ruled.deployment.sql(waiting).await == "0"
        })
        .await;
        assert_eq!(target.requests().len(), 20, "{stores:?}");
    }
}

#[tokio::test]
async fn an_original_that_died_does_not_suppress() {
    for stores in Stores::KEEPING {
        let target = Upstream::start().await;
        let (ruled, replica) = inbox(stores, BY_CONTENT, &target).await;
        let (first, second) = twins();
        // Final at once.
        target.answer(Answer::Status(410));
        assert!(replica.deliver(&first).await.is_ok(false), "{stores:?}");
        ruled.deployment.wait_for_state(&first, State::Dead).await;
        target.answer(Answer::Status(200));
        assert!(replica.deliver(&second).await.is_ok(false), "{stores:?}");
        ruled.deployment.wait_for_state(&second, State::Done).await;
        assert_eq!(replica.deliveries("stripe", "twin").await, 0.0, "{stores:?}");
    }
}

#[tokio::test]
async fn a_forward_waits_for_its_original_and_runs_only_if_that_failed() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone] {
        for (fate, ends_as) in [(200, State::Twin), (500, State::Done)] {
            let (target, gate) = (Upstream::start().await, Gate::closed());
            let deployment = Deployment::on(stores).await.forwarding_to(&target);
            let deployment = deployment.set("HOOKGATE_CLAIM_WAIT", "50ms");
            let ruled = Ruled::by(deployment, BY_CONTENT);
            let replica = ruled.deployment.replica().await;
            let (first, second) = twins();
            target.answer(Answer::Gate(gate.clone(), fate));
            let mut running = replica.send(&first);
            target.wait_for(1).await;
            let early = replica.deliver(&second).await;
            assert!(early.says_later(409, "in_flight"), "{stores:?} {fate}: {early:?}");
            assert_eq!(ruled.deployment.state(&second).await, None, "{stores:?} {fate}");

            target.answer(Answer::Status(200));
            gate.open();
            assert_eq!(running.answer().await.status, fate, "{stores:?}");
            let later = replica.deliver(&second).await;
            assert!(later.is_ok(fate == 200), "{stores:?} {fate}: {later:?}");
            let state = ruled.deployment.state(&second).await.map(|(state, _)| state);
            assert_eq!(state, Some(ends_as), "{stores:?} {fate}");
            let calls = usize::from(fate == 500);
            assert_eq!(target.count_for(&second.target_id()), calls, "{stores:?} {fate}");
        }
    }
}

#[tokio::test]
async fn a_forward_that_waits_is_answered_when_its_original_succeeds() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    let deployment = Deployment::on(Stores::RedisAndPostgres)
        .await
        .forwarding_to(&target);
    let ruled = Ruled::by(deployment.set("HOOKGATE_CLAIM_WAIT", "10m"), BY_CONTENT);
    let (one, two) = (ruled.deployment.replica().await, ruled.deployment.replica().await);
    let (first, second) = twins();
    target.answer(Answer::Gate(gate.clone(), 200));
    let mut running = one.send(&first);
    target.wait_for(1).await;
    let mut waiting = two.send(&second);
    let claim = "hookgate_claim_duration_seconds_count";
    until("the second one is on its way", async || {
        two.metric(claim).await >= 1.0
    })
    .await;
    gate.open();
    assert!(running.answer().await.is_ok(false));
    assert!(waiting.answer().await.is_ok(true));
    assert_eq!(target.count_for(&second.target_id()), 0);
}
