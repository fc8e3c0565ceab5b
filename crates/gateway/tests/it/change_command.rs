//! `hookgate events replay` and `hookgate dead-letters redrive|discard`: what changes, what is written down, and
//! what is refused, however many ask at once and whenever one of them is killed.

use hookgate_harness::Process;
use hookgate_ledger::Outcome;

use crate::desk::{Desk, Said, dead};
use crate::patience::until;

const WHY: [&str; 2] = ["--why", "the target is mended"];

async fn change(desk: &Desk, arguments: &[&str]) -> Said {
    desk.hookgate(&[arguments, &WHY].concat()).await
}

/// Copies of the one event there is, to `evt_1_<n>`.
async fn multiply(desk: &Desk, copies: usize) {
    desk.run(&format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {copies})
         INSERT INTO webhook_events (source, event_id, provider, received_at, path, state, attempts, tries,
             delivery_id, body_sha256, headers, body, last_error, processed_at)
         SELECT source, event_id || '_' || n, provider, received_at, path, state, attempts, tries,
             delivery_id, body_sha256, headers, body, last_error, processed_at
         FROM webhook_events CROSS JOIN numbers"
    ))
    .await;
}

#[tokio::test]
async fn a_replay_is_a_new_generation_and_written_down() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", Outcome::Done).await;
        let replayed = change(&desk, &["events", "replay", "stripe:evt_1", "--json"]).await;
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        let told = replayed.json();
        assert_eq!(
            (&told["outcome"], &told["generation"]),
            (&"done".into(), &1.into())
        );
        let shown = desk
            .hookgate(&["events", "show", "stripe:evt_1", "--json"])
            .await
            .json();
        assert_eq!(
            (&shown["state"], &shown["generation"]),
            (&"queued".into(), &1.into())
        );
        let audit = &shown["audit_log"][0];
        assert_eq!(
            (&audit["actor"], &audit["action"]),
            (&"cli:maria".into(), &"replay".into())
        );
        assert_eq!(audit["detail"], "the target is mended");

        let again = change(&desk, &["events", "replay", "stripe:evt_1", "--json"]).await;
        assert_eq!(again.code, Some(4), "{again:?}");
        assert_eq!(
            (&again.json()["outcome"], &again.json()["state"]),
            (&"wrong_state".into(), &"queued".into())
        );
        assert_eq!(
            again.error,
            "hookgate: stripe:evt_1 is queued: only what is done or twin can be replayed\n"
        );
        assert_eq!(desk.audited().await, 1);
    }
}

#[tokio::test]
async fn twins_are_replayed_by_name_or_if_their_state_is_asked_for_and_never_with_the_done_ones() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", Outcome::Done).await;
        multiply(&desk, 5).await;
        desk.run("UPDATE webhook_events SET state = 'twin', twin_of = 'evt_1' WHERE event_id > 'evt_1_2'")
            .await;
        let replay = ["events", "replay"];
        for (which, count) in [
            (&["--all"][..], "3 events would be replayed\n"),
            (&["--source", "stripe"], "3 events would be replayed\n"),
            (&["--state", "twin"], "3 events would be replayed\n"),
            (
                &["--state", "twin", "--source", "stripe"],
                "3 events would be replayed\n",
            ),
            (&["--state", "done,twin"], "6 events would be replayed\n"),
        ] {
            let counted = change(&desk, &[&replay[..], which, &["--dry-run"]].concat()).await;
            assert_eq!(counted.text(), count, "{which:?}: {counted:?}");
        }
        for which in [
            &["--state", "dead"][..],
            &["--state", ""],
            &["--state", "twin", "--all"],
            &["--state", "twin", "stripe:evt_1_3"],
        ] {
            let refused = change(&desk, &[&replay[..], which].concat()).await;
            assert_eq!(refused.code, Some(2), "{which:?}: {refused:?}");
        }
        assert_eq!(desk.audited().await, 0);

        let one = change(&desk, &["events", "replay", "stripe:evt_1_3", "--json"]).await;
        assert_eq!(one.json()["generation"], 1, "{one:?}");
        let all = change(&desk, &["events", "replay", "--all"]).await;
        assert_eq!(all.text(), "3 events replayed\n");
        assert_eq!(desk.count("state = 'twin'").await, 2);
        let twins = change(&desk, &["events", "replay", "--state", "twin"]).await;
        assert_eq!(twins.text(), "2 events replayed\n");
        assert_eq!(desk.count("state = 'queued' AND generation = 1").await, 6);
        assert_eq!(
            desk.count("twin_of = 'evt_1'").await,
            3,
            "one sees what they were"
        );
        assert_eq!(desk.audited().await, 6);
    }
}

