//! Retention takes what is finished and old, and nothing else, however many do it at once and wherever they
//! stop.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::PATIENCE;
use hookgate_ledger::{
    Appended, Begun, DeliveryId, Queue, Retention, State, SweepPlace, Swept, UnixMicros, Upkeep,
};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, all, event, key};

on_both!(
    only_bodies_of_events_finished_long_ago_are_emptied,
    an_emptied_event_still_judges_its_copies,
    rows_stay_until_their_provider_can_send_no_more,
    what_belongs_to_a_row_goes_with_it_and_what_outlives_it_stays,
    unfinished_rows_and_dead_letters_stay_for_ever,
    sweeps_at_once_share_the_work_and_end,
    a_sweep_that_is_cut_off_anywhere_is_finished_by_the_next,
    counts_of_minutes_long_past_are_forgotten,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A month for bodies, and the rest for ever.
const MONTH: Retention = Retention {
    bodies: Duration::from_secs(30 * 24 * 3600),
    rows: Duration::from_secs(400 * 24 * 3600),
    stats: Duration::from_secs(35 * 24 * 3600),
};

/// Writes `count` rows in a state, come to rest so many days ago if that is a state of rest.
async fn rows(db: &Database, provider: &str, prefix: &str, state: &str, days: u32, count: u32) {
    let at = db.days_ago(days);
    let (digest, owner) = match db {
        Database::Postgres { .. } => (
            "decode(repeat('00', 32), 'hex')",
            "decode(repeat('01', 16), 'hex')",
        ),
        Database::Sqlite { .. } => ("zeroblob(32)", "zeroblob(16)"),
    };
    let rests = matches!(state, "done" | "dead" | "discarded" | "twin");
    let runs = state == "running";
    let when = |condition: bool, value: &str| {
        if condition {
            value.to_owned()
        } else {
            "NULL".to_owned()
        }
    };
    db.run(&format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
         INSERT INTO webhook_events (source, event_id, provider, path, state, received_at, next_attempt_at,
                                     processed_at, lease_owner, lease_until, delivery_id, body_sha256, headers, body)
         SELECT '{provider}', '{prefix}' || n, '{provider}', '{path}', '{state}', {at}, {at},
                {processed}, {lease_owner}, {lease_until}, {owner}, {digest}, '[[\"a\",\"b\"]]', {digest}
         FROM numbers",
        path = if state == "failed" { "forward" } else { "inbox" },
        processed = when(rests, &at),
        lease_owner = when(runs, owner),
        lease_until = when(runs, &at),
    ))
    .await;
}

/// Sweeps until nothing is left to do.
async fn sweep_all(keeper: &dyn Upkeep, retention: Retention) -> Swept {
    let (mut all, mut place) = (Swept::default(), SweepPlace::default());
    loop {
        let step = keeper.sweep(retention, &mut place).await.unwrap();
        all.pruned += step.pruned;
        all.deleted += step.deleted;
        if !step.more {
            return all;
        }
    }
}

/// Keys of the rows that this is true of, in order.
async fn keys(db: &Database, condition: &str) -> String {
    let join = match db {
        Database::Postgres { .. } => "string_agg",
        Database::Sqlite { .. } => "group_concat",
    };
    db.value(&format!(
        "SELECT {join}(event_id, ' ' ORDER BY event_id) FROM webhook_events WHERE {condition}"
    ))
    .await
}

const EMPTY: &str = "octet_length(body) = 0 AND headers = '[]' AND pruned_at IS NOT NULL";
const WHOLE: &str = "octet_length(body) = 32 AND headers <> '[]' AND pruned_at IS NULL";

/// Every state, long past the month, and what just came to rest.
async fn all_states(db: &Database) {
    for (state, days) in [
        ("done", 31),
        ("twin", 31),
        ("discarded", 31),
        ("queued", 40),
        ("parked", 40),
        ("running", 40),
        ("failed", 40),
        ("dead", 40),
    ] {
        rows(db, "stripe", &format!("{state}_{days}_"), state, days, 1).await;
    }
    rows(db, "stripe", "done_29_", "done", 29, 1).await;
}

async fn only_bodies_of_events_finished_long_ago_are_emptied(db: Database) {
    db.ledger().await;
    all_states(&db).await;
    let keepers = [db.keeper(), db.keeper()];
    let swept = join_all(keepers.iter().map(|keeper| sweep_all(&**keeper, MONTH))).await;
    assert_eq!(swept.iter().map(|swept| swept.pruned).sum::<u64>(), 3);
    assert_eq!(swept.iter().map(|swept| swept.deleted).sum::<u64>(), 0);
    assert_eq!(keys(&db, EMPTY).await, "discarded_31_1 done_31_1 twin_31_1");
    assert_eq!(
        keys(&db, WHOLE).await,
        "dead_40_1 done_29_1 failed_40_1 parked_40_1 queued_40_1 running_40_1"
    );
}

