//! Pages of a list neither lose nor repeat an event, whatever comes meanwhile.

use std::collections::BTreeSet;

use hookgate_ledger::{EventSummary, Filter, Listing, UnixMicros};

use crate::database::Database;
use crate::on_both;
use crate::table::{BASE, Row, at, ids, put, row};

on_both!(
    newest_events_come_first,
    pages_over_equal_times_neither_lose_nor_repeat_an_event,
    an_event_that_comes_between_two_pages_moves_none,
);

async fn newest_events_come_first(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let rows = [
        row("stripe", "a", at(1)),
        row("github", "b", at(3)),
        row("stripe", "c", at(2)),
    ];
    put(&db, &*ledger, &rows).await;
    let listing = desk.list(&Filter::default(), None, 100).await.unwrap();
    assert_eq!(ids(&listing), ["b", "c", "a"]);
}

async fn pages_over_equal_times_neither_lose_nor_repeat_an_event(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    // Three moments a millisecond apart, each with events of two sources.
    let place = |n: i64| UnixMicros(BASE.0 + n % 3 * 1000);
    let name = |n| if n % 2 == 0 { "stripe" } else { "github" };
    let rows: Vec<Row> = (0..23)
        .map(|n| row(name(n), &format!("evt_{n:02}"), place(n)))
        .collect();
    put(&db, &*ledger, &rows).await;

    let whole = desk.list(&Filter::default(), None, 100).await.unwrap();
    assert_eq!(whole.events.len(), 23);
    let order = |listing: &Listing| -> Vec<_> {
        let place = |event: &EventSummary| (event.received_at, event.key.clone());
        listing.events.iter().map(place).collect()
    };
    assert!(
        order(&whole).windows(2).all(|pair| pair[0] > pair[1]),
        "newest first, then by key"
    );
    for limit in [1, 2, 5, 22, 23] {
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = desk
                .list(&Filter::default(), after.as_ref(), limit)
                .await
                .unwrap();
            assert!(page.events.len() <= limit as usize);
            paged.extend(order(&page));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, order(&whole), "pages of {limit}");
    }
}

async fn an_event_that_comes_between_two_pages_moves_none(db: Database) {
    let ledger = db.ledger().await;
    let desk = db.desk().await;
    let rows: Vec<Row> = (0..6)
        .map(|n| row("stripe", &format!("evt_{n}"), at(n)))
        .collect();
    put(&db, &*ledger, &rows).await;
    let first = desk.list(&Filter::default(), None, 3).await.unwrap();
    put(&db, &*ledger, &[row("stripe", "later", at(60))]).await;
    let second = desk
        .list(&Filter::default(), first.next.as_ref(), 3)
        .await
        .unwrap();
    let seen: BTreeSet<_> = ids(&first).into_iter().chain(ids(&second)).collect();
    assert_eq!(seen.len(), 6);
    assert_eq!(second.next, None);
}
