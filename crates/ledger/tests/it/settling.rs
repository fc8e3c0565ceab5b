//! Settlements that come at the same time: they share a commit, and nothing else.

use futures_util::future::join_all;
use hookgate_ledger::{DeliveryId, Effects, Job, Lease, Ledger, LedgerError, Outcome, Queue, Settled, State};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, event, fetch};

on_both!(
    each_of_many_has_its_own_outcome,
    one_that_is_refused_fails_alone,
    a_settlement_goes_on_when_nobody_waits_for_it,
);

async fn leased(ledger: &dyn Ledger, count: usize) -> Vec<Job> {
    let ids: Vec<String> = (0..count).map(|n| format!("evt_{n}")).collect();
    let appends = ids.iter().map(|id| ledger.append(event(id), Queue::ForWorker));
    for appended in join_all(appends).await {
        let _ = appended.unwrap();
    }
    let jobs = fetch(ledger, LONG).await;
    assert_eq!(jobs.len(), count);
    jobs
}

fn failed(error: &str) -> Outcome {
    Outcome::Retry {
        after: LONG,
        error: error.to_owned(),
    }
}

async fn each_of_many_has_its_own_outcome(db: Database) {
    let ledger = db.ledger().await;
    let jobs = leased(&*ledger, 100).await;
    let settlements = jobs.iter().enumerate().map(|(n, job)| {
        let stranger = Lease {
            owner: DeliveryId(n as u128),
            ..job.lease.clone()
        };
        let dead = Outcome::Dead {
            error: "the target answered 410".to_owned(),
        };
        let (lease, outcome) = match n % 4 {
            0 => (job.lease.clone(), Outcome::Done),
            1 => (job.lease.clone(), failed("the target answered 500")),
            2 => (job.lease.clone(), dead),
            _ => (stranger, Outcome::Done),
        };
        let ledger = &ledger;
        async move {
            (
                n,
                ledger.settle(&lease, outcome, Effects::default()).await.unwrap(),
            )
        }
    });
    for (n, settled) in join_all(settlements).await {
        let expected = if n % 4 == 3 {
            Settled::Lost
        } else {
            Settled::Committed
        };
        assert_eq!(settled, expected, "{n}");
    }
    for (n, job) in jobs.iter().enumerate() {
        let entry = ledger.entry(&job.lease.key).await.unwrap().unwrap();
        let states = [State::Done, State::Queued, State::Dead, State::Running];
        assert_eq!(entry.state, states[n % 4], "{n}");
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "75");
}

async fn one_that_is_refused_fails_alone(db: Database) {
    let ledger = db.ledger().await;
    db.poison("webhook_attempts", "error").await;
    let jobs = leased(&*ledger, 60).await;
    let settlements = jobs.iter().enumerate().map(|(n, job)| {
        let outcome = failed(if n == 30 {
            "poison"
        } else {
            "the target answered 500"
        });
        ledger.settle(&job.lease, outcome, Effects::default())
    });
    for (n, settled) in join_all(settlements).await.into_iter().enumerate() {
        match n {
            30 => assert!(matches!(settled, Err(LedgerError::Refused(_))), "{settled:?}"),
            _ => assert_eq!(settled.unwrap(), Settled::Committed, "{n}"),
        }
    }
    assert_eq!(db.value("SELECT count(*) FROM webhook_attempts").await, "59");
    assert_eq!(
        db.value("SELECT count(*) FROM webhook_events WHERE state = 'running'")
            .await,
        "1"
    );
}

async fn a_settlement_goes_on_when_nobody_waits_for_it(db: Database) {
    let ledger = db.ledger().await;
    let jobs = leased(&*ledger, 1).await;
    // Polled once, it stands in line; then nobody asks again.
    {
        let settling = ledger.settle(&jobs[0].lease, Outcome::Done, Effects::default());
        tokio::select! {
            biased;
            settled = settling => panic!("it cannot be done at once: {settled:?}"),
            () = std::future::ready(()) => {}
        }
    }
    crate::database::until(&*ledger, &jobs[0].lease.key, |entry| entry.state == State::Done).await;
}
