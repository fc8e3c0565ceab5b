//! A change whose reply was lost: it is repeated, finds itself written down, and is told as done.

use std::time::Duration;

use hookgate_harness::{Fault, Then};
use hookgate_ledger::{Bulk, Change, Changed, Filter, Ledger, Operations, Queue, State};

use crate::change::reason;
use crate::network::behind_a_proxy;
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
