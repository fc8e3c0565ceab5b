//! Workers lease, keep, lose and inherit events.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::join_all;
use hookgate_ledger::{Effects, Fetch, Outcome, Queue, Settled, State, TriesMax};

use crate::database::{Database, until};
use crate::on_both;
use crate::sample::{LONG, SHORT, all, event, fetch, fetch_one, key, lane, source, with_body};

on_both!(
    the_oldest_due_is_fetched_first_and_only_once,
    workers_that_fetch_at_once_share_nothing,
    events_of_other_sources_wait_for_a_worker_that_knows_them,
    bodies_are_fetched_by_their_bytes_but_always_one,
    a_heartbeat_keeps_the_lease,
    an_event_of_a_dead_worker_is_queued_again,
    an_event_that_kills_its_workers_dies,
    a_forward_of_a_dead_replica_fails_whatever_its_tries,
    depth_counts_what_is_not_finished,
    depth_counts_no_further_than_it_can_in_time,
    the_ledger_answers_a_probe_only_with_its_tables,
);

async fn the_oldest_due_is_fetched_first_and_only_once(db: Database) {
    let ledger = db.ledger().await;
    for id in ["evt_a", "evt_b", "evt_c"] {
        let _ = ledger.append(event(id), Queue::ForWorker).await.unwrap();
    }
    let hour = if matches!(db, Database::Sqlite { .. }) {
        "3600000"
    } else {
        "interval '1 h'"
    };
    for (id, shift) in [("evt_b", "- 2 *"), ("evt_c", "- 1 *"), ("evt_a", "+ 1 *")] {
        let sql = "UPDATE webhook_events SET next_attempt_at = next_attempt_at";
        db.run(&format!("{sql} {shift} {hour} WHERE event_id = '{id}'"))
            .await;
    }
    let first = ledger
        .fetch(Fetch {
            limit: 1,
            ..all(LONG)
        })
        .await
        .unwrap();
    assert_eq!(first[0].lease.key, key("evt_b"));
    assert_eq!((first[0].lease.attempt, first[0].tries), (1, 1));
    let second = fetch_one(&*ledger, LONG).await;
    assert_eq!(second.lease.key, key("evt_c"));
    assert_ne!(first[0].lease.owner, second.lease.owner);
    assert!(fetch(&*ledger, LONG).await.is_empty(), "evt_a is not due");
}

async fn workers_that_fetch_at_once_share_nothing(db: Database) {
    let workers = [db.ledger().await, db.replica(), db.replica(), db.replica()];
    let ids: Vec<String> = (0..48).map(|n| format!("evt_{n}")).collect();
    join_all(
        ids.iter()
            .map(|id| workers[0].append(event(id), Queue::ForWorker)),
    )
    .await;
    let want = Fetch {
        limit: 8,
        ..all(LONG)
    };
    let fetches = (0..12).map(|n| workers[n % 4].fetch(want.clone()));
    let mut jobs: Vec<_> = join_all(fetches)
        .await
        .into_iter()
        .flat_map(Result::unwrap)
        .collect();
    // Rows that another worker is looking at are skipped, so some may be left.
    jobs.extend(fetch(&*workers[0], LONG).await);
    let distinct: HashSet<_> = jobs.iter().map(|job| job.lease.key.clone()).collect();
    let owners: HashSet<_> = jobs.iter().map(|job| job.lease.owner).collect();
    assert_eq!((jobs.len(), distinct.len(), owners.len()), (48, 48, 48));
}

/// As while versions change: the newest replica receives for a source that this worker has never heard of.
async fn events_of_other_sources_wait_for_a_worker_that_knows_them(db: Database) {
    let ledger = db.ledger().await;
    let mut foreign = event("evt_1");
    foreign.key.source = source("new");
    let _ = ledger.append(foreign.clone(), Queue::ForWorker).await.unwrap();
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    assert_eq!(fetch_one(&*ledger, LONG).await.lease.key, key("evt_1"));
    assert!(fetch(&*ledger, LONG).await.is_empty());
    let untouched = ledger.entry(&foreign.key).await.unwrap().unwrap();
    assert_eq!((untouched.state, untouched.attempts), (State::Queued, 0));

    let nothing = Fetch {
        lanes: Vec::new(),
        ..all(LONG)
    };
    assert!(ledger.fetch(nothing).await.unwrap().is_empty());
    let both = Fetch {
        lanes: vec![lane("stripe", 0), lane("new", 1)],
        ..all(LONG)
    };
    let jobs = ledger.fetch(both).await.unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!((&jobs[0].lease.key, jobs[0].tries), (&foreign.key, 1));
}

