//! A deployment under load: every replica is replaced in turn while a provider goes on sending. What it was promised
//! takes effect once, whether a replica ended as it should or was killed on its way out.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_harness::{Answer, Upstream};

use crate::account::{Account, all_at_rest};
use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::provider;

/// Requests that the provider has open at a time.
const OPEN: usize = 8;

/// A balancer over replicas that come and go.
struct Fleet {
    replicas: Mutex<Vec<Arc<Replica>>>,
    turn: AtomicUsize,
}

impl Fleet {
    fn next(&self) -> Arc<Replica> {
        let replicas = self.replicas.lock().expect("nobody panics over the list");
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&replicas[turn % replicas.len()])
    }

    /// Puts a new replica in the place of an old one, which gets no more requests.
    fn replace(&self, place: usize, new: Replica) -> Arc<Replica> {
        let mut replicas = self.replicas.lock().expect("nobody panics over the list");
        std::mem::replace(&mut replicas[place], Arc::new(new))
    }

    /// Sends one event as a provider would: until somebody says 200.
    async fn deliver(&self) {
        let event = provider::fresh();
        for _ in 0..50 {
            let replica = self.next();
            match replica.send(&event).outcome().await {
                Some(answer) if answer.status == 200 => return,
                Some(answer) => assert!(answer.says_later(503, "unavailable"), "{answer:?}"),
                None => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("nobody took {}", event.event_id);
    }

    /// Sends one event after the other until told to stop, and says how many.
    async fn load(&self, stop: &AtomicBool) -> usize {
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            self.deliver().await;
            sent += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        sent
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_is_replaced_under_load_keeps_every_promise_once() {
    let target = Upstream::start().await;
    target.answer(Answer::Slow(Duration::from_millis(200), 200));
    let deployment = Deployment::on(Stores::RedisAndPostgres)
        .await
        .delivering_to(&target);
    let doomed = deployment.clone().set("HOOKGATE_WORKER_LEASE", "3s");
    let fleet = Fleet {
        replicas: Mutex::new(Vec::new()),
        turn: AtomicUsize::new(0),
    };
    for deployment in [&deployment, &deployment, &doomed] {
        let replica = Arc::new(deployment.replica().await);
        fleet
            .replicas
            .lock()
            .expect("nobody panics over the list")
            .push(replica);
    }

    let stop = AtomicBool::new(false);
    let replacing = async {
        for place in 0..3 {
            let old = fleet.replace(place, deployment.replica().await);
            old.process().signal("TERM");
            if place == 2 {
                old.process().signal("KILL");
                assert_eq!(old.process().wait_exit().await, None, "a signal ended it");
            } else {
                assert_eq!(old.process().wait_exit().await, Some(0));
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    let loads = join_all((0..OPEN).map(|_| fleet.load(&stop)));
    let (sent, ()) = tokio::join!(loads, replacing);
    let sent: usize = sent.into_iter().sum();
    all_at_rest(&deployment, sent).await;

    for place in 0..3 {
        let replica = Arc::clone(&fleet.replicas.lock().expect("nobody panics over the list")[place]);
        assert_eq!(replica.stop().await, Some(0));
    }
    let account = Account::of(&deployment, &target).await;
    assert_eq!((account.events, account.done), (sent, sent), "{account}");
    assert_eq!(
        (account.after_failures, account.after_timeouts),
        (0, 0),
        "{account}"
    );
    assert!(account.doubled <= account.lost, "{account}");
}