#[tokio::test]
async fn who_asks_may_be_said() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        let redriven = change(
            &desk,
            &["dead-letters", "redrive", "stripe:evt_1", "--who", "ops team"],
        )
        .await;
        assert_eq!(redriven.text(), "stripe:evt_1: redrive is done\n");
        assert_eq!(desk.sql("SELECT actor FROM audit_log").await, "cli:ops team");
    }
}

#[tokio::test]
async fn nothing_is_changed_without_a_reason_or_without_saying_what() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        for arguments in [
            &["dead-letters", "redrive", "--all"][..],
            &["dead-letters", "redrive", "--why", "mended"],
            &["dead-letters", "discard", "--why", "mended"],
            &[
                "dead-letters",
                "redrive",
                "--all",
                "--source",
                "stripe",
                "--why",
                "mended",
            ],
            &[
                "dead-letters",
                "redrive",
                "stripe:evt_1",
                "--all",
                "--why",
                "mended",
            ],
            &[
                "dead-letters",
                "redrive",
                "stripe:evt_1",
                "--source",
                "stripe",
                "--why",
                "mended",
            ],
            &["events", "replay", "--why", "mended"],
        ] {
            let refused = desk.hookgate(arguments).await;
            assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        }
        assert_eq!(desk.count("state = 'dead'").await, 1);
        assert_eq!(desk.audited().await, 0);
    }
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        multiply(&desk, 1200).await;
        let one = change(&desk, &["dead-letters", "redrive", "stripe:evt_1", "--dry-run"]).await;
        assert_eq!(one.text(), "stripe:evt_1: redrive would be done\n");
        let wrong = change(&desk, &["events", "replay", "stripe:evt_1", "--dry-run"]).await;
        assert_eq!(wrong.code, Some(4), "{wrong:?}");
        let many = change(
            &desk,
            &["dead-letters", "redrive", "--error", "500", "--dry-run", "--json"],
        )
        .await;
        assert_eq!(
            (&many.json()["events"], &many.json()["dry_run"]),
            (&1201.into(), &true.into())
        );
        assert_eq!(desk.count("state = 'dead'").await, 1201);

        let real = change(&desk, &["dead-letters", "redrive", "--error", "500"]).await;
        assert_eq!((real.code, real.text()), (Some(0), "1201 events redriven\n"));
        assert_eq!(desk.count("state = 'queued'").await, 1201);
        assert_eq!(desk.audited().await, 1201);
        let none = change(&desk, &["dead-letters", "redrive", "--error", "500"]).await;
        assert_eq!(none.code, Some(3), "{none:?}");
    }
}

#[tokio::test]
async fn targets_get_a_bulk_change_at_a_rate() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", Outcome::Done).await;
        multiply(&desk, 600).await;
        let replayed = change(&desk, &["events", "replay", "--all", "--rate", "1"]).await;
        assert_eq!(replayed.text(), "601 events replayed\n");
        // At one a second no two are due at the same time, and the last one in ten minutes.
        let due = "SELECT CAST(count(DISTINCT next_attempt_at) AS TEXT) FROM webhook_events";
        assert_eq!(desk.sql(due).await, "601");
        let list = desk
            .hookgate(&["events", "list", "--limit", "1000", "--json"])
            .await
            .json();
        let due: Vec<&str> = list["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["next_attempt_at"].as_str().unwrap())
            .collect();
        let (first, last) = (due.iter().min().unwrap(), due.iter().max().unwrap());
        let seconds = |text: &str| {
            let parts: Vec<i64> = text[11..19]
                .split(':')
                .map(|part| part.parse().unwrap())
                .collect();
            parts[0] * 3600 + parts[1] * 60 + parts[2]
        };
        // Whatever the machine was busy with between the two steps.
        let spread = (seconds(last) - seconds(first)).rem_euclid(86_400);
        assert!((540..=660).contains(&spread), "{first} to {last}");
    }
}

