//! The API while the ledger is away, without a ledger, and in every role.

use hookgate_harness::{Fault, PostgresServer, Proxy};
use serde_json::json;

use super::{ADMIN_TOKEN, Api, problem};
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, SECRET};

#[tokio::test]
async fn while_the_ledger_is_away_every_question_is_a_503_that_says_to_come_again() {
    let server = PostgresServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let database = format!("postgres://postgres@{}/postgres", proxy.addr());
    let deployment = Deployment::with_database("none", &database)
        .set("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN)
        .set("HOOKGATE_CONSUMER", "pull");
    let replica = deployment.replica().await;
    let api = Api::of(&replica);
    assert!(replica.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    assert_eq!(api.get("/v1/events/stripe/evt_1").await.status, 200);
    proxy.set(Fault::Refuse);
    until("the outage is noticed", async || !replica.ledger_is_up().await).await;
    let reason = json!({"who": "maria", "why": "again", "generation": 0});
    let consume = json!({"sources": ["stripe"]});
    for answer in [
        api.get("/v1/events").await,
        api.get("/v1/events/stripe/evt_1").await,
        api.post("/v1/events/stripe/evt_1/replay", &reason).await,
        api.get("/v1/targets").await,
        api.get("/v1/stats").await,
        api.post("/v1/consume", &consume).await,
    ] {
        problem(&answer, 503, "unavailable");
        assert!(answer.headers.contains_key("retry-after"));
    }
    assert_eq!(api.get("/v1/openapi.json").await.status, 200);
    proxy.set(Fault::None);
    until("the API answers again", async || {
        api.get("/v1/events/stripe/evt_1").await.status == 200
    })
    .await;
}

#[tokio::test]
async fn without_a_ledger_there_is_nothing_to_look_at_and_the_answer_says_so() {
    let replica = Deployment::on(Stores::RedisAlone)
        .await
        .set("HOOKGATE_HANDLER", "forward")
        .set("HOOKGATE_TARGET_URL", "http://127.0.0.1:1/")
        .set("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN)
        .replica()
        .await;
    let api = Api::of(&replica);
    for path in ["/v1/events", "/v1/dead-letters", "/v1/targets", "/v1/stats"] {
        problem(&api.get(path).await, 404, "no_ledger");
    }
    problem(
        &api.post("/v1/consume", &json!({"sources": ["stripe"]})).await,
        404,
        "no_ledger",
    );
}

#[tokio::test]
async fn a_search_that_takes_too_long_says_to_narrow_it_and_harms_nothing_else() {
    let server = PostgresServer::shared().await;
    let database = server.create_database().await;
    let deployment = Deployment::with_database("none", &database).set("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN);
    let replica = deployment.replica().await;
    let api = Api::of(&replica);
    assert!(replica.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    // A table so large that looking at it takes longer than any search may.
    let slow = "ALTER TABLE webhook_events RENAME TO kept;
        CREATE VIEW webhook_events AS SELECT kept.* FROM kept, (SELECT pg_sleep(3600)) AS long";
    server.psql(&database, slow);
    let answer = api.get("/v1/events?error=timeout").await;
    problem(&answer, 422, "search_too_slow");
    let detail = answer.json["detail"].as_str().expect("there is a detail");
    assert!(detail.contains("narrow"), "{detail}");
    server.psql(
        &database,
        "DROP VIEW webhook_events; ALTER TABLE kept RENAME TO webhook_events",
    );
    assert!(replica.deliver(&provider::stripe("evt_2")).await.is_ok(false));
    assert_eq!(api.get("/v1/events/stripe/evt_2").await.status, 200);
}

#[tokio::test]
async fn every_role_serves_the_api() {
    let database = PostgresServer::shared().await.create_database().await;
    let settings = [
        ("REDIS_URL", "none"),
        ("DATABASE_URL", &*database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN),
    ];
    let receiver = Replica::start("receive", &settings).await;
    let worker = Replica::start("work", &settings).await;
    assert!(receiver.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    for replica in [&receiver, &worker] {
        let shown = Api::of(replica).get("/v1/events/stripe/evt_1").await;
        assert_eq!((shown.status, &shown.json["state"]), (200, &json!("done")));
    }
}
