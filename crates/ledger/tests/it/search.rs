//! Searching events: every filter alone and together, and text that means nothing but itself.

use hookgate_ledger::{Cursor, Filter, Operations, Queue, State, UnixMicros};

use crate::database::Database;
use crate::on_both;
use crate::sample::{event, source};
use crate::table::{Row, at, ids, put, row};

on_both!(
    each_filter_finds_what_it_says,
    filters_given_together_must_all_be_met,
    error_text_is_found_whatever_its_case,
    no_character_of_the_error_text_has_a_meaning,
    text_that_no_database_can_hold_is_found_nowhere,
    times_without_end_are_accepted,
    a_listed_event_shows_all_but_what_it_carried,
);

async fn found(desk: &dyn Operations, filter: Filter) -> Vec<String> {
    let listing = desk.list(&filter, None, 100).await.unwrap();
    assert_eq!(listing.next, None);
    ids(&listing).into_iter().map(str::to_owned).collect()
}

async fn each_filter_finds_what_it_says(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let rows = [
        row("github", "other_source", at(1)),
        Row {
            event_type: "charge.failed",
            ..row("stripe", "other_type", at(2))
        },
        Row {
            object_id: "in_2",
            ..row("stripe", "other_object", at(3))
        },
        Row {
            state: State::Dead,
            ..row("stripe", "dead", at(4))
        },
        Row {
            state: State::Queued,
            ..row("stripe", "queued", at(5))
        },
        Row {
            state: State::Failed,
            ..row("stripe", "failed", at(6))
        },
        Row {
            error: "answered 500",
            ..row("stripe", "error", at(7))
        },
    ];
    put(&db, &*ledger, &rows).await;
    let all = Filter::default;
    let cases: [(Filter, &[&str]); 12] = [
        (
            Filter {
                source: Some(source("github")),
                ..all()
            },
            &["other_source"],
        ),
        (
            Filter {
                source: Some(source("nobody")),
                ..all()
            },
            &[],
        ),
        (
            Filter {
                event_type: Some("charge.failed".into()),
                ..all()
            },
            &["other_type"],
        ),
        (
            Filter {
                object_id: Some("in_2".into()),
                ..all()
            },
            &["other_object"],
        ),
        (
            Filter {
                states: vec![State::Dead],
                ..all()
            },
            &["dead"],
        ),
        (
            Filter {
                states: vec![State::Failed],
                ..all()
            },
            &["failed"],
        ),
        (
            Filter {
                states: vec![State::Queued, State::Parked],
                ..all()
            },
            &["queued"],
        ),
        (
            Filter {
                states: vec![State::Dead, State::Queued],
                ..all()
            },
            &["queued", "dead"],
        ),
        (
            Filter {
                since: Some(at(6)),
                ..all()
            },
            &["error", "failed"],
        ),
        (
            Filter {
                since: Some(UnixMicros(at(6).0 + 1)),
                ..all()
            },
            &["error"],
        ),
        (
            Filter {
                until: Some(at(2)),
                ..all()
            },
            &["other_source"],
        ),
        (
            Filter {
                error: Some("500".into()),
                ..all()
            },
            &["error"],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(&*desk, filter.clone()).await, expected, "{filter:?}");
    }
    let until = Filter {
        until: Some(UnixMicros(at(2).0 + 1)),
        ..all()
    };
    assert_eq!(found(&*desk, until).await, ["other_type", "other_source"]);
}

async fn filters_given_together_must_all_be_met(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let meant = |id| Row {
        event_type: "charge.failed",
        object_id: "ch_1",
        state: State::Dead,
        error: "answered 500",
        ..row("stripe", id, at(5))
    };
    let mut rows = vec![
        meant("meant"),
        meant("early"),
        meant("late"),
        meant("type"),
        meant("object"),
    ];
    rows.extend([meant("state"), meant("error"), meant("source")]);
    rows[1].received_at = at(4);
    rows[2].received_at = at(6);
    rows[3].event_type = "charge.paid";
    rows[4].object_id = "ch_2";
    rows[5].state = State::Done;
    rows[6].error = "answered 404";
    rows[7].key.source = source("stripe-eu");
    put(&db, &*ledger, &rows).await;
    let filter = Filter {
        source: Some(source("stripe")),
        event_type: Some("charge.failed".into()),
        object_id: Some("ch_1".into()),
        states: vec![State::Dead],
        since: Some(at(5)),
        until: Some(at(6)),
        error: Some("500".into()),
    };
    assert_eq!(found(&*desk, filter).await, ["meant"]);
}

