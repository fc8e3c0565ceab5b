//! What must stay inside: secrets, addresses with credentials, headers that open something. They go in by
//! every door at the finest log level; no answer of the API and no log line holds them.

use hookgate_webhook::Provider;
use serde_json::json;

use super::scene::{Scene, path};
use super::{ADMIN_TOKEN, Api, CONSUME_TOKEN};
use crate::provider;

const CANARIES: [&str; 6] = [
    "canarypassword",
    "canarytoken",
    "canarycookie",
    "Y2FuYXJ5LWNhbmFyeS1j",
    ADMIN_TOKEN,
    CONSUME_TOKEN,
];

#[tokio::test]
async fn no_answer_and_no_log_line_holds_a_secret() {
    let upstream = hookgate_harness::Upstream::start().await;
    let target = upstream.url().replace("http://", "http://user:canarypassword@");
    let scene = Scene::set_with(&[
        ("HOOKGATE_LOG", "trace"),
        ("HOOKGATE_CONSUME_TOKEN", CONSUME_TOKEN),
        ("HOOKGATE_TARGET_URL", &format!("{target}/hook?token=canarytoken")),
        (
            "HOOKGATE_TARGET_SECRET",
            "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LWNhbmFyeS0=",
        ),
    ])
    .await;
    let mut event = provider::event(Provider::Stripe);
    let mut pulled = provider::event(Provider::Github);
    for delivery in [&mut event, &mut pulled] {
        for (name, value) in [
            ("Authorization", "Bearer canarytoken"),
            ("Cookie", "session=canarycookie"),
            ("X-Api-Key", "canarytoken"),
            ("Stripe-Secret", "canarytoken"),
        ] {
            delivery.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    assert!(scene.replica.deliver(&event).await.is_ok(false));
    assert!(scene.replica.deliver(&pulled).await.is_ok(false));
    scene.wait_for_state(&event.event_id, "done").await;
    // As a provider whose kept headers include a password would leave them.
    let headers = r#"[["authorization","Bearer canarytoken"],["x-access-token","canarytoken"],["cookie","canarycookie"]]"#;
    let kept = format!("UPDATE webhook_events SET headers = '{headers}'");
    scene.replica.execute(&kept).await;
    let reason = json!({"who": "maria", "why": "to look"});
    let replay = json!({"who": "maria", "why": "to look", "generation": 0});
    let consumer = Api::of(&scene.replica).with(Some(CONSUME_TOKEN));
    let mut told = vec![
        scene.api.get("/v1/events").await,
        scene.api.get(&path(&event.event_id, "")).await,
        scene.api.get(&path(&event.event_id, "/replay")).await,
        scene.api.post(&path(&event.event_id, "/replay"), &replay).await,
        scene.api.get("/v1/targets").await,
        scene.api.post("/v1/targets/default/pause", &reason).await,
        scene.api.get("/v1/stats").await,
        scene.api.get("/v1/openapi.json").await,
        scene.api.get("/v1/events?canarytoken=canarytoken").await,
        scene
            .api
            .with(Some("canarytoken-canarytoken"))
            .get("/v1/events")
            .await,
        consumer
            .post("/v1/consume", &json!({"sources": ["github"]}))
            .await,
    ];
    let shown = told[1].json["headers"].as_array().cloned().unwrap_or_default();
    assert_eq!(shown.len(), 3, "the headers are there, masked: {shown:#?}");
    assert_eq!(
        told[10].json["items"][0]["headers"].as_array().map(Vec::len),
        Some(3)
    );
    // The caller's own word in a problem is no leak.
    let own = told.remove(8);
    assert_eq!(own.json["field"], "canarytoken");
    let answers = told.iter().map(|answer| format!("{answer:?}"));
    let said: Vec<_> = answers.chain(scene.replica.process().lines()).collect();
    for canary in CANARIES {
        let told: Vec<_> = said.iter().filter(|text| text.contains(canary)).collect();
        assert!(told.is_empty(), "{canary} is told: {told:#?}");
    }
}
