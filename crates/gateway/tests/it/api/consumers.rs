//! Events for consumers that pull: nobody else has an event while its lease lasts, and none is lost by those
//! who do not come back.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate_harness::{PATIENCE, Upstream};
use hookgate_ledger::State;
use serde_json::json;

use super::pull::{Consumer, LONG, deliver, deployment, items, until_waiting};
use super::{Api, problem};
use crate::deployment::Stores;

/// With claims and without, on both ledgers.
const LEDGERS: [Stores; 2] = [Stores::PostgresAlone, Stores::Embedded];

#[tokio::test]
async fn a_pulled_event_is_what_a_target_would_get_and_is_done_once_settled() {
    for stores in LEDGERS {
        let deployment = deployment(stores).await;
        let replica = deployment.replica().await;
        let consumer = Consumer::of(&replica);
        let event = deliver(&replica).await;
        let item = consumer.wait_for_one("30s").await;
        assert_eq!(
            (&item["source"], &item["event_id"]),
            (&json!("stripe"), &json!(event.event_id))
        );
        for id in ["webhook_id", "idempotency_key"] {
            assert_eq!(item[id], event.target_id());
        }
        assert_eq!(
            (&item["attempt"], &item["generation"], &item["tries"]),
            (&json!(1), &json!(0), &json!(1))
        );
        let body = STANDARD.decode(item["body_base64"].as_str().expect("a body is text"));
        assert_eq!(body.expect("a body is Base64"), event.body);
        assert_eq!(deployment.state(&event).await, Some((State::Running, 1)));
        for _ in 0..2 {
            assert_eq!(
                consumer.settle(&item, json!({"outcome": "done"})).await,
                "committed"
            );
        }
        assert_eq!(deployment.state(&event).await, Some((State::Done, 1)));
        let counted = r#"hookgate_attempts_total{outcome="done",source="stripe"}"#;
        assert_eq!(
            replica.metric(counted).await,
            1.0,
            "once, though it was told twice"
        );
        assert!(consumer.pull(json!({})).await.is_empty());
    }
}

#[tokio::test]
async fn two_consumers_never_get_the_same_event_while_its_lease_lasts() {
    for stores in [Stores::RedisAndPostgres, Stores::Embedded] {
        let deployment = deployment(stores).await;
        let replica = deployment.replica().await;
        let other = match stores {
            Stores::Embedded => None,
            _ => Some(deployment.replica().await),
        };
        let mut sent = BTreeSet::new();
        for _ in 0..60 {
            sent.insert(deliver(&replica).await.event_id);
        }
        let consumers = [
            Consumer::of(&replica),
            Consumer::of(other.as_ref().unwrap_or(&replica)),
        ];
        let pulling = consumers
            .into_iter()
            .flat_map(|consumer| [consumer.clone(), consumer]);
        let pulling: Vec<_> = pulling
            .map(|consumer| {
                tokio::spawn(async move {
                    let mut got = Vec::new();
                    loop {
                        let batch = consumer.pull(json!({"limit": 7, "lease": "1h"})).await;
                        if batch.is_empty() {
                            return got;
                        }
                        got.extend(batch);
                    }
                })
            })
            .collect();
        let mut got = Vec::new();
        for pulling in pulling {
            got.extend(pulling.await.expect("a consumer does not panic"));
        }
        // What one skipped because another was just taking it is nobody's yet.
        got.extend(
            Consumer::of(&replica)
                .pull(json!({"limit": 100, "lease": "1h"}))
                .await,
        );
        let ids: BTreeSet<_> = got
            .iter()
            .map(|item| item["event_id"].as_str().expect("an id is text").to_owned())
            .collect();
        assert_eq!((got.len(), ids), (60, sent));
    }
}

#[tokio::test]
async fn an_expired_lease_comes_again_and_its_late_settlement_is_lost() {
    for stores in LEDGERS {
        let deployment = deployment(stores).await;
        let replica = deployment.replica().await;
        let consumer = Consumer::of(&replica);
        let event = deliver(&replica).await;
        let late = consumer.wait_for_one("1s").await;
        let again = consumer.wait_for_one("1h").await;
        assert_eq!(again["event_id"], late["event_id"]);
        assert_eq!(again["idempotency_key"], late["idempotency_key"]);
        assert_eq!((&again["attempt"], &again["tries"]), (&json!(2), &json!(2)));
        for settlement in [
            json!({"outcome": "done"}),
            json!({"outcome": "retry"}),
            json!({"outcome": "dead", "error": "too late"}),
            json!({"outcome": "release"}),
            json!({"outcome": "extend", "after": "30s"}),
        ] {
            assert_eq!(consumer.settle(&late, settlement).await, "lost");
        }
        assert_eq!(deployment.state(&event).await, Some((State::Running, 2)));
        assert_eq!(
            consumer.settle(&again, json!({"outcome": "done"})).await,
            "committed"
        );
        assert_eq!(deployment.state(&event).await, Some((State::Done, 2)));
    }
}

