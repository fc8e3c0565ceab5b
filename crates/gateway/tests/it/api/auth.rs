//! Who may use the API, and what the others are told.

use reqwest::Method;
use reqwest::header::AUTHORIZATION;

use super::{ADMIN_TOKEN, Api, CONSUME_TOKEN, problem, sent};
use crate::embedded::Embedded;
use crate::gateway::Replica;

async fn refusals(replica: &Replica, reason: &str) -> f64 {
    let series = format!("hookgate_admin_refusals_total{{reason=\"{reason}\"}}");
    replica.metric(&series).await
}

async fn probes_are_open(replica: &Replica) {
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(replica.admin(path).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn without_a_token_in_the_configuration_the_api_is_off_and_says_how_to_switch_it_on() {
    let replica = Embedded::serve().await;
    let api = Api::of(&replica);
    for path in [
        "/v1",
        "/v1/",
        "/v1/events",
        "/v1/consume",
        "/v1/openapi.json",
        "/v1/nowhere",
    ] {
        for api in [&api, &api.with(None)] {
            let answer = api.get(path).await;
            problem(&answer, 404, "api_off");
            let detail = answer.json["detail"].as_str().expect("there is a detail");
            assert!(detail.contains("HOOKGATE_ADMIN_TOKEN"), "{detail}");
        }
    }
    assert_eq!(
        replica.series().await["hookgate_admin_refusals_total{reason=\"bad_token\"}"],
        0.0
    );
    probes_are_open(&replica).await;
}

#[tokio::test]
async fn a_missing_or_wrong_token_is_401_and_counted_on_every_path_and_spelling() {
    let settings = [
        ("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN),
        ("HOOKGATE_CONSUME_TOKEN", CONSUME_TOKEN),
    ];
    let replica = Embedded::serve_with(&settings).await;
    let api = Api::of(&replica);
    let paths = [
        "/v1/events",
        "/v1/events/stripe/evt_1",
        "/v1/openapi.json",
        "/v1/nowhere",
        "/v1",
        "/%76%31/events",
        "/v1%2Fevents/..%2f",
        "//v1/events",
        "/V1/events",
        "/metrics/",
        "/",
    ];
    for (number, path) in paths.iter().enumerate() {
        let missing = api.with(None).get(path).await;
        problem(&missing, 401, "unauthorized");
        assert!(
            missing.headers["www-authenticate"].starts_with("Bearer"),
            "{path}"
        );
        for token in ["wrong", CONSUME_TOKEN] {
            let wrong = api.with(Some(token)).get(path).await;
            problem(&wrong, 401, "unauthorized");
        }
        let asked = (number + 1) as f64;
        assert_eq!(refusals(&replica, "missing_token").await, asked, "{path}");
        assert_eq!(refusals(&replica, "bad_token").await, 2.0 * asked, "{path}");
    }
    let basic = api.with(None).request(Method::GET, "/v1/openapi.json");
    problem(
        &sent(basic.basic_auth("admin", Some(ADMIN_TOKEN))).await,
        401,
        "unauthorized",
    );
    let twice = api
        .request(Method::GET, "/v1/openapi.json")
        .header(AUTHORIZATION, "Bearer another");
    problem(&sent(twice).await, 401, "unauthorized");
    problem(&api.get("/v1/nowhere").await, 404, "no_such_path");
    assert_eq!(api.get("/v1/openapi.json").await.status, 200);
    assert_eq!(
        api.get("/%76%31/openapi.json").await.status,
        200,
        "no spelling leads past the door"
    );
    probes_are_open(&replica).await;
}

#[tokio::test]
async fn the_consume_token_opens_nothing_but_consuming_also_where_there_is_no_other() {
    let replica = Embedded::serve_with(&[
        ("HOOKGATE_CONSUME_TOKEN", CONSUME_TOKEN),
        ("HOOKGATE_CONSUMER", "pull"),
    ])
    .await;
    let consumer = Api::of(&replica).with(Some(CONSUME_TOKEN));
    let request = serde_json::json!({"sources": ["stripe"]});
    assert_eq!(
        consumer.post("/v1/consume", &request).await.json["items"],
        serde_json::json!([])
    );
    problem(&consumer.get("/v1/events").await, 404, "api_off");
    problem(
        &consumer
            .with(Some(ADMIN_TOKEN))
            .post("/v1/consume", &request)
            .await,
        401,
        "unauthorized",
    );
    problem(
        &consumer.with(None).post("/v1/consume", &request).await,
        401,
        "unauthorized",
    );
}

#[tokio::test]
async fn a_path_that_knows_other_methods_says_which() {
    let replica = Embedded::serve_with(&[("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN)]).await;
    let api = Api::of(&replica);
    for (method, path, allowed) in [
        (Method::POST, "/v1/events", "GET"),
        (Method::DELETE, "/v1/events/stripe/evt_1", "GET"),
        (Method::GET, "/v1/events/stripe/a%2Fb/replay", "POST"),
        (Method::GET, "/v1/consume", "POST"),
        (Method::PUT, "/v1/dead-letters/redrive", "POST"),
        (Method::OPTIONS, "/v1/openapi.json", "GET"),
    ] {
        let answer = sent(api.request(method, path)).await;
        problem(&answer, 405, "method_not_allowed");
        assert_eq!(answer.headers["allow"], allowed, "{path}");
    }
}
