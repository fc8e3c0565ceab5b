//! Pauses of targets, and counts per minute.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use hookgate_ledger::{MinuteStats, UnixMicros};

use crate::change::reason;
use crate::database::Database;
use crate::on_both;
use crate::sample::source;

on_both!(
    a_pause_is_seen_until_it_is_lifted,
    targets_that_workers_name_are_known_and_nothing_else_of_them_changes,
    of_pauses_at_once_one_is_made,
    a_pause_leaves_what_is_known_of_an_outage,
    pauses_are_written_down_with_their_target,
    counts_are_summed_over_replicas,
    counts_are_of_the_minutes_asked_for,
);

async fn a_pause_is_seen_until_it_is_lifted(db: Database) {
    let desk = db.desk().await;
    assert!(desk.targets().await.unwrap().is_empty());
    assert!(!desk.resume("billing", &reason("never paused")).await.unwrap());
    assert!(desk.pause("billing", &reason("they migrate")).await.unwrap());
    assert!(!desk.pause("billing", &reason("again")).await.unwrap());
    let targets = desk.targets().await.unwrap();
    let pause = targets[0].paused.as_ref().unwrap();
    assert_eq!((targets[0].name.as_str(), targets.len()), ("billing", 1));
    assert_eq!(
        (pause.by.as_str(), pause.why.as_str()),
        ("cli:maria", "they migrate")
    );
    assert!(pause.at > UnixMicros(1_700_000_000_000_000));
    assert!(desk.resume("billing", &reason("they are done")).await.unwrap());
    assert!(!desk.resume("billing", &reason("again")).await.unwrap());
    assert_eq!(desk.targets().await.unwrap()[0].paused, None);
}

async fn targets_that_workers_name_are_known_and_nothing_else_of_them_changes(db: Database) {
    let (desk, ledger) = (db.desk().await, db.ledger().await);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    ledger
        .introduce_targets(&names(&["crm", "billing"]))
        .await
        .unwrap();
    assert!(desk.pause("crm", &reason("they migrate")).await.unwrap());
    ledger.target_down("crm").await.unwrap();
    for _ in 0..2 {
        ledger.introduce_targets(&names(&["mail", "crm"])).await.unwrap();
    }
    let targets = desk.targets().await.unwrap();
    let known = targets.iter().map(|target| {
        let state = (target.paused.is_some(), target.down_since.is_some());
        (target.name.as_str(), state)
    });
    let quiet = (false, false);
    assert_eq!(
        known.collect::<Vec<_>>(),
        [("billing", quiet), ("crm", (true, true)), ("mail", quiet)]
    );
}

async fn of_pauses_at_once_one_is_made(db: Database) {
    let mut desks = Vec::new();
    for _ in 0..6 {
        desks.push(db.desk().await);
    }
    let why = reason("they migrate");
    let made = join_all(desks.iter().map(|desk| desk.pause("billing", &why))).await;
    assert_eq!(made.iter().filter(|one| *one.as_ref().unwrap()).count(), 1);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
}

async fn a_pause_leaves_what_is_known_of_an_outage(db: Database) {
    let desk = db.desk().await;
    let since = UnixMicros(1_767_225_610_000_000);
    db.run(&format!(
        "INSERT INTO targets (name, down_since) VALUES ('billing', {})",
        db.moment(since)
    ))
    .await;
    assert!(desk.pause("billing", &reason("they migrate")).await.unwrap());
    assert!(desk.resume("billing", &reason("they are done")).await.unwrap());
    let targets = desk.targets().await.unwrap();
    assert_eq!((&targets[0].paused, targets[0].down_since), (&None, Some(since)));
}

async fn pauses_are_written_down_with_their_target(db: Database) {
    let desk = db.desk().await;
    assert!(desk.pause("billing", &reason("they migrate")).await.unwrap());
    assert!(desk.resume("billing", &reason("they are done")).await.unwrap());
    let said = "SELECT actor || ' ' || action || ' ' || target || ': ' || detail FROM audit_log
                WHERE source IS NULL AND event_id IS NULL AND action =";
    assert_eq!(
        db.value(&format!("{said} 'pause'")).await,
        "cli:maria pause billing: they migrate"
    );
    assert_eq!(
        db.value(&format!("{said} 'resume'")).await,
        "cli:maria resume billing: they are done"
    );
}

/// Minutes since some hour.
fn minute(n: i64) -> UnixMicros {
    UnixMicros(1_767_225_600_000_000 + n * 60_000_000)
}

async fn count(db: &Database, at: UnixMicros, source: &str, name: &str, replica: &str, count: u32) {
    let bytes = match db {
        Database::Postgres { .. } => format!("'\\x{replica}'"),
        Database::Sqlite { .. } => format!("x'{replica}'"),
    };
    db.run(&format!(
        "INSERT INTO stats_minute (minute, source, name, replica, count)
         VALUES ({}, '{source}', '{name}', {bytes}, {count})",
        db.moment(at)
    ))
    .await;
}

fn stats(at: UnixMicros, source: &str, counts: &[(&str, u64)]) -> MinuteStats {
    let counts = counts.iter().map(|&(name, count)| (name.to_owned(), count));
    MinuteStats {
        minute: at,
        source: source.into(),
        counts: BTreeMap::from_iter(counts),
    }
}

async fn counts_are_summed_over_replicas(db: Database) {
    let desk = db.desk().await;
    count(&db, minute(0), "stripe", "accepted", "01", 3).await;
    count(&db, minute(0), "stripe", "accepted", "02", 4).await;
    count(&db, minute(0), "stripe", "duplicate", "02", 1).await;
    count(&db, minute(0), "github", "accepted", "01", 5).await;
    count(&db, minute(1), "stripe", "accepted", "01", 6).await;
    let all = desk.stats(minute(0), minute(2), None).await.unwrap();
    let expected = [
        stats(minute(0), "github", &[("accepted", 5)]),
        stats(minute(0), "stripe", &[("accepted", 7), ("duplicate", 1)]),
        stats(minute(1), "stripe", &[("accepted", 6)]),
    ];
    assert_eq!(all, expected);
    let one = desk
        .stats(minute(0), minute(2), Some(&source("github")))
        .await
        .unwrap();
    assert_eq!(one, expected[..1]);
}

async fn counts_are_of_the_minutes_asked_for(db: Database) {
    let desk = db.desk().await;
    for n in 0..4 {
        count(&db, minute(n), "stripe", "accepted", "01", 1).await;
    }
    let middle = desk.stats(minute(1), minute(3), None).await.unwrap();
    let minutes: Vec<_> = middle.iter().map(|stats| stats.minute).collect();
    assert_eq!(minutes, [minute(1), minute(2)]);
    assert!(desk.stats(minute(4), minute(9), None).await.unwrap().is_empty());
}
