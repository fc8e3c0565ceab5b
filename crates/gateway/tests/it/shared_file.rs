//! Several processes on one SQLite file: they take turns by the file's lock, and whoever waits too long for it is told
//! to come again and is well then.

use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{PATIENCE, Upstream};
use hookgate_ledger::{Limits, Retention, SqliteLedger, SweepPlace, Upkeep as _};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::account::{Account, all_at_rest};
use crate::deployment::{Deployment, Stores};
use crate::gateway::{Answer, Replica};
use crate::provider::{self, Signed};

/// Deliveries under way at the same time.
const OPEN_MAX: usize = 50;

/// Events, each sent to two of the processes.
const COUNT: usize = 250;

/// Sends the event until it is taken; the refusals on the way all say when to come again.
async fn deliver(replica: &Replica, event: &Signed) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = replica.deliver(event).await;
        if answer.status == 200 {
            return answer;
        }
        assert!(answer.says_later(503, "unavailable"), "{answer:?}");
        assert!(Instant::now() < deadline, "{} is never taken", event.event_id);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Upkeep over and over, as if there were always something to do.
async fn sweep(deployment: &Deployment, stop: CancellationToken) -> usize {
    let file = deployment.file().expect("it is a file");
    let keeper = SqliteLedger::open(file, Limits::default()).expect("the file can be written");
    let retention = Retention {
        bodies: Duration::from_secs(3600),
        rows: Duration::from_secs(7200),
        stats: Duration::from_secs(3600),
    };
    let (mut swept, mut place) = (0, SweepPlace::default());
    while !stop.is_cancelled() {
        swept += usize::from(keeper.sweep(retention, &mut place).await.is_ok());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    swept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_share_a_file_take_every_event_once() {
    let target = Upstream::start().await;
    let deployment = Deployment::on(Stores::Embedded).await.delivering_to(&target);
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(Arc::new(deployment.replica().await));
    }
    let stop = CancellationToken::new();
    let sweeping = tokio::spawn({
        let (deployment, stop) = (deployment.clone(), stop.clone());
        async move { sweep(&deployment, stop).await }
    });

    let events: Vec<_> = (0..COUNT)
        .map(|n| provider::stripe(&format!("evt_{n}")))
        .collect();
    let (open, mut sending) = (Arc::new(Semaphore::new(OPEN_MAX)), JoinSet::new());
    for number in 0..2 * COUNT {
        let place = Arc::clone(&open)
            .acquire_owned()
            .await
            .expect("the semaphore stays");
        let (event, replica) = (events[number / 2].clone(), Arc::clone(&replicas[number % 3]));
        sending.spawn(async move {
            let answer = deliver(&replica, &event).await;
            drop(place);
            usize::from(answer.is_ok(true))
        });
    }
    let duplicates: usize = sending.join_all().await.into_iter().sum();
    // An append whose answer came too late is a duplicate when it comes again: more can be, and fewer cannot.
    assert!((COUNT..=COUNT + COUNT / 10).contains(&duplicates), "{duplicates}");
    all_at_rest(&deployment, COUNT).await;
    stop.cancel();
    assert!(sweeping.await.expect("sweeping ends") > 0);

    for replica in &replicas {
        assert_eq!(replica.stop().await, Some(0));
    }
    let account = Account::of(&deployment, &target).await;
    assert_eq!((account.events, account.done), (COUNT, COUNT), "{account}");
    assert_eq!((account.calls, account.overlaps), (COUNT, 0), "{account}");
}

#[tokio::test]
async fn a_file_that_somebody_holds_is_said_to_be_unavailable_and_nothing_is_lost() {
    let target = Upstream::start().await;
    let deployment = Deployment::on(Stores::Embedded).await.delivering_to(&target);
    let deployment = deployment.set("HOOKGATE_LEDGER_TIMEOUT", "500ms");
    let (replica, event) = (deployment.replica().await, provider::fresh());
    let held = deployment.hold().await;
    let refused = replica.deliver(&event).await;
    assert!(refused.says_later(503, "unavailable"), "{refused:?}");
    assert_eq!(deployment.entry(&event).await, None);
    drop(held);
    assert_eq!(deliver(&replica, &event).await.status, 200);
    all_at_rest(&deployment, 1).await;
    assert_eq!(target.count_for(&event.target_id()), 1);
}
