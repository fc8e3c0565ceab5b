//! What happens between a lease and its answer, which no client from outside can time.

use bytes::Bytes;
use hookgate_ledger::{DeliveryId, NewEvent, Queue, State};
use hookgate_webhook::Mode;

use super::*;
use crate::assembly;
use crate::config::{Config, Reader};
use crate::view::place;

/// A replica's parts on a file of its own, with one event that waits to be pulled.
async fn replica(directory: &tempfile::TempDir) -> (Arc<Pull>, NewEvent) {
    let database = format!("sqlite://{}", directory.path().join("hookgate.db").display());
    let settings = [
        ("DATABASE_URL", database.as_str()),
        ("STRIPE_WEBHOOK_SECRET", "whsec_of_a_test"),
        ("HOOKGATE_CONSUMER", "pull"),
        ("HOOKGATE_ADMIN_TOKEN", "admin-token-of-a-test"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let reader = Reader::new(settings.into(), None).unwrap();
    let config = Config::read(&reader, false).unwrap();
    let parts = assembly::assemble(&config, false, crate::clock::Clock::default()).unwrap();
    let admin = super::super::Admin::new(&config, &parts.receiver, &parts.deaths, &parts.ends.stop);
    let pull = admin.pull.unwrap();
    pull.ledger.start(true).await.unwrap();
    let event = NewEvent {
        key: place::key_of("stripe:evt_1").unwrap(),
        provider: "stripe",
        account: None,
        mode: Mode::Live,
        event_type: None,
        object_id: None,
        provider_time: None,
        body_sha256: [0; 32],
        headers: Vec::new(),
        body: Bytes::from_static(b"{}"),
        delivery: DeliveryId(1),
        content_keys: Vec::new(),
    };
    let _ = pull.ledger.append(event.clone(), Queue::ForWorker).await.unwrap();
    (pull, event)
}

fn want(pull: &Pull) -> Want {
    Want {
        sources: pull.sources.keys().cloned().collect(),
        limit: 1,
        lease: Duration::from_hours(1),
        wait: Duration::ZERO,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_leased_for_a_client_that_has_gone_is_given_back_and_costs_no_try() {
    let directory = tempfile::tempdir().unwrap();
    let (pull, event) = replica(&directory).await;
    let (answer, gone) = oneshot::channel();
    drop(gone);
    Arc::clone(&pull).begin(want(&pull), answer).unwrap();
    pull.tasks.close();
    pull.tasks.wait().await;
    let entry = pull.ledger.entry(&event.key).await.unwrap().unwrap();
    assert_eq!((entry.state, entry.attempts), (State::Queued, 1));
    let jobs = pull.fetch(&want(&pull)).await.unwrap();
    assert_eq!((jobs[0].lease.attempt, jobs[0].tries), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stops_leases_nothing_more_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let (pull, event) = replica(&directory).await;
    pull.stop.cancel();
    let (answer, _listening) = oneshot::channel();
    assert!(Arc::clone(&pull).begin(want(&pull), answer).is_err());
    let entry = pull.ledger.entry(&event.key).await.unwrap().unwrap();
    assert_eq!((entry.state, entry.attempts), (State::Queued, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_consumers_than_there_is_room_for_are_sent_elsewhere_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (pull, _) = replica(&directory).await;
    let waiting = Want {
        wait: Duration::from_secs(60),
        sources: Vec::new(),
        ..want(&pull)
    };
    let taken: Vec<_> = (0..WAITING_MAX).map(|_| pull.place(&waiting).unwrap()).collect();
    assert_eq!(pull.metrics.consumers_waiting.get(), 128);
    let (answer, _listening) = oneshot::channel();
    assert!(Arc::clone(&pull).begin(waiting, answer).is_err());
    drop(taken);
    assert_eq!(pull.metrics.consumers_waiting.get(), 0);
}

/// As many consumers as there is room for, each waiting for one event; nobody looks before all have asked.
async fn crowd(pull: &Arc<Pull>) -> Vec<oneshot::Receiver<Result<Vec<Job>, Problem>>> {
    let begin = |_| {
        let (answer, batch) = oneshot::channel();
        let waiting = Want {
            wait: Duration::from_secs(60),
            ..want(pull)
        };
        Arc::clone(pull).begin(waiting, answer).unwrap();
        batch
    };
    let _turn = pull.waiting.turn.lock().await;
    (0..WAITING_MAX).map(begin).collect()
}

async fn until_waiting(pull: &Pull, consumers: i64) {
    let waiting = async {
        while pull.metrics.consumers_waiting.get() > consumers {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_consumers_shares_its_looks_and_each_event_is_given_once() {
    let directory = tempfile::tempdir().unwrap();
    let (pull, mut event) = replica(&directory).await;
    let batches = crowd(&pull).await;
    until_waiting(&pull, 127).await;
    event.key = place::key_of("stripe:evt_2").unwrap();
    let _ = pull.ledger.append(event, Queue::ForWorker).await.unwrap();
    until_waiting(&pull, 126).await;
    pull.stop.cancel();
    let mut given = 0;
    for batch in batches {
        given += batch.await.unwrap().unwrap().len();
    }
    assert_eq!(given, 2);
    let looks = pull.metrics.consumer_looks.get();
    assert!((2..128).contains(&looks), "{looks} looks for 128 consumers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_asks_in_vain_is_one_failure_for_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let (pull, _) = replica(&directory).await;
    pull.ledger.close().await;
    for batch in crowd(&pull).await {
        assert!(batch.await.unwrap().is_err());
    }
    assert!(
        pull.ledger.is_up(),
        "the breaker opens at the third failure in a row"
    );
}
