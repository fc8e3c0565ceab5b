//! What people decide: replay, redrive, discard, pause. Who and why are asked for and written down; what is not
//! possible is refused and changes nothing.

use hookgate_harness::Answer as TargetAnswer;
use serde_json::{Value, json};

use super::scene::{Scene, path};
use super::{Api, problem};
use crate::deployment::{Deployment, Stores};
use crate::gateway::Answer;
use crate::patience::until;
use crate::provider;

fn reason() -> Value {
    json!({"who": "maria", "why": "the handler is mended"})
}

/// The same, of one that was never replayed.
fn first() -> Value {
    json!({"who": "maria", "why": "the handler is mended", "generation": 0})
}

fn dead_letter(id: &str, verb: &str) -> String {
    format!("/v1/dead-letters/stripe/{id}/{verb}")
}

#[tokio::test]
async fn a_replay_runs_a_finished_event_once_more_under_a_new_id_and_says_who_and_why() {
    let scene = Scene::set().await;
    let id = scene.done().await;
    let answer = scene.api.post(&path(&id, "/replay"), &first()).await;
    assert_eq!(
        (answer.status, &answer.json["generation"]),
        (200, &json!(1)),
        "{answer:#?}"
    );
    let requests = scene.target.wait_for(2).await;
    let ids: Vec<_> = requests
        .iter()
        .map(|request| request.id().unwrap_or_default())
        .collect();
    assert_eq!(ids, [format!("stripe:{id}"), format!("stripe@1:{id}")]);
    let shown = scene.wait_for_state(&id, "done").await;
    assert_eq!(
        (&shown["generation"], &shown["attempt_log"][1]["generation"]),
        (&json!(1), &json!(1))
    );
    let audit = &shown["audit_log"][0];
    for (name, said) in [
        ("actor", "api:maria"),
        ("action", "replay"),
        ("detail", "the handler is mended"),
    ] {
        assert_eq!(audit[name], said);
    }
}

