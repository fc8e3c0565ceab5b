//! Copies that arrive while the first one is worked on: they wait for its real outcome, a bounded time, and
//! are promised nothing before there is one.

use hookgate_harness::{Answer, Gate, Upstream};
use hookgate_ledger::State;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// A target whose first request hangs at a gate, after which it answers this.
async fn gated_target(then: u16) -> (Upstream, Gate) {
    let (target, gate) = (Upstream::start().await, Gate::closed());
    target.answer(Answer::Gate(gate.clone(), then));
    (target, gate)
}

/// Two replicas that forward to the target, on these stores, whose copies wait so long.
async fn two_replicas(stores: Stores, target: &Upstream, wait: &str) -> (Deployment, Replica, Replica) {
    let deployment = Deployment::on(stores).await.forwarding_to(target);
    let deployment = deployment.set("HOOKGATE_CLAIM_WAIT", wait);
    let (one, two) = (deployment.replica().await, deployment.replica().await);
    (deployment, one, two)
}

#[tokio::test]
async fn a_copy_of_an_event_in_hand_is_told_to_come_later_and_runs_after_the_failure() {
    for stores in Stores::SHARED {
        let (target, gate) = gated_target(500).await;
        let (deployment, one, two) = two_replicas(stores, &target, "50ms").await;
        let event = provider::fresh();
        let mut first = one.send(&event);
        target.wait_for(1).await;
        let second = two.deliver(&event).await;
        assert!(second.says_later(409, "in_flight"), "{stores:?}: {second:?}");

        target.answer(Answer::Status(200));
        gate.open();
        assert_eq!(first.answer().await.error(), "handler_failed", "{stores:?}");
        let third = two.deliver(&event).await;
        assert!(third.is_ok(false), "{stores:?}: {third:?}");
        assert_eq!(
            target.count_for(&event.target_id()),
            2,
            "one failed, one took effect"
        );
        assert!(!target.overlapped(&event.target_id()), "{stores:?}");
        let row = stores.have_a_ledger().then_some((State::Done, 2));
        assert_eq!(deployment.state(&event).await, row, "{stores:?}");
    }
}

#[tokio::test]
async fn a_waiting_copy_learns_that_the_first_one_succeeded() {
    for stores in Stores::SHARED {
        let (target, gate) = gated_target(200).await;
        let (_deployment, one, two) = two_replicas(stores, &target, "10m").await;
        let event = provider::fresh();
        let mut first = one.send(&event);
        target.wait_for(1).await;
        let mut copies: Vec<_> = (0..20).map(|_| two.send(&event)).collect();
        // A third kind of copy: beside the first, on its own replica.
        copies.push(one.send(&event));
        under_way(&two, 20).await;

        gate.open();
        assert!(first.answer().await.is_ok(false), "{stores:?}");
        for copy in &mut copies {
            let answer = copy.answer().await;
            assert!(answer.is_ok(true), "{stores:?}: {answer:?}");
        }
        assert_eq!(target.count_for(&event.target_id()), 1, "{stores:?}");
    }
}

#[tokio::test]
async fn of_many_waiting_copies_one_runs_when_the_first_one_failed() {
    for stores in Stores::SHARED {
        let (target, gate) = gated_target(500).await;
        let (_deployment, one, two) = two_replicas(stores, &target, "10m").await;
        let event = provider::fresh();
        let mut first = one.send(&event);
        target.wait_for(1).await;
        let mut copies: Vec<_> = (0..20).map(|_| two.send(&event)).collect();
        under_way(&two, 20).await;

        target.answer(Answer::Status(200));
        gate.open();
        assert_eq!(first.answer().await.error(), "handler_failed", "{stores:?}");
        let mut fresh = 0;
        for copy in &mut copies {
            let answer = copy.answer().await;
            assert_eq!(answer.status, 200, "{stores:?}: {answer:?}");
            fresh += usize::from(answer.is_ok(false));
        }
        assert_eq!(fresh, 1, "{stores:?}");
        assert_eq!(
            target.count_for(&event.target_id()),
            2,
            "one failed, one took effect"
        );
        assert!(!target.overlapped(&event.target_id()), "{stores:?}");
    }
}

/// Waits until the replica has so many open connections from us: every copy has reached it.
async fn under_way(replica: &Replica, copies: usize) {
    let port = replica.public().rsplit(':').next().expect("a port").to_owned();
    until("the copies have arrived", async || established(&port) >= copies).await;
}

/// Connections to this local port, as the kernel lists them.
fn established(port: &str) -> usize {
    const ESTABLISHED: &str = "01";
    let port: u16 = port.parse().expect("a port");
    let local = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the kernel lists its connections");
    let open = table.lines().filter(|line| {
        // Number, local and remote address, state, and more.
        let mut columns = line.split_whitespace().skip(1);
        columns.next().is_some_and(|address| address.ends_with(&local)) && columns.nth(1) == Some(ESTABLISHED)
    });
    open.count()
}

#[tokio::test]
async fn an_inbox_accepts_one_of_many_simultaneous_copies() {
    for stores in [Stores::RedisAndPostgres, Stores::PostgresAlone] {
        let deployment = Deployment::on(stores).await;
        let replicas = [deployment.replica().await, deployment.replica().await];
        let event: Signed = provider::fresh();
        let mut copies: Vec<_> = (0..40).map(|number| replicas[number % 2].send(&event)).collect();
        let mut fresh = 0;
        for copy in &mut copies {
            let answer = copy.answer().await;
            assert_eq!(answer.status, 200, "{stores:?}: {answer:?}");
            fresh += usize::from(answer.is_ok(false));
        }
        assert_eq!(fresh, 1, "{stores:?}");
    }
}
