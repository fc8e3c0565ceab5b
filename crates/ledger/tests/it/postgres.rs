//! What only a server can suffer: hanging, restarting, being set up in a way that cannot work, refusing a value.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hookgate_harness::{PATIENCE, PostgresServer};
use hookgate_ledger::{
    Appended, Effects, Ledger, LedgerError, Limits, OutboxRow, Outcome, PostgresLedger, Queue, Settled,
};

use crate::database::{Database, patient};
use crate::sample::{LONG, event, fetch_one, key};

pub(crate) fn connect(url: &str, limits: Limits) -> PostgresLedger {
    PostgresLedger::connect(&url.to_owned().into(), limits).unwrap()
}

pub(crate) async fn append(ledger: &PostgresLedger, id: &str) -> Result<Appended, LedgerError> {
    ledger.append(event(id), Queue::ForWorker).await
}

pub(crate) fn is_unavailable<T>(found: &Result<T, LedgerError>) -> bool {
    matches!(found, Err(LedgerError::Unavailable(_)))
}

/// Repeats what a provider would repeat, until it is accepted or was before.
pub(crate) async fn deliver_until_stored(ledger: &PostgresLedger, id: &str) {
    let tries = async {
        while append(ledger, id).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, tries)
        .await
        .expect("it never worked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_unavailable_in_time_and_works_when_it_wakes() {
    let server = PostgresServer::start().await;
    let url = server.create_database().await;
    let ledger = connect(&url, Limits::default());
    ledger.migrate().await.unwrap();
    // Leaves connections at rest, so that the hang strikes those too.
    let begins: Vec<_> = (0..8).map(|n| event(&format!("evt_before_{n}"))).collect();
    join_all(begins.iter().map(|event| ledger.begin(event, LONG))).await;

    server.pause();
    let ids: Vec<String> = (0..64).map(|n| format!("evt_{n}")).collect();
    let delivery = event("evt_begin");
    let began = Instant::now();
    let (appended, begun, probed) = tokio::join!(
        join_all(ids.iter().map(|id| append(&ledger, id))),
        ledger.begin(&delivery, LONG),
        ledger.probe(),
    );
    // The limit is 2 s, and the rest is for a busy machine; without a limit on this side it would never end.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(appended.iter().all(is_unavailable), "{appended:?}");
    assert!(
        is_unavailable(&begun) && is_unavailable(&probed),
        "{begun:?} {probed:?}"
    );

    server.resume();
    join_all(ids.iter().map(|id| deliver_until_stored(&ledger, id))).await;
    assert_eq!(
        server.psql(&url, "SELECT count(*) FROM webhook_events WHERE state = 'queued'"),
        "64"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_survives_a_killed_server_and_the_ledger_reconnects() {
    let mut server = PostgresServer::start().await;
    let url = server.create_database().await;
    let ledger = connect(&url, Limits::default());
    ledger.migrate().await.unwrap();
    let ids: Vec<String> = (0..32).map(|n| format!("evt_{n}")).collect();
    for appended in join_all(ids.iter().map(|id| append(&ledger, id))).await {
        assert_eq!(appended.unwrap(), Appended::Accepted);
    }
    server.kill().await;
    assert!(is_unavailable(&append(&ledger, "evt_lost").await));
    server.restart().await;
    deliver_until_stored(&ledger, "evt_after").await;
    assert_eq!(server.psql(&url, "SELECT count(*) FROM webhook_events"), "33");
}

#[tokio::test]
async fn a_database_that_is_down_does_not_stop_the_start() {
    let ledger = connect("postgres://somebody:hunter2@127.0.0.1:1/none", Limits::default());
    let found = append(&ledger, "evt_1").await;
    assert!(is_unavailable(&found), "{found:?}");
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn a_url_of_another_kind_is_refused_without_its_password() {
    for url in [
        "mysql://u:hunter2@host/db",
        "postgres://u:hunter2@host:port/db",
        "hunter2",
        "",
    ] {
        let refused = PostgresLedger::connect(&url.to_owned().into(), Limits::default());
        let Err(LedgerError::Unusable(text)) = refused else {
            panic!("{url} accepted")
        };
        assert!(
            text.contains("postgres://user:password@host") && !text.contains("hunter2"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_unusable() {
    let server = PostgresServer::shared().await;
    let found = append(&connect(&server.url("nowhere"), Limits::default()), "evt_1").await;
    assert!(matches!(found, Err(LedgerError::Unusable(_))), "{found:?}");
}

#[tokio::test]
async fn a_server_without_fsync_is_refused() {
    let server = PostgresServer::start_with(&["fsync=off"]).await;
    let ledger = connect(&server.create_database().await, Limits::default());
    for refused in [ledger.migrate().await, ledger.probe().await] {
        let Err(LedgerError::Unusable(text)) = refused else {
            panic!("{refused:?}")
        };
        assert!(text.contains("turn fsync on"), "{text}");
    }
}

#[tokio::test]
async fn commits_wait_for_the_disk_whatever_the_server_says() {
    let server = PostgresServer::start_with(&["synchronous_commit=off"]).await;
    let url = server.create_database().await;
    let ledger = connect(&url, patient());
    ledger.migrate().await.unwrap();
    // Asked from inside the session: a default of the table is evaluated by whoever inserts.
    server.psql(
        &url,
        "ALTER TABLE webhook_events ADD seen text DEFAULT current_setting('synchronous_commit')",
    );
    assert_eq!(append(&ledger, "evt_1").await.unwrap(), Appended::Accepted);
    assert_eq!(server.psql(&url, "SELECT seen FROM webhook_events"), "on");
}

#[tokio::test]
async fn the_timeline_is_known_after_the_first_connect() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let ledger = connect(url, patient());
    assert_eq!(ledger.timeline(), 0);
    ledger.migrate().await.unwrap();
    assert_eq!(ledger.timeline(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_byte_that_text_cannot_hold_fails_alone() {
    let db = Database::postgres().await;
    let ledger = db.ledger().await;
    let standstill = db.standstill().await;
    let mut events: Vec<_> = (0..16).map(|n| event(&format!("evt_{n}"))).collect();
    events[7].provider = "stri\0pe";
    let appends = join_all(
        events
            .into_iter()
            .map(|event| ledger.append(event, Queue::ForWorker)),
    );
    let (found, ()) = tokio::join!(appends, standstill.end());
    for (n, found) in found.into_iter().enumerate() {
        match n {
            7 => assert!(matches!(found, Err(LedgerError::Refused(_))), "{found:?}"),
            _ => assert_eq!(found.unwrap(), Appended::Accepted),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_the_database_cannot_hold_takes_the_settlement_back() {
    let db = Database::postgres().await;
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    let job = fetch_one(&*ledger, LONG).await;
    let row = OutboxRow {
        target: "mail\0er".into(),
        kind: "receipt".into(),
        effect_key: "a".into(),
        payload: bytes::Bytes::new(),
    };
    let refused = ledger
        .settle(&job.lease, Outcome::Done, Effects { outbox: vec![row] })
        .await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    assert_eq!(ledger.finish(&job.lease).await.unwrap(), Settled::Committed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_compressed_by_lz4_where_the_server_has_it() {
    let db = Database::postgres().await;
    let ledger = db.ledger().await;
    let has =
        db.value("SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'");
    if has.await != "t" {
        return;
    }
    let body = "all the same ".repeat(1000).into_bytes();
    let _ = ledger
        .append(crate::sample::with_body("evt_1", body), Queue::ForWorker)
        .await
        .unwrap();
    assert_eq!(
        db.value("SELECT pg_column_compression(body) FROM webhook_events")
            .await,
        "lz4"
    );
    assert!(ledger.entry(&key("evt_1")).await.unwrap().is_some());
}
