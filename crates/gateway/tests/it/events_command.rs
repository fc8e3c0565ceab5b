//! `hookgate events` and `hookgate dead-letters`, looking: lists, one event, a body, and what is no question.

use hookgate_ledger::Outcome;
use hookgate_webhook::Field;

use crate::command_line::run;
use crate::desk::{Desk, dead, new};

#[tokio::test]
async fn a_list_is_read_page_by_page_from_the_newest_on() {
    for desk in Desk::both().await {
        for n in 0..5 {
            desk.put(&format!("stripe:evt_{n}"), Outcome::Done).await;
        }
        let mut ids = Vec::new();
        let mut cursor = String::new();
        loop {
            let mut arguments = vec!["events", "list", "--json", "--limit", "2"];
            if !cursor.is_empty() {
                arguments.extend(["--cursor", &cursor]);
            }
            let page = desk.hookgate(&arguments).await;
            assert_eq!(page.code, Some(0), "{page:?}");
            ids.extend(page.ids());
            match page.json()["next"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(ids, ["evt_4", "evt_3", "evt_2", "evt_1", "evt_0"]);
    }
}

#[tokio::test]
async fn flags_say_which_events_are_meant() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_done", Outcome::Done).await;
        desk.put("stripe:evt_dead", dead("answered 50% of 500")).await;
        desk.put("github:evt_github", Outcome::Done).await;
        let mut other = new("stripe:evt_other");
        other.event_type = Field::parse("charge.failed");
        other.object_id = Field::parse("ch_1");
        desk.put_new(other, Outcome::Done).await;
        let cases: [(&[&str], &[&str]); 10] = [
            (&["--source", "github"], &["evt_github"]),
            (&["--type", "charge.failed"], &["evt_other"]),
            (&["--object", "ch_1"], &["evt_other"]),
            (&["--state", "dead"], &["evt_dead"]),
            (&["--state", "dead,queued", "--state", "parked"], &["evt_dead"]),
            (&["--error", "50% OF"], &["evt_dead"]),
            (
                &["--source", "stripe", "--state", "done", "--since", "2h"],
                &["evt_other", "evt_done"],
            ),
            (&["--until", "2h"], &[]),
            (&["--since", "2999-01-01T00:00:00Z"], &[]),
            (
                &["--until", "2999-01-01T00:00:00+02:00", "--limit", "1"],
                &["evt_other"],
            ),
        ];
        for (flags, expected) in cases {
            let list = desk
                .hookgate(&[&["events", "list", "--json"], flags].concat())
                .await;
            assert_eq!(list.ids(), expected, "{flags:?}");
            let code = if expected.is_empty() { 3 } else { 0 };
            assert_eq!(list.code, Some(code), "{flags:?}: {list:?}");
        }
        let letters = desk.hookgate(&["dead-letters", "list", "--json"]).await;
        assert_eq!(letters.ids(), ["evt_dead"]);
    }
}

#[tokio::test]
async fn a_table_names_events_as_other_commands_take_them() {
    for desk in Desk::both().await {
        desk.put("stripe:evt_1", dead("answered 500")).await;
        let list = desk.hookgate(&["dead-letters", "list"]).await;
        let lines: Vec<&str> = list.text().lines().collect();
        assert!(lines[0].starts_with("RECEIVED"), "{list:?}");
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(
            cells[1..],
            [
                "dead",
                "stripe:evt_1",
                "invoice.paid",
                "in_1",
                "1",
                "answered",
                "500"
            ]
        );
        let shown = desk.hookgate(&["dead-letters", "show", cells[2]]).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.text().contains("answered 500"), "{shown:?}");
    }
}