#[tokio::test]
async fn of_two_replays_at_once_one_runs_and_the_other_is_refused() {
    let deployment = Deployment::on(Stores::PostgresAlone)
        .await
        .set("HOOKGATE_ADMIN_TOKEN", super::ADMIN_TOKEN);
    let replicas = [deployment.replica().await, deployment.replica().await];
    let [one, other] = replicas.each_ref().map(Api::of);
    for _ in 0..20 {
        let event = provider::event(hookgate_webhook::Provider::Stripe);
        assert!(replicas[0].deliver(&event).await.is_ok(false));
        let path = path(&event.event_id, "/replay");
        let seen = json!({"who": "maria", "why": "again", "generation": 0});
        let (first, second) = tokio::join!(one.post(&path, &seen), other.post(&path, &seen));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{first:#?} {second:#?}");
    }
}

#[tokio::test]
async fn a_dead_letter_is_run_again_with_all_its_tries_or_given_up_for_good() {
    let scene = Scene::set().await;
    let (mended, hopeless) = (scene.dead().await, scene.dead().await);
    scene.target.answer(TargetAnswer::Status(200));
    let redriven = scene.api.post(&dead_letter(&mended, "redrive"), &reason()).await;
    assert_eq!(
        (redriven.status, &redriven.json["change"]),
        (200, &json!("redrive")),
        "{redriven:#?}"
    );
    let shown = scene.wait_for_state(&mended, "done").await;
    assert_eq!(shown["audit_log"][0]["actor"], "api:maria");
    let discarded = scene
        .api
        .post(&dead_letter(&hopeless, "discard"), &reason())
        .await;
    assert_eq!(discarded.status, 200, "{discarded:#?}");
    scene.wait_for_state(&hopeless, "discarded").await;
    let left = scene.api.get("/v1/dead-letters").await;
    assert_eq!(left.json["events"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_changed_is_a_conflict_that_says_why() {
    let scene = Scene::set().await;
    let (done, dead) = (scene.done().await, scene.dead().await);
    for path in [
        dead_letter(&done, "redrive"),
        dead_letter(&done, "discard"),
        path(&dead, "/replay"),
    ] {
        let answer = scene.api.post(&path, &first()).await;
        let (field, allowed) = problem(&answer, 409, "wrong_state");
        assert_eq!(field, "state");
        assert!(["dead", "done or twin"].contains(&allowed.as_str()), "{allowed}");
    }
    let late = json!({"who": "maria", "why": "again", "generation": 7});
    let answer = scene.api.post(&path(&done, "/replay"), &late).await;
    assert_eq!(
        problem(&answer, 409, "other_generation"),
        ("generation".to_owned(), "0".to_owned())
    );
    problem(
        &scene.api.post(&path("nobody", "/replay"), &first()).await,
        404,
        "unknown_event",
    );
    assert_eq!(scene.api.get(&path(&done, "")).await.json["audit_log"], json!([]));
    scene
        .replica
        .execute("UPDATE webhook_events SET pruned_at = 1, body = x'', headers = '[]'")
        .await;
    problem(
        &scene.api.post(&path(&done, "/replay"), &first()).await,
        409,
        "payload_pruned",
    );
    problem(
        &scene.api.post(&dead_letter(&dead, "redrive"), &reason()).await,
        409,
        "payload_pruned",
    );
    problem(&scene.api.get(&path(&done, "/body")).await, 409, "payload_pruned");
}

#[tokio::test]
async fn who_and_why_are_asked_for_and_nothing_else_is_taken() {
    let scene = Scene::set().await;
    let id = scene.done().await;
    let replay = path(&id, "/replay");
    for (body, code, field) in [
        (json!({"why": "x"}), "bad_value", "who"),
        (json!({"who": "x"}), "bad_value", "why"),
        (json!({"who": "", "why": "x"}), "bad_value", "who"),
        (json!({"who": "x", "why": "  "}), "bad_value", "why"),
        (json!({"who": "x", "why": "x".repeat(501)}), "bad_value", "why"),
        (json!({"who": "a\nb", "why": "x"}), "bad_value", "who"),
        (json!({"who": 7, "why": "x"}), "bad_value", "who"),
        (json!({"who": "x", "why": "x"}), "bad_value", "generation"),
        (
            json!({"who": "x", "why": "x", "generation": -1}),
            "bad_value",
            "generation",
        ),
        (
            json!({"who": "x", "why": "x", "because": "x"}),
            "unknown_field",
            "because",
        ),
    ] {
        let (named, allowed) = problem(&scene.api.post(&replay, &body).await, 400, code);
        assert_eq!(named, field, "{body}");
        assert!(!allowed.is_empty());
    }
    for (text, field) in [
        (r#"{"who":"x","why":"x","generation":0,"who":"y"}"#, "who"),
        (
            r#"{"who":"x","why":"x","generation":0,"generation":0}"#,
            "generation",
        ),
    ] {
        let refused = problem(&scene.api.post_text(&replay, text).await, 400, "bad_value");
        assert_eq!(refused, (field.to_owned(), "to be given once".to_owned()));
    }
    let two = r#"{"who":"x","why":"x","filter":{"source":"github"},"filter":{"source":"stripe"}}"#;
    let refused = scene.api.post_text("/v1/events/replay", two).await;
    assert_eq!(problem(&refused, 400, "bad_value").0, "filter");
    for text in ["", "{", "[]", "7", "{\"who\":\"x\",}", "who=x&why=x", "\u{0}"] {
        problem(&scene.api.post_text(&replay, text).await, 400, "bad_json");
    }
    problem(
        &scene.api.post_text(&replay, vec![0xFF, 0xFE]).await,
        400,
        "bad_json",
    );
    let large = json!({"who": "x", "why": "x".repeat(64 << 10)});
    problem(&scene.api.post(&replay, &large).await, 413, "body_too_large");
    assert_eq!(
        scene.api.get(&path(&id, "")).await.json["generation"],
        0,
        "nothing was run"
    );
}

async fn bulk(scene: &Scene, verb: &str, mut wishes: Value) -> Answer {
    wishes["who"] = json!("maria");
    wishes["why"] = json!("the outage is over");
    scene.api.post(&format!("/v1/dead-letters/{verb}"), &wishes).await
}

#[tokio::test]
async fn many_are_changed_step_by_step_and_a_dry_run_only_counts() {
    let scene = Scene::set().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(scene.dead().await);
    }
    let counted = bulk(&scene, "redrive", json!({"all": true, "dry_run": true})).await;
    assert_eq!(counted.json, json!({"events": 5, "next": null}));
    let none = bulk(&scene, "redrive", json!({"filter": {"source": "github"}})).await;
    assert_eq!(none.json, json!({"events": 0, "next": null}));
    scene.target.answer(TargetAnswer::Status(200));
    let (mut changed, mut cursor) = (0, Value::Null);
    for _ in 0..5 {
        let mut wishes = json!({"filter": {"source": "stripe", "since": "1h"}, "limit": 2, "rate": 1000});
        if !cursor.is_null() {
            wishes["cursor"] = cursor;
        }
        let step = bulk(&scene, "redrive", wishes).await;
        assert_eq!(step.status, 200, "{step:#?}");
        changed += step.json["events"].as_u64().expect("a number");
        cursor = step.json["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((changed, cursor), (5, Value::Null));
    for id in ids {
        let shown = scene.wait_for_state(&id, "done").await;
        assert_eq!(shown["audit_log"][0]["detail"], "the outage is over");
    }
}

#[tokio::test]
async fn a_slow_rate_holds_over_several_steps() {
    let scene = Scene::set().await;
    for _ in 0..4 {
        scene.dead().await;
    }
    let first = bulk(&scene, "redrive", json!({"all": true, "limit": 2, "rate": 0.01})).await;
    let next = first.json["next"].clone();
    let second = bulk(
        &scene,
        "redrive",
        json!({"all": true, "limit": 2, "rate": 0.01, "cursor": next}),
    )
    .await;
    assert_eq!(
        (&first.json["events"], &second.json["events"]),
        (&json!(2), &json!(2))
    );
    let due = "SELECT next_attempt_at FROM webhook_events WHERE source = 'stripe' ORDER BY 1";
    let due = scene
        .replica
        .sql(&due.replace("next_attempt_at FROM", "CAST(next_attempt_at AS TEXT) FROM"))
        .await;
    let due: Vec<i64> = due.lines().filter_map(|line| line.parse().ok()).collect();
    // The first has run by now, or waits still; the others are 100 s apart, across the steps too.
    let later = &due[due.len() - 3..];
    let gaps: Vec<_> = later.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
    assert!(gaps.iter().all(|gap| (99..=101).contains(gap)), "{due:?}");
}

#[tokio::test]
async fn a_bulk_change_says_exactly_which_events_it_means() {
    let scene = Scene::set().await;
    let id = scene.dead().await;
    for (wishes, code, field) in [
        (json!({}), "bad_value", "filter"),
        (json!({"all": false}), "bad_value", "filter"),
        (json!({"all": true, "filter": {}}), "bad_value", "filter"),
        (json!({"filter": {}}), "bad_value", "filter"),
        (json!({"all": false, "filter": {}}), "bad_value", "filter"),
        (
            json!({"filter": {"source": null, "type": null, "object": null, "since": null, "until": null, "error": null}}),
            "bad_value",
            "filter",
        ),
        (
            json!({"filter": {"sorce": "stripe"}}),
            "unknown_field",
            "filter.sorce",
        ),
        (
            json!({"filter": {"state": ["done"]}}),
            "bad_value",
            "filter.state",
        ),
        (
            json!({"filter": {"source": "Stripe"}}),
            "bad_value",
            "filter.source",
        ),
        (
            json!({"filter": {"since": "yesterday"}}),
            "bad_value",
            "filter.since",
        ),
        (json!({"all": true, "limit": 0}), "bad_value", "limit"),
        (json!({"all": true, "limit": 501}), "bad_value", "limit"),
        (json!({"all": true, "rate": 0}), "bad_value", "rate"),
        (json!({"all": true, "rate": 1e9}), "bad_value", "rate"),
        (
            json!({"all": true, "cursor": "nonsense"}),
            "malformed_cursor",
            "cursor",
        ),
    ] {
        let (named, allowed) = problem(&bulk(&scene, "redrive", wishes.clone()).await, 400, code);
        assert_eq!(named, field, "{wishes}");
        assert!(
            field != "filter" || allowed.contains(r#""all": true"#),
            "{allowed}"
        );
    }
    let rated = bulk(&scene, "discard", json!({"all": true, "rate": 5})).await;
    assert_eq!(problem(&rated, 400, "bad_value").0, "rate");
    scene.wait_for_state(&id, "dead").await;
    assert_eq!(
        bulk(&scene, "discard", json!({"all": true})).await.json["events"],
        1
    );
    scene.wait_for_state(&id, "discarded").await;
}

#[tokio::test]
async fn a_paused_target_gets_nothing_until_a_person_resumes_it() {
    let scene = Scene::set().await;
    let paused = async || {
        scene
            .replica
            .metric(r#"hookgate_target_paused{target="default"}"#)
            .await
            == 1.0
    };
    let switch = async |verb: &str| {
        scene
            .api
            .post(&format!("/v1/targets/default/{verb}"), &reason())
            .await
    };
    let first = switch("pause").await;
    assert_eq!(
        first.json,
        json!({"name": "default", "paused": true, "changed": true})
    );
    assert_eq!(switch("pause").await.json["changed"], false);
    until("the pause is heard", async || paused().await).await;
    let event = provider::event(hookgate_webhook::Provider::Stripe);
    assert!(scene.replica.deliver(&event).await.is_ok(false));
    let targets = scene.api.get("/v1/targets").await.json;
    let target = &targets["targets"][0];
    assert_eq!(
        (&target["name"], &target["paused_by"]),
        (&json!("default"), &json!("api:maria"))
    );
    let sources = target["sources"].as_array().expect("a list");
    assert!(
        sources.contains(&json!("stripe")) && !sources.contains(&json!("github")),
        "{sources:?}"
    );
    assert_eq!(
        scene.api.get(&path(&event.event_id, "")).await.json["state"],
        "queued"
    );
    assert!(scene.target.requests().is_empty());
    assert_eq!(switch("resume").await.json["changed"], true);
    scene.wait_for_state(&event.event_id, "done").await;
    let nobody = scene.api.post("/v1/targets/nobody/pause", &reason()).await;
    assert_eq!(
        problem(&nobody, 404, "unknown_target"),
        ("name".to_owned(), "one of default".to_owned())
    );
}
