//! A database that loses its power and comes back in the middle of what people do.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use hookgate_harness::PostgresServer;
use hookgate_ledger::{Change, Changed, Ledger, Operations, Queue};

use crate::change::reason;
use crate::database::patient;
use crate::postgres::connect;
use crate::sample::{event, key};

const EVENTS: usize = 200;

/// Whoever waits is told what was committed, before the cut or after it, and nobody that another was faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redrives_during_a_power_cut_are_each_done_once() {
    let mut server = PostgresServer::start().await;
    let url = server.create_database().await;
    let ledger = connect(&url, patient());
    ledger.migrate().await.unwrap();
    let ids: Vec<String> = (0..EVENTS).map(|n| format!("evt_{n}")).collect();
    for id in &ids {
        let _ = ledger
            .append(event(id), Queue::Finished("no_consumer"))
            .await
            .unwrap();
    }
    server.psql(&url, "UPDATE webhook_events SET state = 'dead'");

    let why = reason("the target is mended");
    let redrives = stream::iter(&ids)
        .map(async |id| ledger.change(&key(id), Change::Redrive, None, &why).await)
        .buffer_unordered(3)
        .collect::<Vec<_>>();
    let cut = async {
        while server.psql(&url, "SELECT count(*) FROM audit_log") == "0" {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.kill().await;
        server.restart().await;
    };
    let (redriven, ()) = tokio::join!(redrives, cut);
    for changed in redriven {
        assert_eq!(changed.unwrap(), Changed::Done { generation: 0 });
    }
    let each_once = "SELECT count(*) || ' ' || count(DISTINCT event_id) FROM audit_log";
    assert_eq!(server.psql(&url, each_once), format!("{EVENTS} {EVENTS}"));
    let queued = "SELECT count(*) FROM webhook_events WHERE state = 'queued'";
    assert_eq!(server.psql(&url, queued), EVENTS.to_string());
}
