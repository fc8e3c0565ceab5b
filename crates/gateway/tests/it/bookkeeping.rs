//! What can fail beside the event itself: replies of Redis that get lost on the way, notes that cannot be
//! written after the effect, answers that never arrive. None of it changes what happened to the event.

use std::collections::BTreeSet;

use hookgate_harness::{Answer, Fault, Gate, PostgresServer, Proxy, RedisServer, Then, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::patience::{eventually, until};
use crate::provider;

/// The done mark as it goes over the wire.
const DONE_MARK: &[u8] = b"\r\nd:";

/// Longest wait for a reply that is lost: longer than a busy machine takes for one that is not.
const LIMIT: &str = "1s";

/// How a reply can get lost.
const LOSSES: [Then; 2] = [Then::Reset, Then::Silence];

#[tokio::test]
async fn a_claim_whose_reply_is_lost_is_no_duplicate() {
    for forward in [false, true] {
        for then in LOSSES {
            let target = Upstream::start().await;
            let proxy = Proxy::start(RedisServer::shared().await.addr()).await;
            let deployment = Deployment::on(Stores::RedisAndPostgres)
                .await
                .through("REDIS_URL", &proxy)
                .set("HOOKGATE_REDIS_TIMEOUT", LIMIT);
            let deployment = deployment.delivering_to(&target);
            let handler = if forward { "forward" } else { "inbox" };
            let replica = deployment.set("HOOKGATE_HANDLER", handler).replica().await;
            let event = provider::fresh();
            proxy.set_for(event.event_id.as_bytes(), Fault::DropNextReply { then });
            let answer = replica.deliver(&event).await;
            assert!(answer.is_ok(false), "{handler}, {then:?}: {answer:?}");
            assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
            assert_eq!(replica.deliveries("stripe", "duplicate").await, 0.0);
            assert!(replica.deliver(&event).await.is_ok(true), "{handler}, {then:?}");
            target.wait_for(1).await;
            assert_eq!(target.count_for(&event.target_id()), 1, "{handler}, {then:?}");
        }
    }
}

#[tokio::test]
async fn without_a_ledger_a_claim_is_known_by_its_token_after_a_reset() {
    let (target, redis) = (Upstream::start().await, RedisServer::shared().await);
    let proxy = Proxy::start(redis.addr()).await;
    let deployment = Deployment::on(Stores::RedisAlone)
        .await
        .through("REDIS_URL", &proxy)
        .set("HOOKGATE_REDIS_TIMEOUT", LIMIT);
    let replica = deployment.forwarding_to(&target).replica().await;
    let event = provider::fresh();
    let fault = Fault::DropNextReply { then: Then::Reset };
    proxy.set_for(event.event_id.as_bytes(), fault);
    assert!(replica.deliver(&event).await.is_ok(false));
    assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
    assert!(replica.deliver(&event).await.is_ok(true));
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn without_a_ledger_a_silent_claim_promises_nothing_and_blocks_nothing() {
    let (target, redis) = (Upstream::start().await, RedisServer::shared().await);
    let proxy = Proxy::start(redis.addr()).await;
    let deployment = Deployment::on(Stores::RedisAlone)
        .await
        .through("REDIS_URL", &proxy)
        .set("HOOKGATE_REDIS_TIMEOUT", LIMIT);
    let replica = deployment.forwarding_to(&target).replica().await;
    let event = provider::fresh();
    let fault = Fault::DropNextReply { then: Then::Silence };
    proxy.set_for(event.event_id.as_bytes(), fault);
    let refused = replica.deliver(&event).await;
    assert!(refused.says_later(503, "unavailable"), "{refused:?}");
    assert_eq!(target.count_for(&event.target_id()), 0);
    // The claim that was set unseen is given back by its token.
    assert_eq!(redis.cli(&["EXISTS", &event.claim_key()]), "0");
    assert!(replica.deliver(&event).await.is_ok(false));
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn a_done_mark_that_cannot_be_written_changes_no_answer() {
    for forward in [false, true] {
        for then in LOSSES {
            let target = Upstream::start().await;
            let proxy = Proxy::start(RedisServer::shared().await.addr()).await;
            let deployment = Deployment::on(Stores::RedisAndPostgres)
                .await
                .through("REDIS_URL", &proxy)
                .set("HOOKGATE_REDIS_TIMEOUT", LIMIT);
            let deployment = deployment.delivering_to(&target);
            let handler = if forward { "forward" } else { "inbox" };
            let replica = deployment.set("HOOKGATE_HANDLER", handler).replica().await;
            let event = provider::fresh();
            proxy.set_for(DONE_MARK, Fault::DropNextReply { then });
            assert!(replica.deliver(&event).await.is_ok(false), "{handler}, {then:?}");
            until("the reply to the mark is lost", async || {
                proxy.fault() == Fault::None
            })
            .await;
            assert!(replica.deliver(&event).await.is_ok(true), "{handler}, {then:?}");
            target.wait_for(1).await;
            assert_eq!(target.count_for(&event.target_id()), 1, "{handler}, {then:?}");
        }
    }
}

#[tokio::test]
async fn redis_lost_while_the_target_works_changes_no_answer() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    let proxy = Proxy::start(RedisServer::shared().await.addr()).await;
    let deployment = Deployment::on(Stores::RedisAndPostgres)
        .await
        .through("REDIS_URL", &proxy)
        .set("HOOKGATE_REDIS_TIMEOUT", LIMIT);
    let replica = deployment.forwarding_to(&target).replica().await;
    let event = provider::fresh();
    let mut first = replica.send(&event);
    target.wait_for(1).await;
    proxy.set(Fault::Refuse);
    gate.open();
    assert!(first.answer().await.is_ok(false));
    assert!(replica.deliver(&event).await.is_ok(true), "the ledger knows it");
    proxy.set(Fault::None);
    until("claims are used again", async || replica.claims_are_up().await).await;
    assert!(
        replica.deliver(&event).await.is_ok(true),
        "our old claim still stands"
    );
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn a_row_that_cannot_be_finished_at_once_is_finished_later() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    for redis in [true, false] {
        let proxy = Proxy::start(PostgresServer::shared().await.addr()).await;
        let stores = if redis {
            Stores::RedisAndPostgres
        } else {
            Stores::PostgresAlone
        };
        let deployment = Deployment::on(stores).await.through("DATABASE_URL", &proxy);
        let deployment = deployment.forwarding_to(&target).set("HOOKGATE_CLAIM_WAIT", "0s");
        let replica = deployment.replica().await;
        let event = provider::fresh();
        let mut first = replica.send(&event);
        target
            .wait_until(|seen| seen.iter().any(|one| one.id() == Some(&event.target_id())))
            .await;
        proxy.set(Fault::Refuse);
        gate.open();
        let answer = first.answer().await;
        assert!(answer.is_ok(false), "{stores:?}: the target took it: {answer:?}");
        assert_eq!(
            deployment.state(&event).await,
            Some((State::Running, 1)),
            "{stores:?}"
        );

        proxy.set(Fault::None);
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(entry.attempts, 1, "{stores:?}");
        let copy = eventually("the ledger answers", async || {
            let answer = replica.deliver(&event).await;
            (answer.status == 200).then_some(answer)
        });
        assert!(copy.await.is_ok(true), "{stores:?}");
        assert_eq!(target.count_for(&event.target_id()), 1, "{stores:?}");
    }
}

#[tokio::test]
async fn a_row_is_finished_also_after_its_lease_if_nobody_else_could_have_it_meanwhile() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    let proxy = Proxy::start(PostgresServer::shared().await.addr()).await;
    let deployment = Deployment::on(Stores::RedisAndPostgres).await;
    let deployment = deployment
        .forwarding_to(&target)
        .set("HOOKGATE_CLAIM_LEASE", "1s");
    let through = deployment.clone().through("DATABASE_URL", &proxy);
    let replica = through.start("receive").await;
    let event = provider::fresh();
    let mut first = replica.send(&event);
    target.wait_for(1).await;
    proxy.set(Fault::Refuse);
    gate.open();
    assert!(first.answer().await.is_ok(false), "the target took it");
    until("the lease is over", async || {
        let entry = deployment.entry(&event).await;
        entry.is_some_and(|entry| entry.state == State::Running && entry.lease_ended)
    })
    .await;
    proxy.set(Fault::None);
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 1);
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn a_delivery_that_cannot_be_settled_at_once_is_not_made_again() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    let proxy = Proxy::start(PostgresServer::shared().await.addr()).await;
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let deployment = deployment.through("DATABASE_URL", &proxy);
    let replica = deployment.replica().await;
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    proxy.set(Fault::Refuse);
    until("the ledger is known to be away", async || {
        !replica.ledger_is_up().await
    })
    .await;
    gate.open();
    target
        .wait_until(|seen| seen.iter().all(|one| one.ended.is_some()))
        .await;
    let refused = replica.deliver(&provider::fresh()).await;
    assert!(
        refused.says_later(503, "unavailable"),
        "it is still away: {refused:?}"
    );
    proxy.set(Fault::None);
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 1);
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn an_answer_lost_on_its_way_costs_the_provider_one_failure() {
    for forward in [false, true] {
        let target = Upstream::start().await;
        let deployment = Deployment::on(Stores::RedisAndPostgres)
            .await
            .delivering_to(&target);
        let handler = if forward { "forward" } else { "inbox" };
        let replica = deployment.set("HOOKGATE_HANDLER", handler).replica().await;
        let event = provider::fresh();
        let proxy = Proxy::start(replica.public().parse().expect("an address")).await;
        proxy.set(Fault::DropNextReply { then: Then::Reset });
        let address = proxy.addr().to_string();
        let lost = replica.send_to(&address, &event).outcome().await;
        assert_eq!(lost, None, "the provider sees a failure");
        let again = replica.send_to(&address, &event).answer().await;
        assert!(again.is_ok(true), "{handler}: {again:?}");
        assert_eq!(replica.deliveries("stripe", "accepted").await, 1.0);
        assert_eq!(replica.deliveries("stripe", "duplicate").await, 1.0);
        target.wait_for(1).await;
        assert_eq!(target.count_for(&event.target_id()), 1, "{handler}");
        assert_eq!(replica.lines_of_level("ERROR"), Vec::<String>::new(), "{handler}");
    }
}

#[tokio::test]
async fn a_settlement_outlasts_a_lock_that_is_held_for_longer_than_one_statement_waits() {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), 200));
    let deployment = Deployment::on(Stores::PostgresAlone).await.delivering_to(&target);
    let replica = deployment.replica().await;
    let event = provider::fresh();
    assert!(replica.deliver(&event).await.is_ok(false));
    target.wait_for(1).await;
    let held = deployment.hold().await;
    gate.open();
    let mut waits = BTreeSet::new();
    until("it has waited for the lock twice", async || {
        let waiting = "SELECT query_start FROM pg_stat_activity WHERE datname = current_database()
                       AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO webhook_attempts%'";
        waits.extend(deployment.sql(waiting).await.lines().map(str::to_owned));
        waits.len() >= 2
    })
    .await;
    drop(held);
    let entry = deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(entry.attempts, 1);
    assert_eq!(target.count_for(&event.target_id()), 1, "it was called once");
}
