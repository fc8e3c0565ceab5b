//! News of events: who waits for them need not look.

use std::sync::Arc;

use futures_util::future::join_all;
use hookgate_harness::{PATIENCE, PostgresServer, Proxy};
use hookgate_ledger::{Ledger, PostgresLedger, Queue};
use sqlx::postgres::PgListener;
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::watch;

use crate::database::{Database, patient};
use crate::lost_changes::cut_off;
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
    let finished = Queue::Finished("no_consumer");
    let _ = ledger.append(event("evt_1"), finished).await.unwrap();
    let mut news = match db {
        Database::Postgres { .. } => listening(&*ledger).await,
        Database::Sqlite { .. } => ledger.arrivals(),
    };
    append(&*ledger, "evt_1").await;
    let _ = ledger.append(event("evt_2"), finished).await.unwrap();
    // In the same process it would be heard before the append returns.
    assert!(!news.has_changed().unwrap(), "a copy and a finished event");
    append(&*ledger, "evt_3").await;
    assert!(heard(&mut news).await);
}

/// News of a ledger, once it hears. Whoever begins to listen looks once, since it may have missed something; if
/// nothing was told before, there is silence after that.
async fn listening(ledger: &dyn Ledger) -> watch::Receiver<u64> {
    let mut news = ledger.arrivals();
    assert!(heard(&mut news).await, "it looks when it can hear");
    news
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_is_heard_in_other_processes() {
    let db = Database::postgres().await;
    let (receiver, worker) = (db.ledger().await, db.replica());
    let mut news = listening(&*worker).await;
    for round in 0..3 {
        append(&*receiver, &format!("evt_{round}")).await;
        assert!(heard(&mut news).await, "round {round}");
    }
}

/// Messages until nobody tells any more: the ledger is closed, and then the test itself tells the end.
async fn messages(listener: &mut PgListener, receiver: &dyn Ledger, url: &str) -> usize {
    listener.recv().await.unwrap();
    receiver.close().await;
    let mut conn = PgConnection::connect(url).await.unwrap();
    conn.execute("NOTIFY hookgate_events, 'the end'").await.unwrap();
    let mut messages = 1;
    while listener.recv().await.unwrap().payload() != "the end" {
        messages += 1;
    }
    messages
}

/// Thousands of appends are not thousands of messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_told_by_fewer_messages_than_it_has_batches() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let receiver = db.ledger().await;
    let mut listener = PgListener::connect(url).await.unwrap();
    listener.listen("hookgate_events").await.unwrap();
    let ids: Vec<String> = (0..2000).map(|n| format!("evt_{n}")).collect();
    join_all(ids.iter().map(|id| append(&*receiver, id))).await;
    let messages = tokio::time::timeout(PATIENCE, messages(&mut listener, &*receiver, url)).await;
    // Batches hold 64 rows, except for the first ones, which begin before the rest has come.
    let messages = messages.expect("the end is told");
    assert!(messages <= 2000 / 64 + 4, "{messages}");
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
    let mut news = listening(&*worker).await;
    cut_off(&proxy).await;
    assert!(heard(&mut news).await, "it looks when it can hear again");
    append(&*receiver, "evt_heard").await;
    assert!(heard(&mut news).await);
}