#[tokio::test]
async fn an_extended_lease_lasts() {
    let deployment = deployment(Stores::PostgresAlone).await;
    let replica = deployment.replica().await;
    let consumer = Consumer::of(&replica);
    let event = deliver(&replica).await;
    let item = consumer.wait_for_one("1s").await;
    let extend = json!({"outcome": "extend", "after": "1h"});
    assert_eq!(consumer.settle(&item, extend).await, "committed");
    // Longer than the lease was: were it not extended, the event would come.
    assert!(consumer.pull(json!({"wait": "3s"})).await.is_empty());
    assert_eq!(deployment.state(&event).await, Some((State::Running, 1)));
    assert_eq!(
        consumer.settle(&item, json!({"outcome": "done"})).await,
        "committed"
    );
}

#[tokio::test]
async fn a_waiting_consumer_is_woken_by_an_event() {
    for stores in LEDGERS {
        let deployment = deployment(stores).await;
        let replica = deployment.replica().await;
        let mut waiting = Consumer::of(&replica).begin(json!({"wait": LONG}));
        until_waiting(&replica, 1.0).await;
        let event = deliver(&replica).await;
        let answer = tokio::time::timeout(PATIENCE, &mut waiting).await;
        let answer = answer
            .expect("it is woken")
            .expect("asking does not panic")
            .expect("an answer");
        assert_eq!(items(&answer)[0]["event_id"], event.event_id);
        until_waiting(&replica, 0.0).await;
    }
}

#[tokio::test]
async fn a_consumer_that_hangs_up_while_it_waits_takes_no_event() {
    let deployment = deployment(Stores::Embedded).await;
    let replica = deployment.replica().await;
    let consumer = Consumer::of(&replica);
    let waiting = consumer.begin(json!({"wait": LONG, "lease": "1h"}));
    until_waiting(&replica, 1.0).await;
    waiting.abort();
    until_waiting(&replica, 0.0).await;
    deliver(&replica).await;
    assert_eq!(consumer.wait_for_one("30s").await["tries"], 1);
}

#[tokio::test]
async fn a_shutdown_ends_a_wait_with_an_empty_batch() {
    let deployment = deployment(Stores::Embedded).await;
    let replica = deployment.replica().await;
    let waiting = Consumer::of(&replica).begin(json!({"wait": LONG}));
    until_waiting(&replica, 1.0).await;
    assert_eq!(replica.stop().await, Some(0));
    let answer = waiting.await.expect("asking does not panic").expect("an answer");
    assert_eq!((answer.status, items(&answer)), (200, Vec::new()));
}

#[tokio::test]
async fn an_event_whose_tries_are_used_up_is_a_dead_letter_with_the_consumers_reason() {
    for stores in LEDGERS {
        let deployment = deployment(stores)
            .await
            .set("HOOKGATE_RETRY_MAX_ATTEMPTS", "2")
            .set("HOOKGATE_RETRY_BASE", "1ms");
        let replica = deployment.replica().await;
        let consumer = Consumer::of(&replica);
        let event = deliver(&replica).await;
        for (tries, state, result) in [(1, State::Queued, "committed"), (2, State::Dead, "dead")] {
            let item = consumer.wait_for_one("30s").await;
            assert_eq!(item["tries"], tries);
            let settlement =
                json!({"outcome": "retry", "error": format!("printer is out of paper ({tries})")});
            for _ in 0..2 {
                assert_eq!(consumer.settle(&item, settlement.clone()).await, result);
            }
            assert_eq!(deployment.state(&event).await, Some((state, tries)));
        }
        let entry = deployment.entry(&event).await.expect("a row");
        assert_eq!(entry.last_error.as_deref(), Some("printer is out of paper (2)"));
    }
}

