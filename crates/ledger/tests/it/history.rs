//! Which history is written is known without asking at each step, and in doubt as soon as its server is gone.

use hookgate_harness::{Fault, PATIENCE, PostgresServer, Proxy};
use hookgate_ledger::{History, Ledger, Limits};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::database::patient;
use crate::postgres::connect;

/// Waits until this is told.
async fn told(history: &mut watch::Receiver<History>, expected: History) {
    let waited = timeout(PATIENCE, history.wait_for(|told| *told == expected)).await;
    assert!(waited.is_ok_and(|told| told.is_ok()), "never told: {expected:?}");
}

/// A history that is named through a proxy, and in doubt under this fault, although nobody calls.
async fn is_missed_under(fault: Fault) {
    let server = PostgresServer::shared().await;
    let proxy = Proxy::start(server.addr()).await;
    let url = server.create_database().await;
    let through = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    let ledger = connect(&through, patient());
    let mut history = ledger.history();
    told(&mut history, History::Timeline(1)).await;
    proxy.set(fault);
    told(&mut history, History::Doubted).await;
    proxy.set(Fault::None);
    told(&mut history, History::Timeline(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_lost_is_missed_without_a_call() {
    is_missed_under(Fault::Refuse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_missed_too() {
    is_missed_under(Fault::Blackhole).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_names_no_history_and_begins_one_when_it_takes_over() {
    let primary = PostgresServer::start().await;
    let standby = primary.standby().await;
    let name = Proxy::start(primary.addr()).await;
    let url = format!("postgres://postgres@{}/postgres", name.addr());
    let ledger = connect(&url, patient());
    ledger.migrate().await.unwrap();
    let mut history = ledger.history();
    told(&mut history, History::Timeline(1)).await;
    standby.catch_up_with(&primary).await;
    name.lead_to(standby.addr());
    primary.kill().await;
    told(&mut history, History::Doubted).await;
    // Its tables can be read, so somebody who only asked whether it answers would be content.
    let reads = async || ledger.probe().await.is_ok();
    while !reads().await {}
    assert_eq!(*history.borrow(), History::Doubted);
    standby.promote();
    told(&mut history, History::Timeline(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_to_another_history_makes_the_witness_look_again() {
    let primary = PostgresServer::start().await;
    let standby = primary.standby().await;
    let name = Proxy::start(primary.addr()).await;
    let url = format!("postgres://postgres@{}/postgres", name.addr());
    let ledger = connect(
        &url,
        Limits {
            connections: 1,
            ..patient()
        },
    );
    ledger.migrate().await.unwrap();
    standby.catch_up_with(&primary).await;
    let mut history = ledger.history();
    told(&mut history, History::Timeline(1)).await;
    standby.promote();
    // The old primary lives on, as after a network was split, and the witness's connection to it stands.
    name.lead_to(standby.addr());
    let fresh = connect(&url, patient());
    fresh.probe().await.unwrap();
    assert_eq!(fresh.timeline(), 2);
    assert_eq!(*history.borrow(), History::Timeline(1), "nothing told this one");
    // One new connection of its own is enough: those of the desk are opened when first needed.
    hookgate_ledger::Upkeep::checkup(&ledger).await.unwrap();
    told(&mut history, History::Timeline(2)).await;
    // From now on none to the old one is used.
    ledger.probe_writing().await.unwrap();
    assert_eq!(ledger.timeline(), 2);
}