async fn an_emptied_event_still_judges_its_copies(db: Database) {
    let ledger = db.ledger().await;
    all_states(&db).await;
    let _ = sweep_all(&*db.keeper(), MONTH).await;
    for (id, state) in [
        ("done_31_1", State::Done),
        ("done_29_1", State::Done),
        ("twin_31_1", State::Twin),
        ("discarded_31_1", State::Discarded),
        ("dead_40_1", State::Dead),
        ("queued_40_1", State::Queued),
        ("parked_40_1", State::Parked),
        ("running_40_1", State::Running),
    ] {
        let again = ledger.append(event(id), Queue::ForWorker).await.unwrap();
        assert!(
            matches!(again, Appended::Duplicate { state: found, .. } if found == state),
            "{id}: {again:?}"
        );
        let entry = ledger.entry(&key(id)).await.unwrap().unwrap();
        assert_eq!((entry.state, entry.attempts), (state, 0), "{id}");
    }
    // What failed is the provider's to send again, and runs then.
    let again = ledger.begin(&event("failed_40_1"), LONG).await.unwrap();
    assert!(matches!(again, Begun::Run { .. }), "{again:?}");
    let mut due: Vec<_> = ledger.fetch(all(LONG)).await.unwrap();
    due.sort_by_key(|job| job.lease.key.to_string());
    let due: Vec<_> = due
        .iter()
        .map(|job| (job.lease.key.id.to_string(), job.body.len()))
        .collect();
    assert_eq!(
        due,
        [("parked_40_1".to_owned(), 32), ("queued_40_1".to_owned(), 32)]
    );
}

async fn rows_stay_until_their_provider_can_send_no_more(db: Database) {
    db.ledger().await;
    // GitHub sends an event again for 7 days, Stripe for 30, Shopify for 4 hours.
    for (provider, days) in [
        ("github", 6),
        ("github", 8),
        ("stripe", 29),
        ("stripe", 31),
        ("shopify", 1),
        ("shopify", 3),
    ] {
        rows(&db, provider, &format!("{provider}_{days}_"), "done", days, 1).await;
    }
    let keeper = db.keeper();
    let short = Retention {
        bodies: DAY / 2,
        rows: 2 * DAY,
        ..MONTH
    };
    assert_eq!(
        sweep_all(&*keeper, short).await,
        Swept {
            pruned: 6,
            deleted: 3,
            more: false
        }
    );
    assert_eq!(keys(&db, "true").await, "github_6_1 shopify_1_1 stripe_29_1");
    assert_eq!(keys(&db, EMPTY).await, "github_6_1 shopify_1_1 stripe_29_1");
}

async fn what_belongs_to_a_row_goes_with_it_and_what_outlives_it_stays(db: Database) {
    let ledger = db.ledger().await;
    rows(&db, "stripe", "old_", "done", 401, 1).await;
    let blob = match db {
        Database::Postgres { .. } => "''::bytea",
        Database::Sqlite { .. } => "x''",
    };
    for sql in [
        format!(
            "INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome)
             VALUES ('stripe', 'old_1', 0, 1, {blob}, {}, 'done')",
            db.days_ago(401)
        ),
        "INSERT INTO webhook_content_keys (source, kind, content_key, event_id)
         VALUES ('stripe', 'object', 'invoice.paid in_1', 'old_1')"
            .to_owned(),
        format!(
            "INSERT INTO outbox (effect_key, source, event_id, target, kind, payload)
             VALUES ('grant:in_1', 'stripe', 'old_1', 'billing', 'grant', {blob})"
        ),
        "INSERT INTO audit_log (actor, action, source, event_id) VALUES ('cli:maria', 'replay', 'stripe', 'old_1')"
            .to_owned(),
    ] {
        db.run(&sql).await;
    }
    let swept = sweep_all(&*db.keeper(), MONTH).await;
    assert_eq!(
        (swept.pruned, swept.deleted),
        (1, 1),
        "first the body, then the row"
    );
    for (table, left) in [
        ("webhook_events", "0"),
        ("webhook_attempts", "0"),
        ("webhook_content_keys", "0"),
        ("outbox", "1"),
        ("audit_log", "1"),
    ] {
        assert_eq!(
            db.value(&format!("SELECT count(*) FROM {table}")).await,
            left,
            "{table}"
        );
    }
    // After so long it is a new event; its effect keeps its key.
    let again = ledger.append(event("old_1"), Queue::ForWorker).await.unwrap();
    assert_eq!(again, Appended::Accepted);
}

