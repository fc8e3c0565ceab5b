//! The life of a claim: how it is set, how long it stands, who takes it away, and that the ledger knows an
//! event when its claim is long gone.

use hookgate_harness::{Answer, Fault, PostgresServer, Proxy, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::patience::eventually;
use crate::provider;

#[tokio::test]
async fn a_fresh_event_is_claimed_by_one_set_if_absent_that_lives_seven_days() {
    let (redis, target) = (RedisServer::start().await, Upstream::start().await);
    let inbox = Deployment::with_postgres(Some(&redis.url())).await;
    let forward = Deployment::with_redis_alone(&redis.url()).forwarding_to(&target);
    for deployment in [inbox, forward] {
        let replica = deployment.replica().await;
        let event = provider::fresh();
        let monitor = redis.monitor().await;
        assert!(replica.deliver(&event).await.is_ok(false));
        let commands = monitor.commands().await;
        let about = |command: &&String| command.contains(&event.claim_key());
        let first = commands.iter().find(about).expect("the event is claimed");
        let claim = format!("\"SET\" \"{}\" \"i:", event.claim_key());
        assert!(first.contains(&claim), "{first}");
        assert!(
            first.contains("\"NX\"") && first.ends_with("\"EX\" \"604800\""),
            "{first}"
        );
        let claims = commands.iter().filter(|command| command.contains("\"NX\""));
        assert_eq!(claims.count(), 1, "{commands:#?}");
    }
}

#[tokio::test]
async fn a_finished_event_is_marked_done_for_seven_days() {
    let target = Upstream::start().await;
    for stores in [Stores::RedisAndPostgres, Stores::RedisAlone] {
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let (redis, replica) = (RedisServer::shared().await, deployment.replica().await);
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        assert!(redis.cli(&["GET", &event.claim_key()]).starts_with("d:"));
        let life: u32 = redis
            .cli(&["TTL", &event.claim_key()])
            .parse()
            .expect("a life in seconds");
        assert!((604_000..=604_800).contains(&life), "{life}");
        assert!(replica.deliver(&event).await.is_ok(true));
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
}

#[tokio::test]
async fn a_failed_event_is_free_at_once_and_runs_at_the_next_try() {
    for stores in Stores::ALL {
        let target = Upstream::start().await;
        target.answer(Answer::FailFirst {
            times: 1,
            status: 500,
        });
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let replica = deployment.replica().await;
        let event = provider::fresh();

        let first = replica.deliver(&event).await;
        assert_eq!(
            (first.status, first.error()),
            (500, "handler_failed"),
            "{stores:?}"
        );
        let row = stores.have_a_ledger().then_some((State::Failed, 1));
        assert_eq!(deployment.state(&event).await, row, "{stores:?}");
        let redis = RedisServer::shared().await;
        assert_eq!(redis.cli(&["EXISTS", &event.claim_key()]), "0", "{stores:?}");

        assert!(replica.deliver(&event).await.is_ok(false), "{stores:?}");
        let row = stores.have_a_ledger().then_some((State::Done, 2));
        assert_eq!(deployment.state(&event).await, row, "{stores:?}");
        assert_eq!(replica.deliveries("stripe", "failed").await, 1.0);
        assert_eq!(replica.deliveries("stripe", "accepted").await, 1.0);
        assert_eq!(replica.deliveries("stripe", "duplicate").await, 0.0);
        assert_eq!(
            target.count_for(&event.target_id()),
            2,
            "one failed, one took effect"
        );
    }
}

#[tokio::test]
async fn an_event_that_the_worker_fails_at_stays_queued_until_it_is_done() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        target.answer(Answer::FailFirst {
            times: 1,
            status: 500,
        });
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let deployment = deployment.set("HOOKGATE_RETRY_BASE", "10ms");
        let replica = deployment.replica().await;
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false), "{stores:?}");
        // The provider's own next try finds it durably kept, whatever the worker has done with it by now.
        assert!(replica.deliver(&event).await.is_ok(true), "{stores:?}");
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(entry.attempts, 2, "{stores:?}");
        assert_eq!(
            target.count_for(&event.target_id()),
            2,
            "one failed, one took effect"
        );
    }
}

#[tokio::test]
async fn what_could_not_be_kept_leaves_no_claim_behind() {
    let (redis, postgres) = (RedisServer::shared().await, PostgresServer::shared().await);
    let (proxy, target) = (Proxy::start(postgres.addr()).await, Upstream::start().await);
    let deployment = Deployment::on(Stores::RedisAndPostgres).await;
    let deployment = deployment.delivering_to(&target).through("DATABASE_URL", &proxy);
    let replica = deployment.replica().await;
    let event = provider::fresh();

    proxy.set(Fault::Refuse);
    let refused = replica.deliver(&event).await;
    assert!(refused.says_later(503, "unavailable"), "{refused:?}");
    assert_eq!(redis.cli(&["EXISTS", &event.claim_key()]), "0");
    assert_eq!(deployment.entry(&event).await, None);

    proxy.set(Fault::None);
    let accepted = eventually("the event is accepted", async || {
        let answer = replica.deliver(&event).await;
        let later = answer.says_later(503, "unavailable");
        assert!(later || answer.is_ok(false), "{answer:?}");
        (!later).then_some(answer)
    });
    assert!(accepted.await.is_ok(false));
    deployment.wait_for_state(&event, State::Done).await;
    assert!(replica.deliver(&event).await.is_ok(true));
    assert_eq!(target.count_for(&event.target_id()), 1);
}

#[tokio::test]
async fn the_ledger_knows_an_event_whose_claim_has_ended() {
    let redis = RedisServer::shared().await;
    for forward in [false, true] {
        let target = Upstream::start().await;
        let deployment = Deployment::on(Stores::RedisAndPostgres)
            .await
            .delivering_to(&target);
        let handler = if forward { "forward" } else { "inbox" };
        let deployment = deployment.set("HOOKGATE_HANDLER", handler);
        let replica = deployment.replica().await;
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        deployment.wait_for_state(&event, State::Done).await;
        // Days 8, 14, 15 and 30: what the claim's end looks like each time.
        for day in ["8", "14", "15", "30"] {
            assert_eq!(redis.cli(&["DEL", &event.claim_key()]), "1", "day {day}");
            assert!(replica.deliver(&event).await.is_ok(true), "day {day}");
        }
        assert_eq!(replica.duplicates("stripe", "ledger").await, 4.0);
        // The last copy has put the mark back, so the next one costs the ledger nothing.
        assert!(replica.deliver(&event).await.is_ok(true));
        assert_eq!(replica.duplicates("stripe", "claim").await, 1.0);
        assert_eq!(target.count_for(&event.target_id()), 1);
    }
}