async fn error_text_is_found_whatever_its_case(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let rows = [Row {
        error: "TLS Handshake failed",
        ..row("stripe", "evt_1", at(1))
    }];
    put(&db, &*ledger, &rows).await;
    for text in ["tls handshake", "TLS HANDSHAKE FAILED", "shake", ""] {
        let filter = Filter {
            error: Some(text.into()),
            ..Filter::default()
        };
        assert_eq!(found(&*desk, filter).await, ["evt_1"], "{text}");
    }
}

async fn no_character_of_the_error_text_has_a_meaning(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let texts = [
        "100% wrong",
        "a_b",
        r"back\slash",
        "it's [a] *? \"case\"",
        "1000 wrong",
        "axb",
        "backslash",
    ];
    let rows: Vec<Row> = (0..)
        .zip(texts)
        .map(|(n, error)| Row {
            error,
            ..row("stripe", &format!("evt_{n}"), at(n))
        })
        .collect();
    put(&db, &*ledger, &rows).await;
    for (text, expected) in [
        ("100%", "evt_0"),
        ("a_b", "evt_1"),
        (r"k\s", "evt_2"),
        ("it's [a] *?", "evt_3"),
        ("\"CASE\"", "evt_3"),
    ] {
        let filter = Filter {
            error: Some(text.into()),
            ..Filter::default()
        };
        assert_eq!(found(&*desk, filter).await, [expected], "{text}");
    }
    let injected = Filter {
        error: Some("' OR true --".into()),
        event_type: Some("'; DROP TABLE webhook_events; --".into()),
        ..Filter::default()
    };
    assert!(found(&*desk, injected).await.is_empty());
}

async fn text_that_no_database_can_hold_is_found_nowhere(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    put(&db, &*ledger, &[row("stripe", "evt_1", at(1))]).await;
    let zero = || Some("\0".to_owned());
    for filter in [
        Filter {
            error: zero(),
            ..Filter::default()
        },
        Filter {
            event_type: zero(),
            ..Filter::default()
        },
        Filter {
            object_id: zero(),
            ..Filter::default()
        },
    ] {
        assert!(found(&*desk, filter).await.is_empty());
    }
}

async fn times_without_end_are_accepted(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    put(&db, &*ledger, &[row("stripe", "evt_1", at(1))]).await;
    let everything = Filter {
        since: Some(UnixMicros(i64::MIN)),
        until: Some(UnixMicros(i64::MAX)),
        ..Filter::default()
    };
    assert_eq!(found(&*desk, everything).await, ["evt_1"]);
    let far = Cursor {
        received_at: UnixMicros(i64::MAX),
        key: row("stripe", "evt_1", at(1)).key,
    };
    let page = desk.list(&Filter::default(), Some(&far), 10).await.unwrap();
    assert_eq!(ids(&page), ["evt_1"]);
}

async fn a_listed_event_shows_all_but_what_it_carried(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    let listing = desk.list(&Filter::default(), None, 10).await.unwrap();
    let shown = &listing.events[0];
    assert_eq!(shown.provider, "stripe");
    assert_eq!(shown.account.as_deref(), Some("acct_1"));
    assert_eq!(shown.mode.as_deref(), Some("live"));
    assert_eq!(shown.event_type.as_deref(), Some("invoice.paid"));
    assert_eq!(shown.object_id.as_deref(), Some("in_1"));
    assert_eq!(shown.provider_time, Some(UnixMicros(1_700_000_000_123_000)));
    assert_eq!(
        (shown.state, shown.attempts, shown.tries, shown.generation),
        (State::Queued, 0, 0, 0)
    );
    assert_eq!(
        shown.next_attempt_at,
        Some(shown.received_at),
        "due as soon as it came"
    );
    assert_eq!((shown.processed_at, shown.pruned_at), (None, None));
    assert_eq!(shown.body_bytes, br#"{"id":"evt_1"}"#.len() as u64);
}
