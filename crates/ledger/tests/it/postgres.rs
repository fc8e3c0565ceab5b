//! What only a server can suffer: hanging, restarting, losing a reply, holding a row.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hookgate_harness::{Fault, PATIENCE, PostgresServer, Proxy, Then};
use hookgate_ledger::{
    Appended, Begun, Effects, Ledger, LedgerError, Limits, OutboxRow, Outcome, PostgresLedger, Queue, Settled,
};
use sqlx::{Connection, Executor, PgConnection};

use crate::database::{Database, patient};
use crate::sample::{LONG, event, fetch_one, key};

fn connect(url: &str, limits: Limits) -> PostgresLedger {
    PostgresLedger::connect(&url.to_owned().into(), limits).unwrap()
}

async fn append(ledger: &PostgresLedger, id: &str) -> Result<Appended, LedgerError> {
    ledger.append(event(id), Queue::ForWorker).await
}

fn is_unavailable<T>(found: &Result<T, LedgerError>) -> bool {
    matches!(found, Err(LedgerError::Unavailable(_)))
}

/// A ledger that reaches its database through a proxy, and the way around it.
async fn behind_a_proxy() -> (PostgresLedger, Proxy, Database) {
    let db = Database::postgres().await;
    let Database::Postgres { server, url } = &db else {
        unreachable!()
    };
    let proxy = Proxy::start(server.addr()).await;
    let detour = url.replace(&server.addr().to_string(), &proxy.addr().to_string());
    assert_ne!(*url, detour);
    // Short enough that a silence is noticed soon, long enough for a busy machine.
    let limits = Limits {
        statement: Duration::from_secs(2),
        ..patient()
    };
    let ledger = connect(&detour, limits);
    ledger.migrate().await.unwrap();
    (ledger, proxy, db)
}

/// Repeats what a provider would repeat, until it is accepted or was before.
async fn deliver_until_stored(ledger: &PostgresLedger, id: &str) {
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
        assert_eq!(settled, Settled::Committed, "{id}");
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
    let Database::Postgres { server, url } = &db else {
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

/// Another session has inserted the same key and does not commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_somebody_holds_delays_no_other() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let limits = Limits {
        append: PATIENCE,
        lock: Duration::from_millis(300),
        ..patient()
    };
    let ledger = connect(url, limits);
    ledger.migrate().await.unwrap();
    let mut holder = PgConnection::connect(url).await.unwrap();
    holder
        .execute(
            "BEGIN;
             INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at,
                                         delivery_id, body_sha256, headers, body)
             VALUES ('stripe', 'evt_held', 'stripe', 'inbox', 'queued', now(),
                     '', decode(repeat('00', 32), 'hex'), '[]', '')",
        )
        .await
        .unwrap();
    let ids: Vec<String> = (0..64)
        .map(|n| {
            if n == 31 {
                "evt_held".into()
            } else {
                format!("evt_{n}")
            }
        })
        .collect();
    for (id, found) in ids
        .iter()
        .zip(join_all(ids.iter().map(|id| append(&ledger, id))).await)
    {
        match id.as_str() {
            "evt_held" => assert!(is_unavailable(&found), "{found:?}"),
            _ => assert_eq!(found.unwrap(), Appended::Accepted, "{id}"),
        }
    }
    // It rolls back, so the provider's next try is the first.
    holder.execute("ROLLBACK").await.unwrap();
    assert_eq!(append(&ledger, "evt_held").await.unwrap(), Appended::Accepted);
}

/// The winner of the key rolls back after the loser lost: the loser is neither accepted nor a duplicate yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_waits_for_an_open_rival_and_wins_if_it_rolls_back() {
    let db = Database::postgres().await;
    let Database::Postgres { url, .. } = &db else {
        unreachable!()
    };
    let ledger = connect(url, patient());
    ledger.migrate().await.unwrap();
    let mut rival = PgConnection::connect(url).await.unwrap();
    rival
        .execute(
            "BEGIN;
             INSERT INTO webhook_events (source, event_id, provider, path, state, next_attempt_at,
                                         delivery_id, body_sha256, headers, body)
             VALUES ('stripe', 'evt_1', 'stripe', 'inbox', 'queued', now(),
                     '', decode(repeat('00', 32), 'hex'), '[]', '')",
        )
        .await
        .unwrap();
    let rolls_back = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while db.value(waiting).await == "0" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        rival.execute("ROLLBACK").await.unwrap();
    };
    let (found, ()) = tokio::join!(append(&ledger, "evt_1"), rolls_back);
    assert_eq!(found.unwrap(), Appended::Accepted);
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
