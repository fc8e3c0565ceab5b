//! A source that changes its ways, or a store that was away at the wrong moment: what was left is seen through.

use hookgate_harness::{Answer, Gate, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider;

#[tokio::test]
async fn an_inbox_sees_through_what_a_forward_left() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        target.answer(Answer::Status(500));
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let forward = deployment.replica().await;
        let event = provider::fresh();
        assert_eq!(forward.deliver(&event).await.status, 500, "{stores:?}");
        assert_eq!(forward.stop().await, Some(0));

        target.answer(Answer::Status(200));
        let deployment = deployment.set("HOOKGATE_HANDLER", "inbox");
        let inbox = deployment.replica().await;
        assert!(inbox.deliver(&event).await.is_ok(true), "{stores:?}: it is kept");
        deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(target.count_for(&event.target_id()), 2, "{stores:?}");
    }
}

#[tokio::test]
async fn a_done_mark_that_could_not_be_set_is_set_when_redis_answers() {
    let (redis, target, gate) = (
        RedisServer::start().await,
        Upstream::start().await,
        Gate::closed(),
    );
    target.answer(Answer::Gate(gate.clone(), 200));
    let deployment = Deployment::with_redis_alone(&redis.url()).forwarding_to(&target);
    let replica = deployment.set("HOOKGATE_REDIS_TIMEOUT", "250ms").replica().await;
    let event = provider::fresh();
    let away = async {
        target.wait_for(1).await;
        redis.pause();
        gate.open();
    };
    let (answer, ()) = tokio::join!(replica.deliver(&event), away);
    assert!(answer.is_ok(false), "{answer:?}");

    redis.resume();
    let key = format!("webhook:stripe:{}", event.event_id);
    until("the mark is set", async || {
        redis.cli(&["GET", &key]).starts_with("d:")
    })
    .await;
    until("claims are back", async || replica.claims_are_up().await).await;
    assert!(replica.deliver(&event).await.is_ok(true));
    assert_eq!(target.count_for(&event.target_id()), 1);
}
