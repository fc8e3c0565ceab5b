//! News of events: who waits for them need not look.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Fault, PATIENCE, PostgresServer, Proxy};
use hookgate_ledger::{Ledger, PostgresLedger, Queue};
use tokio::sync::watch;

use crate::database::{Database, patient};
use crate::on_both;
use crate::sample::event;

on_both!(
    an_append_is_heard_in_the_same_process,
    what_no_worker_needs_is_not_told,
);

async fn heard(news: &mut watch::Receiver<u64>) -> bool {
    tokio::time::timeout(PATIENCE, news.changed()).await.is_ok()
}

async fn append(ledger: &dyn Ledger, id: &str) {
    let _ = ledger.append(event(id), Queue::ForWorker).await.unwrap();
}

async fn an_append_is_heard_in_the_same_process(db: Database) {
    let ledger = db.ledger().await;
    let mut news = ledger.arrivals();
    append(&*ledger, "evt_1").await;
    assert!(heard(&mut news).await);
}

async fn what_no_worker_needs_is_not_told(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, "evt_1").await;
    let mut news = match db {
        // Whoever begins to listen looks once, since it may have missed something; then there is silence.
        Database::Postgres { .. } => listening(&ledger, &ledger).await,
        Database::Sqlite { .. } => ledger.arrivals(),
    };
    append(&*ledger, "evt_1").await;
    let _ = ledger
        .append(event("evt_2"), Queue::Finished("no_consumer"))
        .await
        .unwrap();
    assert!(!news.has_changed().unwrap(), "a copy and a finished event");
    append(&*ledger, "evt_3").await;
    assert!(heard(&mut news).await);
}

/// News of `hearing`, once it has heard `telling` through the database and all is quiet.
async fn listening(hearing: &Arc<dyn Ledger>, telling: &Arc<dyn Ledger>) -> watch::Receiver<u64> {
    let mut news = hearing.arrivals();
    append(&**telling, "evt_first").await;
    // The last of what was told is not known; a second without any is taken for the end.
    while let Ok(changed) = tokio::time::timeout(Duration::from_secs(1), news.changed()).await {
        changed.unwrap();
    }
    news
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_is_heard_in_other_processes() {
    let db = Database::postgres().await;
    let (receiver, worker) = (db.ledger().await, db.replica());
    let mut news = listening(&worker, &receiver).await;
    for round in 0..3 {
        append(&*receiver, &format!("evt_{round}")).await;
        assert!(heard(&mut news).await, "round {round}");
    }
}

/// Thousands of appends are not thousands of messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_told_by_fewer_messages_than_it_has_batches() {
    let db = Database::postgres().await;
    let (receiver, worker) = (db.ledger().await, db.replica());
    let mut news = listening(&worker, &receiver).await;
    let before = *news.borrow_and_update();
    let ids: Vec<String> = (0..2000).map(|n| format!("evt_{n}")).collect();
    join_all(ids.iter().map(|id| append(&*receiver, id))).await;
    assert!(heard(&mut news).await);
    while tokio::time::timeout(Duration::from_secs(1), news.changed())
        .await
        .is_ok()
    {}
    let messages = *news.borrow() - before;
    // Batches hold at most 64 rows; a repeated look after a batch of its own is allowed to each.
    assert!((1..=2000 / 64 + 2).contains(&messages), "{messages}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn news_are_heard_again_after_the_connection_broke() {
    let server = PostgresServer::shared().await;
    let url = server.create_database().await;
    let proxy = Proxy::start(server.addr()).await;
    let direct = Arc::new(PostgresLedger::connect(&url.clone().into(), patient()).unwrap());
    direct.migrate().await.unwrap();
    let through = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    let receiver: Arc<dyn Ledger> = direct;
    let worker: Arc<dyn Ledger> = Arc::new(PostgresLedger::connect(&through.into(), patient()).unwrap());
    let mut news = listening(&worker, &receiver).await;
    proxy.set(Fault::Refuse);
    append(&*receiver, "evt_unheard").await;
    proxy.set(Fault::None);
    assert!(heard(&mut news).await, "it looks when it can hear again");
    let mut news = listening(&worker, &receiver).await;
    append(&*receiver, "evt_heard").await;
    assert!(heard(&mut news).await);
}
