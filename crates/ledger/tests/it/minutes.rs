//! Counts per minute: what each process says of a minute, however often it says it.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use hookgate_ledger::{DeliveryId, UnixMicros};

use crate::database::Database;
use crate::on_both;

on_both!(
    a_minute_recorded_twice_says_the_same,
    an_earlier_count_that_comes_late_changes_nothing,
    replicas_add_up,
    a_minute_in_which_nothing_happened_leaves_no_row,
);

const MINUTE: UnixMicros = UnixMicros(1_790_000_040_000_000);

fn counts(counts: &[(&str, &str, u64)]) -> BTreeMap<(String, String), u64> {
    let counts = counts.iter();
    counts
        .map(|&(source, name, count)| ((source.to_owned(), name.to_owned()), count))
        .collect()
}

/// All rows: source, name and the sum over replicas.
async fn sums(db: &Database) -> String {
    let (minute, join) = match db {
        Database::Postgres { .. } => (
            "extract(epoch FROM minute)::bigint",
            "string_agg(line, ' ' ORDER BY line)",
        ),
        Database::Sqlite { .. } => ("(minute / 1000)", "group_concat(line, ' ' ORDER BY line)"),
    };
    db.value(&format!(
        "SELECT {join} FROM (
            SELECT {minute} || '/' || source || '/' || name || '=' || sum(count) AS line
            FROM stats_minute GROUP BY minute, source, name) AS lines"
    ))
    .await
}

async fn a_minute_recorded_twice_says_the_same(db: Database) {
    db.ledger().await;
    let (keeper, replica) = (db.keeper(), DeliveryId(rand::random()));
    let first = counts(&[("stripe", "accepted", 3), ("github", "refused", 1)]);
    for _ in 0..2 {
        keeper.record_minute(MINUTE, replica, &first).await.unwrap();
        assert_eq!(
            sums(&db).await,
            "1790000040/github/refused=1 1790000040/stripe/accepted=3"
        );
    }
    let later = counts(&[("stripe", "accepted", 5), ("stripe", "duplicate", 2)]);
    for _ in 0..2 {
        keeper.record_minute(MINUTE, replica, &later).await.unwrap();
    }
    assert_eq!(
        sums(&db).await,
        "1790000040/github/refused=1 1790000040/stripe/accepted=5 1790000040/stripe/duplicate=2"
    );
}

async fn an_earlier_count_that_comes_late_changes_nothing(db: Database) {
    db.ledger().await;
    let (keeper, replica) = (db.keeper(), DeliveryId(rand::random()));
    for count in [7, 4] {
        let counts = counts(&[("stripe", "accepted", count)]);
        keeper.record_minute(MINUTE, replica, &counts).await.unwrap();
    }
    assert_eq!(sums(&db).await, "1790000040/stripe/accepted=7");
}

async fn replicas_add_up(db: Database) {
    db.ledger().await;
    let keepers = [db.keeper(), db.keeper(), db.keeper()];
    let counts = counts(&[("stripe", "accepted", 10), ("shopify", "accepted", 1)]);
    let recording = keepers.iter().enumerate().map(|(n, keeper)| {
        let (replica, counts) = (DeliveryId(n as u128), &counts);
        async move {
            for minute in [MINUTE, UnixMicros(MINUTE.0 + 60_000_000)] {
                keeper.record_minute(minute, replica, counts).await.unwrap();
            }
        }
    });
    join_all(recording).await;
    assert_eq!(
        sums(&db).await,
        "1790000040/shopify/accepted=3 1790000040/stripe/accepted=30 \
         1790000100/shopify/accepted=3 1790000100/stripe/accepted=30"
    );
}

async fn a_minute_in_which_nothing_happened_leaves_no_row(db: Database) {
    db.ledger().await;
    let keeper = db.keeper();
    keeper
        .record_minute(MINUTE, DeliveryId(1), &counts(&[]))
        .await
        .unwrap();
    assert_eq!(sums(&db).await, "");
}
