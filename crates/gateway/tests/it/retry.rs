//! A provider that never tries again: what its target refuses is kept and tried again by the gateway.

use hookgate_harness::{Answer, Fault, PostgresServer, Proxy, Upstream};
use hookgate_ledger::State;
use hookgate_webhook::Provider;

use crate::deployment::{Deployment, Stores};
use crate::patience::until;
use crate::provider::{self, SECRET};

#[tokio::test]
async fn a_failed_forward_of_a_provider_without_retries_is_kept_and_tried_again() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        target.answer(Answer::FailFirst {
            times: 2,
            status: 500,
        });
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let deployment = deployment
            .set("GITHUB_WEBHOOK_SECRET", SECRET)
            .set("HOOKGATE_RETRY_BASE", "20ms");
        let replica = deployment.replica().await;
        let event = provider::event(Provider::Github);

        let answer = replica.deliver(&event).await;
        assert!(answer.is_ok(false), "{stores:?}: {answer:?}");
        assert!(
            deployment.entry(&event).await.is_some(),
            "{stores:?}: it is kept by the time of the answer"
        );
        let entry = deployment.wait_for_state(&event, State::Done).await;
        assert_eq!(entry.attempts, 3, "{stores:?}");
        let requests = target.requests_for(&event.target_id());
        let attempts: Vec<_> = requests
            .iter()
            .filter_map(|one| one.header("hookgate-attempt"))
            .collect();
        assert_eq!(
            attempts,
            ["1", "2", "3"],
            "{stores:?}: two failed, one took effect"
        );
        assert!(requests.iter().all(|one| one.body == event.body), "{stores:?}");
        assert!(replica.deliver(&event).await.is_ok(true), "{stores:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_kept_for_a_provider_without_retries_is_refused_and_shown() {
    let target = Upstream::start().await;
    let proxy = Proxy::start(PostgresServer::shared().await.addr()).await;
    let deployment = Deployment::on(Stores::RedisAndPostgres)
        .await
        .through("DATABASE_URL", &proxy);
    let deployment = deployment
        .forwarding_to(&target)
        .set("GITHUB_WEBHOOK_SECRET", SECRET);
    let replica = deployment.replica().await;
    proxy.set(Fault::Refuse);
    let event = provider::event(Provider::Github);
    until("the ledger is known to be away", async || {
        let answer = replica.deliver(&event).await;
        assert!(answer.says_later(503, "unavailable"), "{answer:?}");
        !replica.ledger_is_up().await
    })
    .await;
    assert!(replica.deliveries("github", "unavailable").await >= 1.0);
    assert_eq!(
        target.requests().len(),
        0,
        "nothing is forwarded that cannot be kept"
    );
}