#[tokio::test]
async fn one_event_is_shown_whole_but_for_its_body_and_secrets() {
    for desk in Desk::both().await {
        desk.put("stripe:a:b", dead("answered 500")).await;
        let shown = desk.hookgate(&["events", "show", "stripe:a:b", "--json"]).await;
        let event = shown.json();
        assert_eq!(
            (&event["source"], &event["event_id"]),
            (&"stripe".into(), &"a:b".into())
        );
        assert_eq!((&event["state"], &event["attempts"]), (&"dead".into(), &1.into()));
        assert_eq!(event["body_sha256"], "07".repeat(32));
        assert_eq!(event["attempt_log"][0]["outcome"], "dead");
        assert_eq!(event["attempt_log"][0]["error"], "answered 500");
        assert_eq!(event["headers"][0]["value"], "application/json");
        for form in [
            &["events", "show", "stripe:a:b"][..],
            &["events", "show", "stripe:a:b", "--json"],
        ] {
            let shown = desk.hookgate(form).await;
            assert!(!shown.text().contains("canary"), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn a_body_is_printed_byte_for_byte() {
    for desk in Desk::both().await {
        let mut event = new("stripe:evt_1");
        let bytes: Vec<u8> = (0..=255).collect();
        event.body = bytes.clone().into();
        desk.put_new(event, Outcome::Done).await;
        let body = desk.hookgate(&["events", "body", "stripe:evt_1"]).await;
        assert_eq!((body.code, body.bytes), (Some(0), bytes));
        desk.run(
            "UPDATE webhook_events SET body = substr(body, 1, 0), headers = '', pruned_at = received_at",
        )
        .await;
        let pruned = desk.hookgate(&["events", "body", "stripe:evt_1"]).await;
        assert_eq!(pruned.code, Some(4), "{pruned:?}");
        assert!(
            pruned.bytes.is_empty() && pruned.error.contains("pruned"),
            "{pruned:?}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_with_a_code_of_its_own() {
    for desk in Desk::both().await {
        for command in ["show", "body"] {
            let missing = desk.hookgate(&["events", command, "stripe:evt_1"]).await;
            assert_eq!(missing.code, Some(3), "{missing:?}");
            assert_eq!(missing.error, "hookgate: there is no event stripe:evt_1\n");
        }
        let none = desk.hookgate(&["events", "list"]).await;
        assert_eq!(none.code, Some(3), "{none:?}");
    }
}

#[tokio::test]
async fn no_text_of_a_stranger_acts_on_a_terminal() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}gnp\r\n\u{1b}[31mroot# rm -rf";
    for desk in Desk::both().await {
        desk.put("stripe:evt_\u{202e}1", dead(HOSTILE)).await;
        let redrive = async |why: &str| {
            let arguments = ["dead-letters", "redrive", "stripe:evt_\u{202e}1", "--why", why];
            desk.hookgate(&arguments).await
        };
        assert_eq!(redrive(HOSTILE).await.code, Some(2), "more than one line");
        let redriven = redrive("because \u{202e}gnp").await;
        assert_eq!(redriven.code, Some(0), "{redriven:?}");
        for arguments in [
            &["events", "list"][..],
            &["events", "list", "--json"],
            &["events", "show", "stripe:evt_\u{202e}1"],
            &["events", "show", "stripe:evt_\u{202e}1", "--json"],
            &["events", "show", "stripe:evt_\u{202e}2"],
            &[
                "dead-letters",
                "redrive",
                "stripe:evt_\u{202e}1",
                "--why",
                "again",
            ],
        ] {
            let said = desk.hookgate(arguments).await;
            let acts = |character: char| {
                character != '\n' && character.is_control() || ('\u{202a}'..='\u{202e}').contains(&character)
            };
            let all = format!("{}{}", said.text(), said.error);
            assert!(!all.contains(acts), "{arguments:?}: {all:?}");
        }
        let list = desk.hookgate(&["events", "list", "--json"]).await;
        assert_eq!(
            list.json()["events"][0]["last_error"],
            HOSTILE,
            "and JSON says what it was"
        );
        let table = desk.hookgate(&["events", "list"]).await;
        assert_eq!(table.text().lines().count(), 2, "{table:?}");
    }
}

#[tokio::test]
async fn a_wrong_flag_is_answered_with_the_accepted_form() {
    let cases: [(&[&str], &str); 10] = [
        (&["events", "list", "--since", "yesterday"], "an age such as 2h"),
        (&["events", "list", "--state", "lost"], "queued, running, done"),
        (&["events", "list", "--limit", "0"], "1..=1000"),
        (
            &["events", "list", "--cursor", "evt_1"],
            "the cursor that the page before ended with",
        ),
        (&["events", "list", "--source", "No Such"], "--source"),
        (&["events", "list", "--nonsense", "1"], "--nonsense"),
        (&["events", "show", "evt_1"], "source:event_id"),
        (
            &["dead-letters", "redrive", "--all", "--why", " "],
            "expected 1 to 500 characters on one line",
        ),
        (
            &["events", "replay", "--all", "--why", "x", "--rate", "0"],
            "1..=100000",
        ),
        (&["targets", "pause", "", "--why", "x"], "1 to 255 bytes"),
    ];
    for (arguments, form) in cases {
        let ran = run(arguments, &[("DATABASE_URL", "none")]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.text().contains(form), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_said_and_no_file_is_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("hookgate.db");
    let missing = crate::embedded::url(&file);
    let cases = [
        (missing.as_str(), "there is no file"),
        ("none", "DATABASE_URL = none"),
        ("mysql://db", "is not accepted"),
    ];
    for (url, sentence) in cases {
        let ran = run(&["dead-letters", "list"], &[("DATABASE_URL", url)]).await;
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.sentence().contains(sentence), "{ran:?}");
    }
    assert!(!file.exists());
    std::fs::write(&file, b"").expect("the directory takes a file");
    let empty = run(&["dead-letters", "list"], &[("DATABASE_URL", &missing)]).await;
    assert_eq!(empty.code, Some(64), "{empty:?}");
    assert!(empty.sentence().contains("hookgate migrate"), "{empty:?}");
}