async fn bodies_are_fetched_by_their_bytes_but_always_one(db: Database) {
    let ledger = db.ledger().await;
    // One after the other, so that they are due in this order; at the same moment, two may change places.
    for (id, bytes) in [
        ("evt_a", 300),
        ("evt_b", 40),
        ("evt_c", 60),
        ("evt_d", 0),
        ("evt_e", 1),
    ] {
        let event = with_body(id, vec![b'x'; bytes]);
        let _ = ledger.append(event, Queue::ForWorker).await.unwrap();
        let due = if matches!(db, Database::Sqlite { .. }) {
            "(SELECT now - 1000 + max(rowid) FROM clock, webhook_events)"
        } else {
            "now() - interval '1 s' + (SELECT count(*) FROM webhook_events) * interval '1 ms'"
        };
        let sql = "UPDATE webhook_events SET next_attempt_at =";
        db.run(&format!("{sql} {due} WHERE event_id = '{id}'")).await;
    }
    let want = Fetch {
        bytes_max: 100,
        ..all(LONG)
    };
    let mut fetched = Vec::new();
    for _ in 0..4 {
        let jobs = ledger.fetch(want.clone()).await.unwrap();
        fetched.push(
            jobs.into_iter()
                .map(|job| job.lease.key.id.to_string())
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(
        fetched,
        [
            vec!["evt_a"],
            vec!["evt_b", "evt_c", "evt_d"],
            vec!["evt_e"],
            vec![]
        ]
    );
}

async fn a_heartbeat_keeps_the_lease(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    let job = fetch_one(&*ledger, SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(
        ledger.heartbeat(&job.lease, LONG).await.unwrap(),
        Settled::Committed
    );
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 0);
    assert!(!ledger.entry(&key("evt_1")).await.unwrap().unwrap().lease_ended);
    // A heartbeat that was long on its way does not shorten it.
    assert_eq!(
        ledger.heartbeat(&job.lease, SHORT).await.unwrap(),
        Settled::Committed
    );
    assert_eq!(ledger.rescue(&5.into()).await.unwrap().freed, 0);
}

async fn an_event_of_a_dead_worker_is_queued_again(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    let dead = fetch_one(&*ledger, SHORT).await;
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    let replicas = [db.replica(), db.replica(), db.replica()];
    let five = TriesMax::from(5);
    let rescued: u64 = join_all(replicas.iter().map(|ledger| ledger.rescue(&five)))
        .await
        .into_iter()
        .map(|rescued| rescued.unwrap().freed)
        .sum();
    assert_eq!(rescued, 1);

    let next = fetch_one(&*ledger, LONG).await;
    assert_eq!((next.lease.attempt, next.tries), (2, 2));
    let lost = ledger
        .settle(&dead.lease, Outcome::Done, Effects::default())
        .await
        .unwrap();
    assert_eq!(lost, Settled::Lost);
    assert_eq!(ledger.finish(&next.lease).await.unwrap(), Settled::Committed);
    assert_eq!(
        db.value("SELECT outcome FROM webhook_attempts WHERE attempt = 1")
            .await,
        "lost"
    );
    assert_eq!(
        db.value("SELECT outcome FROM webhook_attempts WHERE attempt = 2")
            .await,
        "done"
    );
}

async fn an_event_that_kills_its_workers_dies(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap();
    for attempt in 1..=3 {
        assert_eq!(fetch_one(&*ledger, SHORT).await.lease.attempt, attempt);
        until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
        assert_eq!(ledger.rescue(&3.into()).await.unwrap().freed, 1);
    }
    assert_eq!(
        ledger.entry(&key("evt_1")).await.unwrap().unwrap().state,
        State::Dead
    );
    assert_eq!(db.value("SELECT event_id FROM dead_letters").await, "evt_1");
}

async fn a_forward_of_a_dead_replica_fails_whatever_its_tries(db: Database) {
    let ledger = db.ledger().await;
    let _ = ledger.begin(&event("evt_1"), SHORT).await.unwrap();
    until(&*ledger, &key("evt_1"), |entry| entry.lease_ended).await;
    assert_eq!(ledger.rescue(&1.into()).await.unwrap().freed, 1);
    assert_eq!(
        ledger.entry(&key("evt_1")).await.unwrap().unwrap().state,
        State::Failed
    );
}

async fn depth_counts_what_is_not_finished(db: Database) {
    let ledger = db.ledger().await;
    assert_eq!(
        ledger.depth().await.unwrap(),
        (Default::default(), Duration::ZERO)
    );
    for id in ["evt_1", "evt_2", "evt_3", "evt_4"] {
        let _ = ledger.append(event(id), Queue::ForWorker).await.unwrap();
    }
    let _ = ledger
        .append(event("evt_done"), Queue::Finished("no_consumer"))
        .await
        .unwrap();
    let jobs = ledger
        .fetch(Fetch {
            limit: 2,
            ..all(LONG)
        })
        .await
        .unwrap();
    let dead = Outcome::Dead {
        error: "refused".into(),
    };
    assert_eq!(
        ledger
            .settle(&jobs[0].lease, dead, Effects::default())
            .await
            .unwrap(),
        Settled::Committed
    );
    let (depth, oldest) = ledger.depth().await.unwrap();
    assert_eq!(
        depth.into_iter().collect::<Vec<_>>(),
        [(State::Queued, 2), (State::Running, 1), (State::Dead, 1)]
    );
    assert!(oldest < crate::sample::LONG);
}

async fn depth_counts_no_further_than_it_can_in_time(db: Database) {
    let ledger = db.ledger().await;
    let (now, digest) = match db {
        Database::Postgres { .. } => ("now()", "decode(repeat('00', 32), 'hex')"),
        Database::Sqlite { .. } => ("0", "zeroblob(32)"),
    };
    db.run(&format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100100)
         INSERT INTO webhook_events (source, event_id, provider, path, state, processed_at,
                                     delivery_id, body_sha256, headers, body)
         SELECT 'stripe', 'evt_' || n, 'stripe', 'inbox', 'dead', {now}, {digest}, {digest}, '[]', {digest}
         FROM numbers"
    ))
    .await;
    let _ = ledger
        .append(event("evt_queued"), Queue::ForWorker)
        .await
        .unwrap();
    let (depth, _) = ledger.depth().await.unwrap();
    assert_eq!(
        depth.into_iter().collect::<Vec<_>>(),
        [(State::Queued, 1), (State::Dead, 100_000)]
    );
}

async fn the_ledger_answers_a_probe_only_with_its_tables(db: Database) {
    let ledger = db.replica();
    assert!(ledger.probe().await.is_err());
    ledger.migrate().await.unwrap();
    ledger.probe().await.unwrap();
}