async fn unfinished_rows_and_dead_letters_stay_for_ever(db: Database) {
    db.ledger().await;
    for state in ["queued", "parked", "running", "failed", "dead"] {
        rows(&db, "stripe", &format!("{state}_"), state, 3000, 1).await;
    }
    assert_eq!(sweep_all(&*db.keeper(), MONTH).await, Swept::default());
    assert_eq!(
        keys(&db, WHOLE).await,
        "dead_1 failed_1 parked_1 queued_1 running_1"
    );
}

async fn sweeps_at_once_share_the_work_and_end(db: Database) {
    db.ledger().await;
    rows(&db, "stripe", "body_", "done", 31, 700).await;
    rows(&db, "github", "row_", "done", 500, 700).await;
    let keepers = [db.keeper(), db.keeper(), db.keeper()];
    let swept = join_all(keepers.iter().map(|keeper| sweep_all(&**keeper, MONTH))).await;
    // One may have skipped the rows that another was about to empty, and so have ended early.
    let rest = sweep_all(&*keepers[0], MONTH).await;
    let pruned: u64 = swept.iter().map(|swept| swept.pruned).sum();
    let deleted: u64 = swept.iter().map(|swept| swept.deleted).sum();
    assert_eq!(
        (pruned + rest.pruned, deleted + rest.deleted),
        (1400, 700),
        "each once"
    );
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "700");
    assert_eq!(
        db.value(&format!("SELECT count(*) FROM webhook_events WHERE {EMPTY}"))
            .await,
        "700"
    );
}

async fn a_sweep_that_is_cut_off_anywhere_is_finished_by_the_next(db: Database) {
    db.ledger().await;
    rows(&db, "stripe", "body_", "done", 31, 900).await;
    rows(&db, "github", "row_", "done", 500, 300).await;
    rows(&db, "stripe", "young_", "done", 29, 5).await;
    for microseconds in [0, 200, 900, 2500, 6000, 15_000] {
        let keeper = db.keeper();
        let cut = Duration::from_micros(microseconds);
        let _ = tokio::time::timeout(cut, sweep_all(&*keeper, MONTH)).await;
    }
    let last = tokio::time::timeout(PATIENCE, sweep_all(&*db.keeper(), MONTH)).await;
    assert!(!last.expect("what was cut off holds nobody up").more);
    // A statement that was cut off on this side may still end on the other.
    let _ = sweep_all(&*db.keeper(), MONTH).await;
    assert_eq!(
        db.value(&format!("SELECT count(*) FROM webhook_events WHERE {EMPTY}"))
            .await,
        "900"
    );
    assert_eq!(
        db.value(&format!("SELECT count(*) FROM webhook_events WHERE {WHOLE}"))
            .await,
        "5"
    );
}

async fn counts_of_minutes_long_past_are_forgotten(db: Database) {
    db.ledger().await;
    let keeper = db.keeper();
    let counts = [(("stripe".to_owned(), "accepted".to_owned()), 1)].into();
    keeper
        .record_minute(UnixMicros(0), DeliveryId(1), &counts)
        .await
        .unwrap();
    let now = match db {
        Database::Postgres { .. } => "SELECT (extract(epoch FROM now()) * 1000000)::bigint",
        Database::Sqlite { .. } => "SELECT now * 1000 FROM clock",
    };
    let now: i64 = db.value(now).await.parse().unwrap();
    keeper
        .record_minute(UnixMicros(now), DeliveryId(1), &counts)
        .await
        .unwrap();
    assert_eq!(sweep_all(&*keeper, MONTH).await, Swept::default());
    assert_eq!(db.value("SELECT count(*) FROM stats_minute").await, "1");
}

/// Somebody has a row open, perhaps to replay it: the sweep goes on without it and takes it the next time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_somebody_holds_is_left_for_the_next_sweep() {
    let db = Database::postgres().await;
    db.ledger().await;
    rows(&db, "stripe", "body_", "done", 31, 3).await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let mut holder = <sqlx::PgConnection as sqlx::Connection>::connect(url)
        .await
        .unwrap();
    let hold = "BEGIN; SELECT 1 FROM webhook_events WHERE event_id = 'body_2' FOR UPDATE";
    sqlx::Executor::execute(&mut holder, hold).await.unwrap();
    let keeper = db.keeper();
    assert_eq!(sweep_all(&*keeper, MONTH).await.pruned, 2);
    let replay = "UPDATE webhook_events SET state = 'queued', processed_at = NULL, next_attempt_at = now()
                  WHERE event_id = 'body_2'; COMMIT";
    sqlx::Executor::execute(&mut holder, replay).await.unwrap();
    assert_eq!(sweep_all(&*keeper, MONTH).await.pruned, 0, "it is to run again");
    assert_eq!(keys(&db, WHOLE).await, "body_2");
}
