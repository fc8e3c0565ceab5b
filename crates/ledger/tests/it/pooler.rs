//! Behind a real PgBouncer, without a setting of ours: one that lends a session for each transaction, as many managed
//! databases do, and one that lends it for as long as the client stays.

use futures_util::future::join_all;
use hookgate_harness::{PATIENCE, PgBouncer, PoolMode, PostgresServer};
use hookgate_ledger::{Appended, Begun, Effects, Fetch, History, Ledger, Outcome, Queue, Settled, State};
use tokio::time::timeout;

use crate::database::Database;
use crate::sample::{LONG, all, copy_in, event, key};

async fn behind(mode: PoolMode) -> (Database, PgBouncer) {
    let pooler = PgBouncer::start(PostgresServer::shared().await.addr(), mode).await;
    (Database::postgres().await.behind(&pooler), pooler)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_kept_once_and_run_behind_a_transaction_pooler() {
    let (db, _pooler) = behind(PoolMode::Transaction).await;
    let replicas = [db.ledger().await, db.ledger().await];
    // Enough at a time that sessions go from hand to hand.
    let copies = (0..200).map(|n| {
        let replica = &replicas[n % 2];
        async move {
            replica
                .append(event(&format!("evt_{}", n / 2)), Queue::ForWorker)
                .await
        }
    });
    let found: Vec<_> = join_all(copies).await.into_iter().map(Result::unwrap).collect();
    let accepted = found.iter().filter(|found| **found == Appended::Accepted).count();
    assert_eq!(accepted, 100, "{found:?}");
    assert!(found.contains(&copy_in(State::Queued)));
    let runs = (0..8).map(|n| run_all(&*replicas[n % 2]));
    assert_eq!(join_all(runs).await.into_iter().sum::<usize>(), 100);
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_events WHERE state = 'done' AND attempts = 1")
            .await,
        "100"
    );
    let begun = replicas[0].begin(&event("evt_forward"), LONG).await.unwrap();
    let Begun::Run { lease, .. } = begun else {
        panic!("{begun:?}")
    };
    assert_eq!(replicas[1].finish(&lease).await.unwrap(), Settled::Committed);
    let detail = db.desk().await.event(&key("evt_forward")).await.unwrap();
    assert!(detail.is_some_and(|detail| detail.attempts.len() == 1));
}

/// Runs what there is, as a worker does; says how many events that were.
async fn run_all(ledger: &dyn Ledger) -> usize {
    let mut settled = 0;
    while ledger.depth().await.unwrap().0.contains_key(&State::Queued) {
        let few = Fetch {
            limit: 5,
            ..all(LONG)
        };
        for job in ledger.fetch(few).await.unwrap() {
            let done = ledger.settle(&job.lease, Outcome::Done, Effects::default()).await;
            assert_eq!(done.unwrap(), Settled::Committed);
            settled += 1;
        }
    }
    settled
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_set_for_our_transactions_is_set_for_nobody_else() {
    let server = PostgresServer::start_with(&["synchronous_commit=off"]).await;
    let pooler = PgBouncer::start(server.addr(), PoolMode::Transaction).await;
    let url = server.create_database().await;
    let ledger = crate::postgres::connect(&pooler.url(&url), crate::database::patient());
    ledger.migrate().await.unwrap();
    server.psql(
        &url,
        "ALTER TABLE webhook_events ADD seen text DEFAULT current_setting('synchronous_commit') || current_setting('lock_timeout')",
    );
    let found = ledger.append(event("evt_1"), Queue::ForWorker).await;
    assert_eq!(found.unwrap(), Appended::Accepted);
    let seen = server.psql(&url, "SELECT seen FROM webhook_events");
    assert!(seen.starts_with("on") && seen != "on0", "{seen}");
    // The same sessions, as another client of the pooler gets them.
    let others = "SELECT current_setting('synchronous_commit') || current_setting('lock_timeout'), (SELECT count(*) FROM pg_prepared_statements)";
    assert_eq!(server.psql(&pooler.url(&url), others), "off0|0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_a_pooler_leaves_to_us_hears_the_news() {
    let (db, _pooler) = behind(PoolMode::Session).await;
    let (one, other) = (db.ledger().await, db.ledger().await);
    let mut arrivals = other.arrivals();
    // The first call says that it can hear.
    timeout(PATIENCE, arrivals.changed()).await.unwrap().unwrap();
    let _ = one.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    timeout(PATIENCE, arrivals.changed()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_is_named_through_both_kinds_of_pooler() {
    for mode in [PoolMode::Transaction, PoolMode::Session] {
        let (db, _pooler) = behind(mode).await;
        let ledger = db.ledger().await;
        let mut history = ledger.history();
        let named = history.wait_for(|history| *history != History::Doubted);
        let named = *timeout(PATIENCE, named).await.unwrap().unwrap();
        assert_eq!(named, History::Timeline(1), "{mode:?}");
    }
}
