//! What was kept as a twin can be delivered after all: by its name, or if a filter asks for twins.

use serde_json::{Value, json};

use super::problem;
use super::scene::{Scene, path};

const KEPT: &str = "UPDATE webhook_events SET state = 'twin', twin_of = 'evt_original' WHERE event_id = ";

/// An event that a rule has kept from its target, as its row says.
async fn twin(scene: &Scene) -> String {
    let id = scene.done().await;
    scene.replica.execute(&format!("{KEPT}'{id}'")).await;
    id
}

async fn bulk(scene: &Scene, mut wishes: Value) -> Value {
    wishes["who"] = json!("maria");
    wishes["why"] = json!("the rule was wrong");
    let answer = scene.api.post("/v1/events/replay", &wishes).await;
    assert_eq!(answer.status, 200, "{wishes}: {answer:#?}");
    answer.json["events"].clone()
}

#[tokio::test]
async fn a_twin_is_replayed_by_its_name_and_stays_linked_and_a_pruned_one_is_a_conflict() {
    let scene = Scene::set().await;
    let (id, pruned) = (twin(&scene).await, twin(&scene).await);
    let seen = json!({"who": "maria", "why": "the rule was wrong", "generation": 0});
    let answer = scene.api.post(&path(&id, "/replay"), &seen).await;
    assert_eq!(
        (answer.status, &answer.json["generation"]),
        (200, &json!(1)),
        "{answer:#?}"
    );
    let shown = scene.wait_for_state(&id, "done").await;
    assert_eq!(shown["twin_of"], "evt_original");
    assert_eq!(shown["audit_log"][0]["action"], "replay");
    let again = scene.api.post(&path(&id, "/replay"), &seen).await;
    assert_eq!(problem(&again, 409, "other_generation").1, "1");

    let empty = format!(
        "UPDATE webhook_events SET pruned_at = 1, body = x'', headers = '[]' WHERE event_id = '{pruned}'"
    );
    scene.replica.execute(&empty).await;
    let refused = scene.api.post(&path(&pruned, "/replay"), &seen).await;
    problem(&refused, 409, "payload_pruned");
    scene.wait_for_state(&pruned, "twin").await;
}

#[tokio::test]
async fn of_many_only_those_are_replayed_whose_state_is_meant() {
    let scene = Scene::set().await;
    let (done, kept) = (scene.done().await, [twin(&scene).await, twin(&scene).await]);
    for (wishes, count) in [
        (json!({"all": true}), 1),
        (json!({"filter": {"source": "stripe"}}), 1),
        (json!({"filter": {"state": ["done"]}}), 1),
        (json!({"filter": {"state": ["twin"]}}), 2),
        (json!({"filter": {"source": "github", "state": ["twin"]}}), 0),
        (json!({"filter": {"state": ["twin", "done"]}}), 3),
    ] {
        let mut dry = wishes.clone();
        dry["dry_run"] = json!(true);
        assert_eq!(bulk(&scene, dry).await, count, "{wishes}");
    }
    for state in [
        json!([]),
        json!(["dead"]),
        json!(["twin", "dead"]),
        json!(["Twin"]),
    ] {
        let wishes = json!({"who": "maria", "why": "x", "filter": {"source": "stripe", "state": state}});
        let refused = scene.api.post("/v1/events/replay", &wishes).await;
        let (field, allowed) = problem(&refused, 400, "bad_value");
        assert_eq!(
            (field.as_str(), allowed.as_str()),
            ("filter.state", "a list of one or more of done, twin"),
            "{wishes}"
        );
    }
    assert_eq!(bulk(&scene, json!({"filter": {"state": ["twin"]}})).await, 2);
    for id in kept {
        let shown = scene.wait_for_state(&id, "done").await;
        assert_eq!(
            (&shown["generation"], &shown["twin_of"]),
            (&json!(1), &json!("evt_original"))
        );
    }
    assert_eq!(scene.wait_for_state(&done, "done").await["generation"], 0);
}
