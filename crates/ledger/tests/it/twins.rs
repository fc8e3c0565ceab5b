//! Events that are the same under another id: who is the original, who is suppressed, and what is never lost.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_ledger::{
    Alike, Appended, ContentKey, Effects, Ledger, NewEvent, Outcome, Queue, State, Subject,
};
use hookgate_webhook::{Field, ProviderTime};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, copy_in, event, fetch_one, key};

on_both!(
    the_second_event_of_one_change_is_kept_as_a_twin,
    an_event_with_other_content_in_between_makes_the_first_content_news_again,
    three_honest_updates_are_all_kept_in_any_order,
    outside_the_window_the_new_event_becomes_the_original,
    without_times_the_moment_of_arrival_counts,
    an_original_that_died_passes_its_key_to_the_next_one,
    an_original_that_is_run_by_a_worker_suppresses,
    a_shadow_links_and_suppresses_nothing,
    the_same_body_under_a_new_id_is_flagged_or_suppressed,
    twins_in_one_batch_leave_one_to_run,
    a_repeated_append_is_told_the_same_again,
    of_twins_at_two_replicas_one_runs_every_time,
    a_poisoned_row_spoils_no_twin_of_its_batch,
    events_without_keys_claim_none,
    keys_go_with_their_rows,
);

const WINDOW: Duration = Duration::from_secs(600);

fn field(text: &str) -> Field {
    Field::parse(text).unwrap()
}

/// An event about `in_1` that says this of it, at this second by its provider.
pub(crate) fn says(id: &str, content: u8, second: i64) -> NewEvent {
    with_key(id, content, Some(second), |subject, sha256| {
        ContentKey::of_content(subject, sha256, WINDOW, true)
    })
}

