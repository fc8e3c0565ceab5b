//! `hookgate targets` and `hookgate stats`, and what a running gateway makes of the command line.

use hookgate_harness::Upstream;
use hookgate_ledger::{Outcome, State};

use crate::command_line::run;
use crate::deployment::{Deployment, Stores};
use crate::desk::Desk;
use crate::provider;

#[tokio::test]
async fn a_pause_is_listed_and_lifted_once() {
    for desk in Desk::both().await {
        let empty = desk.hookgate(&["targets", "list", "--json"]).await;
        assert_eq!(
            (empty.code, &empty.json()["targets"]),
            (Some(0), &serde_json::json!([]))
        );
        let misspelt = desk
            .hookgate(&["targets", "pause", "biling", "--why", "they migrate"])
            .await;
        assert_eq!(
            (misspelt.code, misspelt.error.contains("none yet")),
            (Some(3), true),
            "{misspelt:?}"
        );
        // As a worker does when it starts.
        desk.run("INSERT INTO targets (name) VALUES ('billing')").await;
        let misspelt = desk
            .hookgate(&["targets", "pause", "biling", "--why", "they migrate"])
            .await;
        assert_eq!(
            (misspelt.code, misspelt.error.contains("there are: billing")),
            (Some(3), true),
            "{misspelt:?}"
        );
        let why = ["--why", "they migrate"];
        let pause = |verb| [&["targets", verb, "billing"][..], &why].concat();
        assert_eq!(desk.hookgate(&pause("pause")).await.text(), "billing is paused\n");
        assert_eq!(desk.hookgate(&pause("pause")).await.code, Some(4));
        let list = desk.hookgate(&["targets", "list", "--json"]).await.json();
        let target = &list["targets"][0];
        assert_eq!(
            (&target["name"], &target["paused"]),
            (&"billing".into(), &true.into())
        );
        assert_eq!(
            (&target["paused_by"], &target["paused_why"]),
            (&"cli:maria".into(), &"they migrate".into())
        );
        let table = desk.hookgate(&["targets", "list"]).await;
        assert!(
            table
                .text()
                .lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("billing")),
            "{table:?}"
        );
        assert_eq!(
            desk.hookgate(&pause("resume")).await.text(),
            "billing is resumed\n"
        );
        let late = desk.hookgate(&pause("resume")).await;
        assert_eq!(
            (late.code, late.error.as_str()),
            (Some(4), "hookgate: billing was not paused\n")
        );
        assert_eq!(desk.audited().await, 2);
    }
}

#[tokio::test]
async fn stats_are_sums_over_replicas() {
    for desk in Desk::both().await {
        let none = desk.hookgate(&["stats"]).await;
        assert_eq!(none.code, Some(3), "{none:?}");
        desk.put("stripe:evt_1", Outcome::Done).await;
        for replica in ["delivery_id", "body_sha256"] {
            desk.run(&format!(
                "INSERT INTO stats_minute (minute, source, name, replica, count)
                 SELECT received_at, 'stripe', 'accepted', {replica}, 2 FROM webhook_events"
            ))
            .await;
        }
        let stats = desk.hookgate(&["stats", "--since", "1h", "--json"]).await.json();
        let minute = &stats["minutes"][0];
        assert_eq!(
            (&minute["source"], &minute["counts"]["accepted"]),
            (&"stripe".into(), &4.into())
        );
        let table = desk.hookgate(&["stats"]).await;
        assert!(table.text().contains("accepted"), "{table:?}");
        let elsewhere = desk.hookgate(&["stats", "--source", "github"]).await;
        assert_eq!(elsewhere.code, Some(3), "{elsewhere:?}");
    }
}

/// A worker takes up what the command line has queued, and its target can tell a replay from a copy.
#[tokio::test]
async fn a_replayed_event_reaches_its_target_under_a_new_id() {
    for stores in [Stores::PostgresAlone, Stores::Embedded] {
        let target = Upstream::start().await;
        let deployment = Deployment::on(stores).await.delivering_to(&target);
        let replica = deployment.replica().await;
        let event = provider::fresh();
        assert!(replica.deliver(&event).await.is_ok(false));
        deployment.wait_for_state(&event, State::Done).await;

        let name = format!("{}:{}", event.source, event.event_id);
        let database = [("DATABASE_URL", deployment.setting("DATABASE_URL"))];
        let ran = run(
            &["events", "replay", &name, "--why", "their bug is mended"],
            &database,
        )
        .await;
        assert_eq!(ran.code, Some(0), "{stores:?}: {ran:?}");
        let requests = target.wait_for(2).await;
        let ids: Vec<_> = requests.iter().filter_map(|request| request.id()).collect();
        assert_eq!(
            ids,
            [name.as_str(), &format!("stripe@1:{}", event.event_id)],
            "{stores:?}"
        );
        assert!(requests.iter().all(|request| request.body == event.body));
        deployment.wait_for_state(&event, State::Done).await;
        assert!(
            replica.deliver(&event).await.is_ok(true),
            "{stores:?}: the provider's copy is one still"
        );
    }
}