#[tokio::test]
async fn an_event_that_is_given_back_costs_no_try_and_one_that_is_buried_is_dead_at_once() {
    for stores in LEDGERS {
        let deployment = deployment(stores).await;
        let replica = deployment.replica().await;
        let consumer = Consumer::of(&replica);
        let event = deliver(&replica).await;
        for attempt in 1..=7 {
            let item = consumer.wait_for_one("30s").await;
            assert_eq!((&item["attempt"], &item["tries"]), (&json!(attempt), &json!(1)));
            assert_eq!(
                consumer.settle(&item, json!({"outcome": "release"})).await,
                "committed"
            );
        }
        let item = consumer.wait_for_one("30s").await;
        let settlement = json!({"outcome": "dead", "error": "no such customer"});
        assert_eq!(consumer.settle(&item, settlement).await, "dead");
        let entry = deployment.entry(&event).await.expect("a row");
        assert_eq!(
            (entry.state, entry.last_error.as_deref()),
            (State::Dead, Some("no such customer"))
        );
    }
}

#[tokio::test]
async fn a_receiver_whose_events_are_pulled_tells_of_their_death() {
    let sink = Upstream::start().await;
    let deployment = deployment(Stores::PostgresAlone).await;
    let deployment = deployment.set("HOOKGATE_NOTIFY_URL", &sink.url());
    let replica = deployment.start("receive").await;
    let consumer = Consumer::of(&replica);
    deliver(&replica).await;
    let item = consumer.wait_for_one("30s").await;
    let settlement = json!({"outcome": "dead", "error": "no such customer"});
    assert_eq!(consumer.settle(&item, settlement).await, "dead");
    let told = sink.wait_for(1).await;
    let text = String::from_utf8_lossy(&told[0].body).into_owned();
    assert!(text.contains("no such customer"), "{text}");
}

#[tokio::test]
async fn a_request_that_is_not_understood_leases_and_settles_nothing() {
    let deployment = deployment(Stores::Embedded).await;
    let replica = deployment.replica().await;
    let consumer = Consumer::of(&replica);
    let event = deliver(&replica).await;
    for (wishes, field) in [
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 101}), "limit"),
        (json!({"limit": "many"}), "limit"),
        (json!({"lease": "0s"}), "lease"),
        (json!({"lease": "2h"}), "lease"),
        (json!({"lease": 30}), "lease"),
        (json!({"wait": "61s"}), "wait"),
        (json!({"wait": "soon"}), "wait"),
    ] {
        let (named, allowed) = problem(&consumer.ask(wishes).await, 400, "bad_value");
        assert_eq!(named, field);
        assert!(!allowed.is_empty());
    }
    let api = Api::of(&replica).with(Some(super::CONSUME_TOKEN));
    for sources in [
        json!([]),
        json!(["nobody"]),
        json!(["stripe", "nobody"]),
        json!("stripe"),
    ] {
        let answer = api.post("/v1/consume", &json!({"sources": sources})).await;
        let (field, _) = problem(&answer, 400, "bad_value");
        assert_eq!(field, "sources", "{sources}");
    }
    assert_eq!(deployment.state(&event).await, Some((State::Queued, 0)));

    let item = consumer.wait_for_one("1h").await;
    let good = json!({"lease": item["lease"], "outcome": "done"});
    let lease = item["lease"].as_str().expect("a lease is text");
    for (bad, field) in [
        (json!({"lease": &lease[1..], "outcome": "done"}), "items[1].lease"),
        (json!({"lease": "", "outcome": "done"}), "items[1].lease"),
        (json!({"lease": lease, "outcome": "finished"}), "items[1].outcome"),
        (json!({"lease": lease}), "items[1].outcome"),
        (
            json!({"lease": lease, "outcome": "done", "after": "1s"}),
            "items[1].after",
        ),
        (
            json!({"lease": lease, "outcome": "dead", "error": "a\nb"}),
            "items[1].error",
        ),
        (json!({"lease": lease, "outcome": "extend"}), "items[1].after"),
        (
            json!({"lease": lease, "outcome": "retry", "after": "25h"}),
            "items[1].after",
        ),
    ] {
        let answer = api
            .post("/v1/consume/settle", &json!({"items": [good, bad]}))
            .await;
        let (named, _) = problem(&answer, 400, "bad_value");
        assert_eq!(named, field);
    }
    let answer = api.post("/v1/consume/settle", &json!({"items": []})).await;
    assert_eq!(problem(&answer, 400, "bad_value").0, "items");
    assert_eq!(
        deployment.state(&event).await,
        Some((State::Running, 1)),
        "nothing was settled"
    );
}
