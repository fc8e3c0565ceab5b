//! Looking at events: lists and their filters, pages, one event, its body, ids that somebody chose with care.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hookgate_webhook::Provider;
use reqwest::Method;
use serde_json::Value;

use super::scene::{Scene, path};
use super::{ADMIN_TOKEN, Api, problem};
use crate::embedded::Embedded;
use crate::provider::{self, Signed};
use crate::raw::Raw;

/// A replica whose events are kept as done at once.
async fn keeper() -> (Embedded, Api) {
    let replica = Embedded::serve_with(&[("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN)]).await;
    let api = Api::of(&replica);
    (replica, api)
}

fn ids(list: &Value) -> Vec<String> {
    let events = list["events"].as_array().expect("a list has events");
    let id = |event: &Value| event["event_id"].as_str().expect("an id is text").to_owned();
    events.iter().map(id).collect()
}

/// A Stripe event about this object.
fn about(id: &str, event_type: &str, object: &str) -> Signed {
    let body = format!(r#"{{"id":"{id}","type":"{event_type}","data":{{"object":{{"id":"{object}"}}}}}}"#);
    provider::sign(Provider::Stripe, provider::SECRET, id, body.as_bytes())
}

#[tokio::test]
async fn pages_hold_every_event_once_newest_first_also_while_new_ones_come() {
    let (replica, api) = keeper().await;
    let mut sent = Vec::new();
    for number in 0..11 {
        let id = format!("evt_{number}");
        assert!(replica.deliver(&provider::stripe(&id)).await.is_ok(false));
        sent.insert(0, id);
    }
    let mut found = Vec::new();
    let mut next = "/v1/events?limit=3".to_owned();
    loop {
        let page = api.get(&next).await;
        assert_eq!(page.status, 200, "{page:#?}");
        found.extend(ids(&page.json));
        let Some(cursor) = page.json["next"].as_str() else {
            break;
        };
        next = format!("/v1/events?limit=3&cursor={cursor}");
        let newer = provider::stripe(&format!("evt_newer_{}", found.len()));
        assert!(replica.deliver(&newer).await.is_ok(false));
    }
    assert_eq!(found, sent);
    assert_eq!(ids(&api.get("/v1/events").await.json).len(), 14);
}

#[tokio::test]
async fn filters_find_what_they_say_and_each_must_be_true() {
    let scene = Scene::set().await;
    let deliver = async |id: &str, event_type: &str, object: &str, status| {
        let state = if status == 200 { "done" } else { "dead" };
        scene.deliver(about(id, event_type, object), status, state).await;
    };
    deliver("evt_a", "invoice.paid", "in_1", 200).await;
    deliver("evt_b", "invoice.paid", "in_2", 422).await;
    deliver("evt_c", "charge.refunded", "100% _sure_", 418).await;
    scene.pulled().await;
    let all: BTreeSet<_> = ["evt_a", "evt_b", "evt_c"].map(str::to_owned).into();
    let found = async |query: &str| {
        let answer = scene.api.get(&format!("/v1/events?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {answer:#?}");
        BTreeSet::from_iter(ids(&answer.json))
    };
    for (query, expected) in [
        ("source=stripe", vec!["evt_a", "evt_b", "evt_c"]),
        ("type=invoice.paid", vec!["evt_a", "evt_b"]),
        ("object=in_2", vec!["evt_b"]),
        ("object=100%25+_sure_", vec!["evt_c"]),
        ("state=dead&source=stripe", vec!["evt_b", "evt_c"]),
        ("state=dead,done&type=invoice.paid", vec!["evt_a", "evt_b"]),
        ("state=dead&state=done&object=in_1", vec!["evt_a"]),
        ("error=answered%20418", vec!["evt_c"]),
        ("error=ANSWERED", vec!["evt_b", "evt_c"]),
        ("error=%25", vec![]),
        ("since=1h&source=stripe", vec!["evt_a", "evt_b", "evt_c"]),
        ("until=1h", vec![]),
        ("since=2100-01-01T00:00:00Z", vec![]),
        ("type=invoice.paid&object=100%25+_sure_", vec![]),
        ("source=nobody", vec![]),
    ] {
        assert_eq!(
            found(query).await,
            BTreeSet::from_iter(expected.into_iter().map(str::to_owned)),
            "{query}"
        );
    }
    let received = scene.api.get(&path("evt_b", "")).await.json["received_at"].clone();
    let at = received.as_str().expect("a time is text");
    let from = found(&format!("source=stripe&since={at}")).await;
    let before = found(&format!("source=stripe&until={at}")).await;
    assert!(from.contains("evt_b") && !before.contains("evt_b"));
    assert_eq!(from.union(&before).cloned().collect::<BTreeSet<_>>(), all);
    let dead = scene.api.get("/v1/dead-letters?type=invoice.paid").await;
    assert_eq!(ids(&dead.json), ["evt_b"]);
}

#[tokio::test]
async fn a_query_that_is_not_understood_is_a_problem_that_names_it_and_what_is_allowed() {
    let (replica, api) = keeper().await;
    assert!(replica.deliver(&provider::stripe("evt_1")).await.is_ok(false));
    assert!(replica.deliver(&provider::stripe("evt_2")).await.is_ok(false));
    let page = api.get("/v1/events?limit=1").await;
    let cursor = page.json["next"].as_str().expect("there is more");
    let foreign = URL_SAFE_NO_PAD.encode("1700000000000000:stripe:evt_1");
    for (query, code, field) in [
        ("sorce=stripe", "unknown_parameter", "sorce"),
        ("State=dead", "unknown_parameter", "State"),
        ("=x", "unknown_parameter", ""),
        ("source=Stripe", "bad_value", "source"),
        ("source=stripe&source=github", "bad_value", "source"),
        ("state=died", "bad_value", "state"),
        ("state=", "bad_value", "state"),
        ("state=dead,", "bad_value", "state"),
        ("since=yesterday", "bad_value", "since"),
        ("until=2026-01-31", "bad_value", "until"),
        ("since=1h&until=2h", "bad_value", "until"),
        ("error=", "bad_value", "error"),
        ("object=a%00b", "bad_value", "object"),
        ("limit=0", "bad_value", "limit"),
        ("limit=201", "bad_value", "limit"),
        ("limit=-1", "bad_value", "limit"),
        ("limit=ten", "bad_value", "limit"),
        ("limit=99999999999999999999", "bad_value", "limit"),
        ("cursor=", "malformed_cursor", "cursor"),
        ("cursor=nonsense", "malformed_cursor", "cursor"),
        (&format!("cursor={foreign}"), "malformed_cursor", "cursor"),
        (
            &format!("cursor={}", &cursor[..cursor.len() - 1]),
            "malformed_cursor",
            "cursor",
        ),
        (&format!("cursor={cursor}A"), "malformed_cursor", "cursor"),
    ] {
        let answer = api.get(&format!("/v1/events?{query}")).await;
        let (named, allowed) = problem(&answer, 400, code);
        assert_eq!(named, field, "{query}");
        assert!(!allowed.is_empty(), "{query}");
    }
    let (_, allowed) = problem(&api.get("/v1/events?state=died").await, 400, "bad_value");
    assert!(
        allowed.contains("queued") && allowed.contains("dead"),
        "{allowed}"
    );
    let (_, allowed) = problem(
        &api.get("/v1/dead-letters?state=dead").await,
        400,
        "unknown_parameter",
    );
    assert!(allowed.contains("source"), "{allowed}");
    for query in [
        "since=2d&until=1d",
        "until=2100-01-01T00:00:00Z&since=2000-01-01T00:00:00Z",
        "since=2h&until=2h",
    ] {
        let answer = api.get(&format!("/v1/stats?{query}")).await;
        assert_eq!(
            answer.status == 200,
            query.starts_with("since=2d"),
            "{query}: {answer:#?}"
        );
    }
}

#[tokio::test]
async fn one_event_is_shown_with_its_runs_and_its_body_is_given_byte_for_byte() {
    let scene = Scene::set().await;
    let event = provider::event(Provider::Stripe);
    let id = scene.deliver(event.clone(), 422, "dead").await;
    let shown = scene.api.get(&path(&id, "")).await.json;
    assert_eq!(
        (&shown["event_id"], &shown["attempts"]),
        (&id.as_str().into(), &1.into())
    );
    assert_eq!(shown["body_bytes"], event.body.len());
    assert_eq!(
        (
            &shown["attempt_log"][0]["outcome"],
            &shown["attempt_log"][0]["attempt"]
        ),
        (&"dead".into(), &1.into())
    );
    assert!(
        shown["last_error"]
            .as_str()
            .is_some_and(|error| error.contains("422"))
    );
    let request = scene.api.request(Method::GET, &path(&id, "/body"));
    let answer = request.send().await.expect("an answer");
    let header = |name: &str| {
        answer.headers()[name]
            .to_str()
            .expect("a header is text")
            .to_owned()
    };
    assert_eq!(header("content-type"), "application/octet-stream");
    assert!(header("content-disposition").starts_with("attachment"));
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(answer.bytes().await.expect("a body"), event.body);
    for rest in ["", "/body"] {
        problem(
            &scene.api.get(&path("evt_of_nobody", rest)).await,
            404,
            "unknown_event",
        );
    }
}

#[tokio::test]
async fn an_event_of_any_id_is_found_by_its_percent_encoded_path() {
    let (replica, api) = keeper().await;
    let long = "%".repeat(255);
    let odd = [
        "a/b",
        "a%2Fb",
        "%",
        "%25",
        "a b",
        "a+b",
        " ",
        "😀",
        "e\u{301}",
        "?limit=1",
        "#",
        "replay",
        "body",
        "../events",
        "a/replay",
        "<script>",
        "\"\\'",
        &long,
    ];
    for id in odd {
        let event = provider::stripe(id);
        assert!(replica.deliver(&event).await.is_ok(false), "{id:?}");
        let shown = api.get(&path(id, "")).await;
        assert_eq!(
            (shown.status, &shown.json["event_id"]),
            (200, &id.into()),
            "{id:?}"
        );
        let body = api.request(Method::GET, &path(id, "/body")).send().await;
        let body = body.expect("an answer").bytes().await.expect("a body");
        assert_eq!(body, event.body, "{id:?}");
        let reason = serde_json::json!({"who": "maria", "why": "again", "generation": 0});
        let replayed = api.post(&path(id, "/replay"), &reason).await;
        assert_eq!(replayed.json["event_id"], id, "{replayed:#?}");
    }
    let listed: BTreeSet<_> = ids(&api.get("/v1/events").await.json).into_iter().collect();
    assert_eq!(listed, BTreeSet::from_iter(odd.map(str::to_owned)));
    for id in ["%00", "%ff", "a%0Ab", &"x".repeat(256)] {
        let answer = api.get(&format!("/v1/events/stripe/{id}")).await;
        assert_eq!(problem(&answer, 400, "bad_value").0, "id", "{id}");
    }
}

#[tokio::test]
async fn an_id_of_two_dots_is_reached_by_whoever_does_not_tidy_paths() {
    let (replica, _) = keeper().await;
    assert!(replica.deliver(&provider::stripe("..")).await.is_ok(false));
    let mut raw = Raw::connect_to(replica.admin_address()).await;
    let request = format!(
        "GET /v1/events/stripe/%2E%2E HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    );
    assert!(raw.send(request).await);
    let answer = raw.answer().await.expect("an answer");
    assert_eq!((answer.status, &answer.json["event_id"]), (200, &"..".into()));
}