#[tokio::test]
async fn a_discarded_dead_letter_is_given_up_for_good() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        desk.put("github:evt_2", dead("answered 500")).await;
        let discarded = change(&desk, &["dead-letters", "discard", "--source", "github"]).await;
        assert_eq!(discarded.text(), "1 event discarded\n");
        assert_eq!(
            desk.sql("SELECT event_id FROM webhook_events WHERE state = 'discarded'")
                .await,
            "evt_2"
        );
        let late = change(&desk, &["dead-letters", "redrive", "github:evt_2"]).await;
        assert_eq!(late.code, Some(4), "{late:?}");
    }
}

#[tokio::test]
async fn a_pruned_event_is_refused_and_a_missing_one_is_not_found() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", Outcome::Done).await;
        desk.run(
            "UPDATE webhook_events SET body = substr(body, 1, 0), headers = '', pruned_at = received_at",
        )
        .await;
        let pruned = change(&desk, &["events", "replay", "stripe:evt_1", "--json"]).await;
        assert_eq!(
            (pruned.code, &pruned.json()["outcome"]),
            (Some(4), &"pruned".into())
        );
        let missing = change(&desk, &["events", "replay", "stripe:evt_2", "--json"]).await;
        assert_eq!(
            (missing.code, &missing.json()["outcome"]),
            (Some(3), &"not_found".into())
        );
    }
}

#[tokio::test]
async fn of_two_processes_that_redrive_one_event_one_is_refused() {
    for desk in Desk::both().await {
        for n in 0..10 {
            let key = format!("stripe:evt_{n}");
            desk.put(&key, dead("answered 500")).await;
            let redrive = ["dead-letters", "redrive", &key];
            let (one, two) = tokio::join!(change(&desk, &redrive), change(&desk, &redrive));
            let mut codes = [one.code, two.code];
            codes.sort_unstable();
            assert_eq!(codes, [Some(0), Some(4)], "{one:?} {two:?}");
        }
        assert_eq!(desk.audited().await, 10);
    }
}

#[tokio::test]
async fn two_processes_that_redrive_all_redrive_each_once() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        multiply(&desk, 2000).await;
        let redrive = ["dead-letters", "redrive", "--all", "--json"];
        let (one, two) = tokio::join!(change(&desk, &redrive), change(&desk, &redrive));
        let events = |said: &Said| said.json()["events"].as_u64().expect("a count");
        assert_eq!(events(&one) + events(&two), 2001, "{one:?} {two:?}");
        assert_eq!(desk.audited().await, 2001);
        assert_eq!(
            desk.count("state = 'queued' AND attempts = 1 AND tries = 0")
                .await,
            2001
        );
    }
}

/// Killed between two statements, or in the middle of one: what was changed is written down, and the same
/// command does the rest.
#[tokio::test]
async fn a_bulk_redrive_that_is_killed_can_be_given_again() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        multiply(&desk, 6000).await;
        let redrive = [&["dead-letters", "redrive", "--all"][..], &WHY].concat();
        let process = Process::spawn(desk.command(&redrive));
        until("the first step is committed", async || desk.audited().await > 0).await;
        process.signal("KILL");
        process.wait_exit().await;

        let queued = desk.count("state = 'queued'").await;
        assert_eq!(
            desk.audited().await,
            queued,
            "each change is written down, and nothing else is"
        );
        assert_eq!(
            queued + desk.count("state = 'dead'").await,
            6001,
            "each event is in one place"
        );

        let rest = desk.hookgate(&redrive).await;
        assert!(matches!(rest.code, Some(0 | 3)), "{rest:?}");
        assert_eq!(desk.count("state = 'queued'").await, 6001);
        assert_eq!(desk.audited().await, 6001);
    }
}
