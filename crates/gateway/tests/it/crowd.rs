//! A crowd of copies over three replicas: each event takes effect once, nobody is refused for good, and every
//! request is accounted for.
//!
//! The size follows the machine's patience: 20 events with 250 copies each here; `HOOKGATE_TEST_CROWD=full`
//! makes it 100 events with 500 copies each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{Answer, PostgresServer, Upstream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::provider::{self, Signed};

/// Requests open at the same time.
const OPEN_MAX: usize = 512;

struct Crowd {
    events: Vec<Signed>,
    copies: usize,
    /// Answers by status and the contract's word: `duplicate`, `accepted`, or the error.
    answers: BTreeMap<(u16, String), usize>,
}

/// Whether there is time for a crowd of full size.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a test may take is no setting of the gateway"
)]
pub fn is_full() -> bool {
    std::env::var("HOOKGATE_TEST_CROWD").is_ok_and(|size| size == "full")
}

impl Crowd {
    fn gather() -> Self {
        let (events, copies) = if is_full() { (100, 500) } else { (20, 250) };
        Self {
            events: (0..events).map(|_| provider::fresh()).collect(),
            copies,
            answers: BTreeMap::new(),
        }
    }

    fn requests(&self) -> usize {
        self.events.len() * self.copies
    }

    /// All copies of one event after the other's, each copy to the next replica.
    async fn rush(&mut self, replicas: &[Arc<Replica>]) {
        let (open, mut sending) = (Arc::new(Semaphore::new(OPEN_MAX)), JoinSet::new());
        for number in 0..self.requests() {
            let place = Arc::clone(&open)
                .acquire_owned()
                .await
                .expect("the semaphore stays");
            let replica = Arc::clone(&replicas[number % replicas.len()]);
            let event = self.events[number / self.copies].clone();
            sending.spawn(async move {
                let answer = replica.deliver(&event).await;
                drop(place);
                answer
            });
        }
        while let Some(answer) = sending.join_next().await {
            let answer = answer.expect("every request is answered");
            let word = match answer.json["duplicate"].as_bool() {
                Some(true) => "duplicate".to_owned(),
                Some(false) => "accepted".to_owned(),
                None => answer.error().to_owned(),
            };
            *self.answers.entry((answer.status, word)).or_default() += 1;
        }
    }

    fn answered(&self, status: u16, word: &str) -> usize {
        self.answers
            .get(&(status, word.to_owned()))
            .copied()
            .unwrap_or_default()
    }
}

/// The sum over the replicas.
async fn counted(replicas: &[Arc<Replica>], outcome: &str) -> usize {
    let mut sum = 0.0;
    for replica in replicas {
        sum += replica.deliveries("stripe", outcome).await;
    }
    sum as usize
}

async fn crowded(deployment: &Deployment) -> (Crowd, Vec<Arc<Replica>>) {
    let mut replicas = Vec::new();
    for _ in 0..3 {
        replicas.push(Arc::new(deployment.replica().await));
    }
    let mut crowd = Crowd::gather();
    crowd.rush(&replicas).await;
    let events = crowd.events.len();
    let [accepted, duplicate, in_flight] = [(200, "accepted"), (200, "duplicate"), (409, "in_flight")]
        .map(|(status, word)| crowd.answered(status, word));
    assert_eq!(accepted, events, "{:?}", crowd.answers);
    assert_eq!(
        accepted + duplicate + in_flight,
        crowd.requests(),
        "{:?}",
        crowd.answers
    );
    assert_eq!(counted(&replicas, "accepted").await, accepted);
    assert_eq!(counted(&replicas, "duplicate").await, duplicate);
    assert_eq!(counted(&replicas, "in_flight").await, in_flight);
    (crowd, replicas)
}

#[tokio::test]
async fn a_crowd_of_copies_is_kept_once_by_an_inbox() {
    let deployment = Deployment::on(Stores::RedisAndPostgres).await;
    let (crowd, _replicas) = crowded(&deployment).await;
    assert_eq!(crowd.answered(409, "in_flight"), 0, "an inbox always knows");
    let postgres = PostgresServer::shared().await;
    let database = deployment.setting("DATABASE_URL");
    let rows = postgres.psql(database, "SELECT count(*), min(state) FROM webhook_events");
    assert_eq!(rows, format!("{}|done", crowd.events.len()));
}

#[tokio::test]
async fn a_crowd_of_copies_is_forwarded_once() {
    for stores in [Stores::RedisAndPostgres, Stores::RedisAlone] {
        let target = Upstream::start().await;
        target.answer(Answer::Slow(Duration::from_millis(200), 200));
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let (crowd, _replicas) = crowded(&deployment).await;
        for event in &crowd.events {
            assert_eq!(target.count_for(&event.target_id()), 1, "{stores:?}");
        }
    }
}
