//! Clients that hang up: their event is theirs to send, not theirs to stop.

use hookgate_harness::{Answer, Gate, Upstream};
use hookgate_ledger::State;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::deployment::{Deployment, Stores};
use crate::gateway::Replica;
use crate::patience::until;
use crate::provider::{self, Signed};

/// Sends the whole request and leaves the connection in hand, its answer unread.
async fn begin(replica: &Replica, event: &Signed) -> TcpStream {
    let mut head = format!(
        "POST /webhooks/{} HTTP/1.1\r\nHost: hookgate\r\nContent-Length: {}\r\n",
        event.source,
        event.body.len()
    );
    for (name, value) in &event.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(replica.public())
        .await
        .expect("the gateway listens");
    let request = [head.as_bytes(), b"\r\n", &event.body].concat();
    stream.write_all(&request).await.expect("the gateway reads");
    stream
}

#[tokio::test]
async fn a_client_that_hangs_up_while_the_target_works_cancels_nothing() {
    for stores in Stores::ALL {
        let (target, gate) = (Upstream::start().await, Gate::closed());
        target.answer(Answer::Gate(gate.clone(), 200));
        let deployment = Deployment::on(stores).await.forwarding_to(&target);
        let replica = deployment.set("HOOKGATE_CLAIM_WAIT", "10m").replica().await;
        let event = provider::fresh();
        let client = begin(&replica, &event).await;
        target.wait_for(1).await;
        client.set_zero_linger().expect("the connection is open");
        drop(client);
        // The next try waits for the outcome of the first, which goes on without its client.
        let mut copy = replica.send(&event);
        gate.open();
        let answer = copy.answer().await;
        assert!(answer.is_ok(true), "{stores:?}: {answer:?}");
        let requests = target
            .wait_until(|seen| seen.iter().all(|one| one.ended.is_some()))
            .await;
        assert!(
            requests.iter().all(|one| !one.client_left),
            "{stores:?}: the call was not cut off"
        );
        assert_eq!(requests.len(), 1, "{stores:?}");
        // The copy may learn the outcome a moment before it is counted.
        until("the first one is counted as accepted", async || {
            replica.deliveries("stripe", "accepted").await == 1.0
        })
        .await;
        assert_eq!(replica.lines_of_level("ERROR"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_at_once_is_counted_like_any_other() {
    let deployment = Deployment::on(Stores::RedisAndPostgres).await;
    let replica = deployment.replica().await;
    let events: Vec<_> = (0..20).map(|_| provider::fresh()).collect();
    for event in &events {
        let client = begin(&replica, event).await;
        client.set_zero_linger().expect("the connection is open");
    }
    // Whether a request that was reset so early is still read is the kernel's to say; kept or not, the next
    // try is answered well, and every event has its row.
    for event in &events {
        assert_eq!(replica.deliver(event).await.status, 200);
        deployment.wait_for_state(event, State::Done).await;
    }
    until("each event was accepted once", async || {
        replica.deliveries("stripe", "accepted").await == 20.0
    })
    .await;
}
