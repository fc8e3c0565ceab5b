//! A change whose reply was lost: it is repeated, finds itself written down, and is told as done.

use std::time::Duration;

use hookgate_harness::{Fault, PATIENCE, Proxy, Then};
use hookgate_ledger::{Bulk, Change, Changed, Filter, Ledger, Operations, PostgresLedger, Queue, State};
use sqlx::{Connection, Executor, PgConnection};

use crate::change::reason;
use crate::database::{Database, patient};
use crate::network::{behind_a_proxy, behind_a_proxy_with};
use crate::sample::{event, key};

/// Both ways in which a reply gets lost, and the words that mark the request.
const WAYS: [(&str, Then); 2] = [("by a reset", Then::Reset), ("by silence", Then::Silence)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_reply_was_lost_is_done_once() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    for (words, then) in WAYS {
        let _ = ledger
            .append(event(words), Queue::Finished("no_consumer"))
            .await
            .unwrap();
        assert!(
            ledger.targets().await.unwrap().is_empty(),
            "a connection is there"
        );
        proxy.set_for(words.as_bytes(), Fault::DropNextReply { then });
        let changed = ledger
            .change(&key(words), Change::Replay, Some(0), &reason(words))
            .await
            .unwrap();
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert_eq!(changed, Changed::Done { generation: 1 }, "{words}");
        let audit = ledger.event(&key(words)).await.unwrap().unwrap().audit;
        assert_eq!(audit.len(), 1, "{audit:?}");
    }
    assert_eq!(db.value("SELECT max(generation) FROM webhook_events").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_step_whose_reply_was_lost_counts_its_own_events() {
    for (words, then) in WAYS {
        let (ledger, proxy, db) = behind_a_proxy().await;
        for n in 0..5 {
            let _ = ledger
                .append(event(&format!("evt_{n}")), Queue::Finished("no_consumer"))
                .await
                .unwrap();
        }
        let mut step = Bulk {
            change: Change::Replay,
            filter: Filter::default(),
            after: None,
            limit: 3,
            dry_run: false,
            first_in: Duration::ZERO,
            spacing: Duration::ZERO,
        };
        assert!(
            ledger.targets().await.unwrap().is_empty(),
            "a connection is there"
        );
        proxy.set_for(words.as_bytes(), Fault::DropNextReply { then });
        let first = ledger.change_many(&step, &reason(words)).await.unwrap();
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert_eq!(first.events, 3);
        let changed = "SELECT count(*) FROM webhook_events WHERE generation = 1";
        assert_eq!(db.value(changed).await, "3");
        step.after = first.next;
        let second = ledger.change_many(&step, &reason(words)).await.unwrap();
        assert_eq!((second.events, second.next), (2, None));
        let queued = ledger
            .list(
                &Filter {
                    states: vec![State::Queued],
                    ..Filter::default()
                },
                None,
                10,
            )
            .await;
        assert_eq!(queued.unwrap().events.len(), 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_whose_reply_was_lost_is_ours() {
    for (words, then) in WAYS {
        let (ledger, proxy, db) = behind_a_proxy().await;
        assert!(
            ledger.targets().await.unwrap().is_empty(),
            "a connection is there"
        );
        proxy.set_for(words.as_bytes(), Fault::DropNextReply { then });
        assert!(ledger.pause("billing", &reason(words)).await.unwrap(), "{words}");
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert!(!ledger.pause("billing", &reason("again")).await.unwrap());
        assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
    }
}

/// Waits until so many statements wait for such a lock.
async fn waiting(db: &Database, statements: &str, lock: &str) {
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = '{lock}'"
    );
    let wait = async {
        while db.value(&waiting).await != statements {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("they wait");
}

/// Breaks every connection, and lets new ones through.
pub(crate) async fn cut_off(proxy: &Proxy) {
    proxy.set(Fault::Refuse);
    let gone = async {
        while proxy.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("they break");
    proxy.set(Fault::None);
}

/// Done events, and a connection that has locked the first of them.
async fn locked(ledger: &PostgresLedger, db: &Database, count: u32) -> PgConnection {
    for n in 0..count {
        let _ = ledger
            .append(event(&format!("evt_{n}")), Queue::Finished("no_consumer"))
            .await
            .unwrap();
    }
    let Database::Postgres { url, .. } = db else {
        unreachable!()
    };
    let mut holder = PgConnection::connect(url).await.unwrap();
    holder
        .execute("BEGIN; SELECT 1 FROM webhook_events WHERE event_id = 'evt_0' FOR UPDATE")
        .await
        .unwrap();
    holder
}

/// The first try waits on the server for a row when its connection breaks, and the second waits for the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_was_cut_off_and_goes_on_is_done_and_ours() {
    let (ledger, proxy, db) = behind_a_proxy_with(patient()).await;
    let mut holder = locked(&ledger, &db, 1).await;
    let (first, why) = (key("evt_0"), reason("mended"));
    let change = ledger.change(&first, Change::Replay, Some(0), &why);
    let cut = async {
        waiting(&db, "1", "transactionid").await;
        cut_off(&proxy).await;
        waiting(&db, "1", "advisory").await;
        holder.execute("ROLLBACK").await.unwrap();
    };
    let (changed, ()) = tokio::join!(change, cut);
    assert_eq!(changed.unwrap(), Changed::Done { generation: 1 });
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_step_that_was_cut_off_and_goes_on_leaves_no_event_unreported() {
    let (ledger, proxy, db) = behind_a_proxy_with(patient()).await;
    let mut holder = locked(&ledger, &db, 10).await;
    let mut step = Bulk {
        change: Change::Replay,
        filter: Filter::default(),
        after: None,
        limit: 3,
        dry_run: false,
        first_in: Duration::ZERO,
        spacing: Duration::ZERO,
    };
    let why = reason("mended");
    let cut = async {
        waiting(&db, "1", "transactionid").await;
        cut_off(&proxy).await;
        waiting(&db, "1", "advisory").await;
        holder.execute("ROLLBACK").await.unwrap();
    };
    let (first, ()) = tokio::join!(ledger.change_many(&step, &why), cut);
    let mut reported = 0;
    let mut told = first.unwrap();
    loop {
        reported += told.events;
        step.after = told.next;
        if step.after.is_none() {
            break;
        }
        told = ledger.change_many(&step, &why).await.unwrap();
    }
    assert_eq!(reported, 10);
    assert_eq!(db.value("SELECT count(*) FROM audit_log").await, "10");
}