fn with_key(
    id: &str,
    content: u8,
    second: Option<i64>,
    key: impl Fn(Subject<'_>, [u8; 32]) -> ContentKey,
) -> NewEvent {
    let mut new = event(id);
    let subject = Subject {
        mode: new.mode,
        account: new.account.as_ref(),
        event_type: &field("invoice.updated"),
        object_id: &field("in_1"),
    };
    new.content_keys = vec![key(subject, [content; 32])];
    new.provider_time = second.map(|second| ProviderTime {
        text: second.to_string().into(),
        unix_ms: second * 1000,
    });
    new
}

pub(crate) const TWIN: Appended = Appended::Twin(Alike {
    body: false,
    twin: true,
});

pub(crate) async fn append(ledger: &dyn Ledger, event: NewEvent) -> Appended {
    ledger.append(event, Queue::ForWorker).await.unwrap()
}

pub(crate) async fn state(ledger: &dyn Ledger, id: &str) -> State {
    ledger.entry(&key(id)).await.unwrap().unwrap().state
}

pub(crate) async fn twin_of(db: &Database, id: &str) -> String {
    db.value(&format!(
        "SELECT twin_of FROM webhook_events WHERE event_id = '{id}'"
    ))
    .await
}

async fn the_second_event_of_one_change_is_kept_as_a_twin(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(append(&*ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_2", 1, 1)).await, TWIN);
    assert_eq!(append(&*ledger, says("evt_3", 1, 600)).await, TWIN);
    assert_eq!(state(&*ledger, "evt_2").await, State::Twin);
    assert_eq!(twin_of(&db, "evt_2").await, "evt_1");
    assert_eq!(twin_of(&db, "evt_3").await, "evt_1");
    assert_eq!(
        append(&*ledger, says("evt_2", 1, 1)).await,
        copy_in(State::Twin),
        "a plain duplicate"
    );
    assert_eq!(
        append(&*ledger, says("evt_1", 1, 0)).await,
        copy_in(State::Queued)
    );
    let job = fetch_one(&*ledger, LONG).await;
    assert_eq!(job.lease.key, key("evt_1"));
    let mut other = says("evt_4", 1, 0);
    other.key.source = crate::sample::source("stripe-us");
    assert_eq!(
        append(&*ledger, other).await,
        Appended::Accepted,
        "another source, another event"
    );
}

async fn an_event_with_other_content_in_between_makes_the_first_content_news_again(db: Database) {
    let ledger = db.ledger().await;
    for (id, content, second) in [("evt_1", 1, 0), ("evt_2", 2, 1), ("evt_3", 1, 2)] {
        assert_eq!(
            append(&*ledger, says(id, content, second)).await,
            Appended::Accepted,
            "{id}"
        );
    }
    assert_eq!(append(&*ledger, says("evt_4", 1, 3)).await, TWIN);
    assert_eq!(twin_of(&db, "evt_4").await, "evt_3");
}

async fn three_honest_updates_are_all_kept_in_any_order(db: Database) {
    let ledger = db.ledger().await;
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (n, order) in orders.into_iter().enumerate() {
        for step in order {
            let mut event = says(&format!("evt_{n}_{step}"), step, i64::from(step));
            event.key.source = crate::sample::source(&format!("source_{n}"));
            assert_eq!(
                append(&*ledger, event).await,
                Appended::Accepted,
                "{order:?}, {step}"
            );
        }
    }
    let rested = "SELECT count(*) FROM webhook_events WHERE state <> 'queued' OR twin_of IS NOT NULL";
    assert_eq!(db.value(rested).await, "0");
}

async fn outside_the_window_the_new_event_becomes_the_original(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(append(&*ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_2", 1, 601)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_3", 1, 602)).await, TWIN);
    assert_eq!(twin_of(&db, "evt_3").await, "evt_2");
}

async fn without_times_the_moment_of_arrival_counts(db: Database) {
    let ledger = db.ledger().await;
    let event = |id| {
        with_key(id, 1, None, |subject, sha256| {
            ContentKey::of_content(subject, sha256, WINDOW, true)
        })
    };
    assert_eq!(append(&*ledger, event("evt_1")).await, Appended::Accepted);
    assert_eq!(append(&*ledger, event("evt_2")).await, TWIN);
    let long_ago = db.ago(WINDOW + Duration::from_secs(60));
    db.run(&format!(
        "UPDATE webhook_content_keys SET claimed_at = {long_ago}"
    ))
    .await;
    assert_eq!(append(&*ledger, event("evt_3")).await, Appended::Accepted);
    assert_eq!(append(&*ledger, event("evt_4")).await, TWIN);
    assert_eq!(
        append(&*ledger, says("evt_5", 1, 0)).await,
        Appended::Accepted,
        "only one has a time"
    );
}

/// Runs the one event that is due to this end.
async fn run(ledger: &dyn Ledger, outcome: Outcome) {
    let job = fetch_one(ledger, LONG).await;
    let settled = ledger.settle(&job.lease, outcome, Effects::default()).await;
    assert!(settled.is_ok(), "{settled:?}");
}

async fn an_original_that_died_passes_its_key_to_the_next_one(db: Database) {
    let ledger = db.ledger().await;
    let dead = || Outcome::Dead { error: "no".into() };
    assert_eq!(append(&*ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    run(&*ledger, dead()).await;
    assert_eq!(append(&*ledger, says("evt_2", 1, 1)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_3", 1, 2)).await, TWIN);
    assert_eq!(twin_of(&db, "evt_3").await, "evt_2");
    run(&*ledger, Outcome::Done).await;
    assert_eq!(
        append(&*ledger, says("evt_4", 1, 3)).await,
        TWIN,
        "a finished one suppresses"
    );
    db.run("UPDATE webhook_events SET state = 'discarded' WHERE event_id = 'evt_2'")
        .await;
    assert_eq!(append(&*ledger, says("evt_5", 1, 4)).await, Appended::Accepted);
}

async fn an_original_that_is_run_by_a_worker_suppresses(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(append(&*ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    let _job = fetch_one(&*ledger, LONG).await;
    assert_eq!(append(&*ledger, says("evt_2", 1, 1)).await, TWIN);
}

async fn a_shadow_links_and_suppresses_nothing(db: Database) {
    let ledger = db.ledger().await;
    let event = |id| with_key(id, 1, Some(0), |subject, _| ContentKey::of_object(subject, false));
    assert_eq!(append(&*ledger, event("evt_1")).await, Appended::Accepted);
    let alike = Alike {
        body: false,
        twin: true,
    };
    assert_eq!(append(&*ledger, event("evt_2")).await, Appended::Alike(alike));
    assert_eq!(
        (state(&*ledger, "evt_2").await, &*twin_of(&db, "evt_2").await),
        (State::Queued, "evt_1")
    );
}

async fn the_same_body_under_a_new_id_is_flagged_or_suppressed(db: Database) {
    let ledger = db.ledger().await;
    let event = |id, suppresses| {
        with_key(id, 7, None, move |_, sha256| {
            ContentKey::of_body(&sha256, suppresses)
        })
    };
    let alike = Alike {
        body: true,
        twin: false,
    };
    assert_eq!(append(&*ledger, event("evt_1", false)).await, Appended::Accepted);
    assert_eq!(
        append(&*ledger, event("evt_2", false)).await,
        Appended::Alike(alike)
    );
    assert_eq!(
        append(&*ledger, event("evt_3", true)).await,
        Appended::Twin(alike)
    );
    assert_eq!(
        (state(&*ledger, "evt_2").await, state(&*ledger, "evt_3").await),
        (State::Queued, State::Twin)
    );
    assert_eq!(twin_of(&db, "evt_3").await, "evt_1");
}

/// While all writers stand still, appends gather and travel in one batch.
async fn twins_in_one_batch_leave_one_to_run(db: Database) {
    let ledger = db.ledger().await;
    let standstill = db.standstill().await;
    let events = [
        says("evt_a", 1, 3),
        says("evt_b", 1, 2),
        says("evt_c", 1, 1),
        says("evt_c", 1, 1),
        event("evt_d"),
    ];
    let appends = join_all(events.map(|event| append(&*ledger, event)));
    let (found, ()) = tokio::join!(appends, standstill.end());
    let accepted = found.iter().filter(|found| **found == Appended::Accepted).count();
    assert_eq!(accepted, 2, "one of the change, and the one beside it: {found:?}");
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_events WHERE state = 'twin'")
            .await,
        "2"
    );
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "4");
}

async fn a_repeated_append_is_told_the_same_again(db: Database) {
    let ledger = db.ledger().await;
    let (first, second) = (says("evt_1", 1, 0), says("evt_2", 1, 1));
    for _ in 0..2 {
        assert_eq!(
            append(&*ledger, first.clone()).await,
            Appended::Accepted,
            "its own key is no twin's"
        );
    }
    for _ in 0..2 {
        assert_eq!(append(&*ledger, second.clone()).await, TWIN);
    }
    run(&*ledger, Outcome::Dead { error: "no".into() }).await;
    assert_eq!(append(&*ledger, second).await, TWIN, "what was decided stands");
}

async fn of_twins_at_two_replicas_one_runs_every_time(db: Database) {
    let replicas = [db.ledger().await, db.replica(), db.replica()];
    for round in 0..100 {
        let object = field(&format!("in_{round}"));
        let appends = (0..6).map(|n| {
            let mut event = event(&format!("evt_{round}_{n}"));
            let subject = Subject {
                mode: event.mode,
                account: None,
                event_type: &field("invoice.paid"),
                object_id: &object,
            };
            // In either order of ids and times, and two keys in either order.
            event.content_keys = vec![
                ContentKey::of_object(subject, true),
                ContentKey::of_content(subject, [1; 32], WINDOW, true),
            ];
            if n % 2 == 0 {
                event.content_keys.reverse();
            }
            replicas[n % 3].append(event, Queue::ForWorker)
        });
        let found: Vec<_> = join_all(appends).await.into_iter().map(Result::unwrap).collect();
        let accepted = found.iter().filter(|found| **found == Appended::Accepted).count();
        let twins = found.iter().filter(|found| **found == TWIN).count();
        assert_eq!((accepted, twins), (1, 5), "round {round}: {found:?}");
    }
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_events WHERE state = 'queued'")
            .await,
        "100"
    );
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "600");
}

async fn a_poisoned_row_spoils_no_twin_of_its_batch(db: Database) {
    let ledger = db.ledger().await;
    db.poison("webhook_events", "event_id").await;
    let standstill = db.standstill().await;
    let events = ["evt_1", "evt_2", "poison"].map(|id| says(id, 1, 0));
    let appends = join_all(events.map(|event| ledger.append(event, Queue::ForWorker)));
    let (found, ()) = tokio::join!(appends, standstill.end());
    let mut found = found.into_iter();
    let two: Vec<_> = found.by_ref().take(2).map(Result::unwrap).collect();
    assert!(
        two.contains(&Appended::Accepted) && two.contains(&TWIN),
        "{two:?}"
    );
    assert!(found.next().unwrap().is_err());
}

async fn events_without_keys_claim_none(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(append(&*ledger, event("evt_1")).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_2", 1, 0)).await, Appended::Accepted);
    assert_eq!(
        db.value("SELECT event_id FROM webhook_content_keys").await,
        "evt_2"
    );
}

async fn keys_go_with_their_rows(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(append(&*ledger, says("evt_1", 1, 0)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_2", 1, 0)).await, TWIN);
    match &db {
        Database::Postgres { .. } => {
            db.run("DELETE FROM webhook_events WHERE event_id = 'evt_1'")
                .await
        }
        Database::Sqlite { .. } => {
            db.run("PRAGMA foreign_keys = ON; DELETE FROM webhook_events WHERE event_id = 'evt_1'")
                .await;
        }
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_content_keys").await, "0");
    assert_eq!(append(&*ledger, says("evt_3", 1, 0)).await, Appended::Accepted);
}
