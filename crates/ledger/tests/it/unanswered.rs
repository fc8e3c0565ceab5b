//! Looks whose answer did not come: what they leased is found again, and costs no try.

use hookgate_harness::{Fault, Then};
use hookgate_ledger::{Fetch, Job, Ledger, Queue, Settled, Ticket};

use crate::database::Database;
use crate::network::behind_a_proxy;
use crate::on_both;
use crate::sample::{LONG, all, event};

on_both!(what_a_look_leased_is_given_to_whoever_asks_with_its_ticket);

async fn append(ledger: &dyn Ledger, ids: &[&str]) {
    for id in ids {
        let _ = ledger.append(event(id), Queue::ForWorker).await.unwrap();
    }
}

fn known(jobs: &[Job]) -> Vec<(String, u128, u32)> {
    let mut known: Vec<_> = jobs
        .iter()
        .map(|job| (job.lease.key.to_string(), job.lease.owner.0, job.lease.attempt))
        .collect();
    known.sort();
    known
}

async fn what_a_look_leased_is_given_to_whoever_asks_with_its_ticket(db: Database) {
    let ledger = db.ledger().await;
    append(&*ledger, &["evt_1", "evt_2", "evt_3"]).await;
    let look = |limit, ticket| Fetch {
        limit,
        ticket,
        ..all(LONG)
    };
    let (ticket, other) = (Ticket::draw(), Ticket::draw());
    let first = ledger.fetch(look(2, ticket)).await.unwrap();
    assert_eq!(first.len(), 2);
    let again = ledger.fetch(look(2, ticket.again())).await.unwrap();
    assert_eq!(
        known(&again),
        known(&first),
        "the same leases, and not one try more"
    );

    let rest = ledger.fetch(look(5, other.again())).await.unwrap();
    assert_eq!(
        rest.len(),
        1,
        "nothing was leased by this one: it looks for itself"
    );
    for job in first.iter().chain(&rest) {
        assert_eq!(ledger.finish(&job.lease).await.unwrap(), Settled::Committed);
    }
    assert!(ledger.fetch(look(5, ticket.again())).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_whose_reply_was_lost_gives_its_leases_when_it_is_repeated() {
    let (ledger, proxy, db) = behind_a_proxy().await;
    for (id, then) in [("evt_reset", Then::Reset), ("evt_silence", Then::Silence)] {
        append(&ledger, &[id]).await;
        let want = all(LONG);
        let words = want.lanes[0].source.to_string();
        // The statement is known to the connection by now or not; its arguments always travel.
        proxy.set_for(words.as_bytes(), Fault::DropNextReply { then });
        let jobs = ledger.fetch(want).await.unwrap();
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert_eq!(
            (jobs.len(), jobs[0].lease.attempt, jobs[0].tries),
            (1, 1, 1),
            "{id}"
        );
        assert_eq!(ledger.finish(&jobs[0].lease).await.unwrap(), Settled::Committed);
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "2");
}
