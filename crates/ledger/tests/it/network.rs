//! What only a line to a server can suffer: replies that are lost, a long way, coming and going.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Fault, Proxy, Then};
use hookgate_ledger::{Appended, Begun, Effects, Ledger, Limits, Outcome, PostgresLedger, Settled};

use crate::database::{Database, patient};
use crate::postgres::{append, connect, deliver_until_stored};
use crate::sample::{LONG, event, fetch_one};

/// A ledger that reaches its database through a proxy, and the way around it.
pub(crate) async fn behind_a_proxy() -> (PostgresLedger, Proxy, Database) {
    // Short enough that a silence is noticed soon, long enough for a busy machine.
    let limits = Limits {
        statement: Duration::from_secs(2),
        search: Duration::from_secs(2),
        ..patient()
    };
    behind_a_proxy_with(limits).await
}

pub(crate) async fn behind_a_proxy_with(limits: Limits) -> (PostgresLedger, Proxy, Database) {
    let db = Database::postgres().await;
    let Database::Postgres { server, url, .. } = &db else {
        unreachable!()
    };
    let proxy = Proxy::start(server.addr()).await;
    let detour = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    assert_ne!(*url, detour);
    let ledger = connect(&detour, limits);
    ledger.migrate().await.unwrap();
    (ledger, proxy, db)
}

/// The server commits; the reply is lost, once by a reset and once by silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_whose_reply_was_lost_is_accepted_once() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    for (id, then) in [("evt_reset", Then::Reset), ("evt_silence", Then::Silence)] {
        assert_eq!(
            append(&ledger, &format!("{id}_before")).await.unwrap(),
            Appended::Accepted
        );
        proxy.set_for(id.as_bytes(), Fault::DropNextReply { then });
        assert_eq!(append(&ledger, id).await.unwrap(), Appended::Accepted, "{id}");
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        let select = format!("SELECT count(*) FROM webhook_events WHERE event_id = '{id}'");
        assert_eq!(db.value(&select).await, "1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_whose_reply_was_lost_runs_once() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    for (id, then) in [("evt_reset", Then::Reset), ("evt_silence", Then::Silence)] {
        proxy.set_for(id.as_bytes(), Fault::DropNextReply { then });
        let Begun::Run { lease, .. } = ledger.begin(&event(id), LONG).await.unwrap() else {
            panic!("{id}")
        };
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert_eq!(lease.attempt, 1);
        assert_eq!(ledger.finish(&lease).await.unwrap(), Settled::Committed);
    }
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_attempts WHERE outcome = 'done'")
            .await,
        "2"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settlement_whose_reply_was_lost_is_committed_once() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    for (id, then) in [("evt_reset", Then::Reset), ("evt_silence", Then::Silence)] {
        assert_eq!(append(&ledger, id).await.unwrap(), Appended::Accepted);
        let job = fetch_one(&ledger, LONG).await;
        proxy.set_for(id.as_bytes(), Fault::DropNextReply { then });
        let settled = ledger
            .settle(&job.lease, Outcome::Done, Effects::default())
            .await
            .unwrap();
        assert_eq!(settled, Settled::Repeated { buried: false }, "{id}");
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
    }
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_attempts WHERE outcome = 'done'")
            .await,
        "2"
    );
}

/// Making a connection takes several round trips; the limit of waiting for one that others use is not meant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_line_may_take_longer_to_connect_than_one_waits_for_a_connection() {
    let db = Database::postgres().await;
    let Database::Postgres { server, url, .. } = &db else {
        unreachable!()
    };
    db.ledger().await;
    let proxy = Proxy::start(server.addr()).await;
    proxy.set(Fault::DelayReplies(Duration::from_millis(60)));
    let detour = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    let limits = Limits {
        pool_wait: Duration::from_millis(50),
        ..patient()
    };
    assert_eq!(
        append(&connect(&detour, limits), "evt_1").await.unwrap(),
        Appended::Accepted
    );
}

/// A connection that is cut from both sides at once, again and again, loses no accepted event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_comes_and_goes_loses_nothing() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    let ids: Vec<String> = (0..60).map(|n| format!("evt_{n}")).collect();
    let storm = async {
        for _ in 0..5 {
            proxy.set(Fault::Refuse);
            tokio::time::sleep(Duration::from_millis(30)).await;
            proxy.set(Fault::None);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    let stored = join_all(ids.iter().map(|id| deliver_until_stored(&ledger, id)));
    tokio::join!(storm, stored);
    assert_eq!(db.value("SELECT count(*) FROM webhook_events").await, "60");
}
