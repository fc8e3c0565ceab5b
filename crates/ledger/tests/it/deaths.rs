//! What an alert is told about events that died.

use hookgate_ledger::{Death, Deaths, DeliveryId, Effects, Ledger, Outcome, Queue, UnixMicros};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, all, event, fetch_one, key, lane, source};

on_both!(
    deaths_are_counted_by_source_and_the_latest_is_named,
    only_what_died_later_and_is_still_dead_counts,
    counting_stops_where_a_number_says_no_more,
    a_death_that_others_may_still_come_before_is_left_for_later,
    whoever_is_not_elected_knows_how_far_people_know,
);

/// An event that died of this.
async fn dies(ledger: &dyn Ledger, name: &str, id: &str, error: &str) {
    let mut event = event(id);
    event.key.source = source(name);
    let _ = ledger.append(event, Queue::ForWorker).await.unwrap();
    let mut want = all(LONG);
    want.lanes = vec![lane(name, 0)];
    let job = ledger.fetch(want).await.unwrap().remove(0);
    let dead = Outcome::Dead {
        error: error.to_owned(),
    };
    let _ = ledger.settle(&job.lease, dead, Effects::default()).await.unwrap();
}

/// Lets an event have died so many days ago.
async fn backdate(db: &Database, id: &str, days: u32) {
    let moment = db.days_ago(days);
    db.run(&format!(
        "UPDATE webhook_events SET processed_at = {moment} WHERE event_id = '{id}'"
    ))
    .await;
}

async fn deaths_are_counted_by_source_and_the_latest_is_named(db: Database) {
    let ledger = db.ledger().await;
    let keeper = db.keeper();
    assert_eq!(
        keeper.deaths_since(UnixMicros(0)).await.unwrap(),
        Deaths::default()
    );
    dies(&*ledger, "stripe", "evt_1", "the target answered 410").await;
    dies(&*ledger, "github", "evt_2", "the target answered 500").await;
    dies(&*ledger, "stripe", "evt_3", "the target answered 404").await;
    for (id, days) in [("evt_1", 3), ("evt_2", 1), ("evt_3", 2)] {
        backdate(&db, id, days).await;
    }
    let deaths = keeper.deaths_since(UnixMicros(0)).await.unwrap();
    assert_eq!(
        deaths.by_source,
        [(source("github"), 1), (source("stripe"), 2)].into()
    );
    let mut latest = key("evt_2");
    latest.source = source("github");
    let Some(Death { key, reason, .. }) = deaths.latest else {
        panic!("somebody died")
    };
    assert_eq!((key, reason.as_str()), (latest, "the target answered 500"));
}

async fn only_what_died_later_and_is_still_dead_counts(db: Database) {
    let ledger = db.ledger().await;
    let keeper = db.keeper();
    for (id, days) in [("evt_1", 3), ("evt_2", 2), ("evt_3", 1)] {
        dies(&*ledger, "stripe", id, "no").await;
        backdate(&db, id, days).await;
    }
    db.run("UPDATE webhook_events SET state = 'discarded' WHERE event_id = 'evt_3'")
        .await;
    let latest = keeper.deaths_since(UnixMicros(0)).await.unwrap().latest.unwrap();
    assert_eq!(latest.key, key("evt_2"));
    let later = keeper.deaths_since(latest.at).await.unwrap();
    assert_eq!(later, Deaths::default(), "nobody died after the latest");
    let before = keeper
        .deaths_since(UnixMicros(latest.at.0 - 1_000))
        .await
        .unwrap();
    assert_eq!(before.by_source, [(source("stripe"), 1)].into());

    // It runs again, and dies of something else.
    db.run(&format!(
        "UPDATE webhook_events SET state = 'queued', next_attempt_at = {}, processed_at = NULL
         WHERE event_id = 'evt_1'",
        db.days_ago(1)
    ))
    .await;
    let job = fetch_one(&*ledger, LONG).await;
    let dead = Outcome::Dead {
        error: "again".to_owned(),
    };
    let _ = ledger.settle(&job.lease, dead, Effects::default()).await.unwrap();
    let long_enough = db.ago(Deaths::SETTLED_AFTER);
    db.run(&format!(
        "UPDATE webhook_events SET processed_at = {long_enough} WHERE last_error = 'again'"
    ))
    .await;
    let again = keeper.deaths_since(latest.at).await.unwrap();
    assert_eq!(again.by_source, [(source("stripe"), 1)].into());
    assert_eq!(again.latest.unwrap().reason, "again");
}

async fn counting_stops_where_a_number_says_no_more(db: Database) {
    db.ledger().await;
    let digest = match db {
        Database::Postgres { .. } => "decode(repeat('00', 32), 'hex')",
        Database::Sqlite { .. } => "zeroblob(32)",
    };
    db.run(&format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10100)
         INSERT INTO webhook_events (source, event_id, provider, path, state, processed_at,
                                     delivery_id, body_sha256, headers, body)
         SELECT 'stripe', 'evt_' || n, 'stripe', 'inbox', 'dead', {}, {digest}, {digest}, '[]', {digest}
         FROM numbers",
        db.days_ago(1)
    ))
    .await;
    let deaths = db.keeper().deaths_since(UnixMicros(0)).await.unwrap();
    assert_eq!(deaths.by_source, [(source("stripe"), Deaths::COUNT_MAX)].into());
}

/// Two that died at one moment, of which the second is committed when the first could be read long since.
async fn a_death_that_others_may_still_come_before_is_left_for_later(db: Database) {
    let ledger = db.ledger().await;
    let keeper = db.keeper();
    dies(&*ledger, "stripe", "evt_1", "no").await;
    // The year 2096, so that the test may take its time.
    let just_now = db.moment(UnixMicros(4_000_000_000_000_000));
    db.run(&format!("UPDATE webhook_events SET processed_at = {just_now}"))
        .await;
    let before = keeper.deaths_since(UnixMicros(0)).await.unwrap();
    assert_eq!(before, Deaths::default(), "it is not yet settled");
    dies(&*ledger, "stripe", "evt_2", "no").await;
    let long_enough = db.ago(Deaths::SETTLED_AFTER);
    db.run(&format!("UPDATE webhook_events SET processed_at = {long_enough}"))
        .await;
    let told = keeper.deaths_since(UnixMicros(0)).await.unwrap();
    assert_eq!(told.by_source, [(source("stripe"), 2)].into());
    let known = told.latest.unwrap().at;
    let after = keeper.deaths_since(known).await.unwrap();
    assert_eq!(after, Deaths::default(), "neither is told again");
}

async fn whoever_is_not_elected_knows_how_far_people_know(db: Database) {
    db.ledger().await;
    let (teller, other) = (db.keeper(), db.keeper());
    let owner = DeliveryId(rand::random());
    assert_eq!(other.done_until("alert").await.unwrap(), None, "nobody ever told");
    let _ = teller.elect("alert", owner, LONG).await.unwrap();
    assert_eq!(
        other.done_until("alert").await.unwrap(),
        None,
        "nobody has told yet"
    );
    let told = UnixMicros(1_767_225_610_123_000);
    assert!(teller.conclude("alert", owner, Some(told), LONG).await.unwrap());
    assert_eq!(other.done_until("alert").await.unwrap(), Some(told));
}
