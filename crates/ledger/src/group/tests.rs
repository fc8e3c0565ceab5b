//! The group against a committer that follows a script: what each kind of failure does to a batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use hookgate_webhook::{EventId, EventKey, Mode, SourceName};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Commit, Group, Row};
use crate::fault::Fault;
use crate::{Appended, DeliveryId, LedgerError, Limits, NewEvent, Queue};

/// What the committer does with one batch. After the script's end it accepts everything.
enum Step {
    Fail(Fault),
    OriginalsGone,
    Panic,
}

/// Follows the script, refuses every row called `bad`, and writes down which rows came together.
#[derive(Clone, Default)]
struct Script {
    steps: Arc<Mutex<VecDeque<Step>>>,
    batches: Arc<Mutex<Vec<Vec<String>>>>,
    gate: Option<Arc<Semaphore>>,
}

impl Script {
    fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: Arc::new(Mutex::new(steps.into_iter().collect())),
            ..Self::default()
        }
    }

    /// A committer that lets one batch through per permit.
    fn gated() -> (Self, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        (
            Self {
                gate: Some(Arc::clone(&gate)),
                ..Self::default()
            },
            gate,
        )
    }

    fn batches(&self) -> Vec<Vec<String>> {
        self.batches.lock().unwrap().clone()
    }
}

impl Commit for Script {
    const LANES: usize = 1;
    const ALONE: usize = 2;

    async fn commit(&self, rows: &[&Row], _deadline: Instant) -> Result<Vec<Option<Appended>>, Fault> {
        let ids: Vec<String> = rows.iter().map(|row| row.event.key.id.to_string()).collect();
        self.batches.lock().unwrap().push(ids.clone());
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        let step = self.steps.lock().unwrap().pop_front();
        match step {
            Some(Step::Fail(fault)) => Err(fault),
            Some(Step::OriginalsGone) => Ok(vec![None; rows.len()]),
            Some(Step::Panic) => panic!("as the script says"),
            None if ids.iter().any(|id| id == "bad") => Err(Fault::Data("bad".into())),
            None => Ok(vec![Some(Appended::Accepted); rows.len()]),
        }
    }
}

fn row(id: &str) -> Row {
    let key = EventKey {
        source: SourceName::parse("stripe").unwrap(),
        id: EventId::parse(id).unwrap(),
    };
    let event = NewEvent {
        key,
        provider: "stripe",
        account: None,
        mode: Mode::Unknown,
        event_type: None,
        object_id: None,
        provider_time: None,
        body_sha256: [0; 32],
        headers: Vec::new(),
        body: Bytes::from_static(b"0123456789"),
        delivery: DeliveryId(rand::random()),
        content_keys: Vec::new(),
    };
    Row {
        event,
        queue: Queue::ForWorker,
    }
}

fn limits() -> Limits {
    Limits {
        append: Duration::from_secs(30),
        ..Limits::default()
    }
}

async fn append_all(group: &Group<Script>, ids: &[&str]) -> Vec<Result<Appended, LedgerError>> {
    join_all(ids.iter().map(|id| group.append(row(id)))).await
}

#[tokio::test]
async fn who_comes_to_an_idle_ledger_goes_alone_and_the_others_together_in_order() {
    let (script, gate) = Script::gated();
    let group = Group::new(script.clone(), limits());
    gate.add_permits(2);
    append_all(&group, &["first", "c", "a", "b"]).await;
    // The lane starts when the callers wait, so what came in one breath goes in one batch.
    assert_eq!(script.batches(), [["a", "b", "c", "first"]]);
    assert_eq!(group.append(row("later")).await.unwrap(), Appended::Accepted);
    assert_eq!(script.batches()[1], ["later"]);
}

#[tokio::test]
async fn a_batch_is_bounded_by_rows_and_by_bytes() {
    for (limits, sizes) in [
        (
            Limits {
                batch_rows: 2,
                ..limits()
            },
            vec![2, 2, 1],
        ),
        (
            Limits {
                batch_bytes: 35,
                ..limits()
            },
            vec![3, 2],
        ),
        (
            Limits {
                batch_bytes: 8,
                ..limits()
            },
            vec![1, 1, 1, 1, 1],
        ),
    ] {
        let script = Script::default();
        append_all(&Group::new(script.clone(), limits), &["a", "b", "c", "d", "e"]).await;
        let batches: Vec<usize> = script.batches().iter().map(Vec::len).collect();
        assert_eq!(batches, sizes);
    }
}

#[tokio::test]
async fn what_may_pass_is_repeated_until_it_does() {
    let script = Script::of([
        Step::Fail(Fault::Conflict("deadlock".into())),
        Step::Fail(Fault::Broken("cut off".into())),
        Step::OriginalsGone,
    ]);
    let group = Group::new(script.clone(), limits());
    for found in append_all(&group, &["a", "b"]).await {
        assert_eq!(found.unwrap(), Appended::Accepted);
    }
    assert_eq!(script.batches(), vec![["a", "b"]; 4]);
}

#[tokio::test(start_paused = true)]
async fn what_never_passes_is_unavailable_in_time_and_says_why() {
    let steps = (0..10_000).map(|_| Step::Fail(Fault::Broken("cut off".into())));
    let group = Group::new(Script::of(steps), limits());
    let began = Instant::now();
    let found = group.append(row("a")).await;
    let Err(LedgerError::Unavailable(why)) = found else {
        panic!("{found:?}")
    };
    assert_eq!(why, "cut off");
    assert!(began.elapsed() <= limits().append);
}

#[tokio::test]
async fn a_bad_row_fails_alone() {
    let script = Script::default();
    let group = Group::new(script.clone(), limits());
    let found = append_all(&group, &["a", "bad", "c"]).await;
    assert!(matches!(found[1], Err(LedgerError::Refused(_))), "{found:?}");
    assert!(
        matches!(
            (&found[0], &found[2]),
            (Ok(Appended::Accepted), Ok(Appended::Accepted))
        ),
        "{found:?}"
    );
    assert_eq!(script.batches()[0], ["a", "bad", "c"]);
    assert!(script.batches()[1..].iter().all(|batch| batch.len() == 1));
}

#[tokio::test]
async fn an_overloaded_database_is_not_asked_again_for_each_row() {
    let script = Script::of([Step::Fail(Fault::Overloaded("too slow".into()))]);
    let group = Group::new(script.clone(), limits());
    let found = append_all(&group, &["a", "b"]).await;
    assert!(
        found
            .iter()
            .all(|found| matches!(found, Err(LedgerError::Unavailable(_)))),
        "{found:?}"
    );
    assert_eq!(script.batches().len(), 1);
}

#[tokio::test]
async fn a_caller_that_left_before_its_row_was_sent_takes_it_along() {
    let (script, gate) = Script::gated();
    let group = Group::new(script.clone(), limits());
    let sent = group.append(row("sent"));
    let late = async {
        // Polled once, so that it stands in line, and then dropped.
        let left = tokio::time::timeout(Duration::ZERO, group.append(row("left"))).await;
        assert!(left.is_err());
        gate.add_permits(2);
        group.append(row("stays")).await
    };
    // The first batch is under way before the others come.
    let (sent, stays) = tokio::join!(sent, async {
        while script.batches().is_empty() {
            tokio::task::yield_now().await;
        }
        late.await
    });
    assert_eq!(
        (sent.unwrap(), stays.unwrap()),
        (Appended::Accepted, Appended::Accepted)
    );
    assert_eq!(script.batches(), [["sent"], ["stays"]]);
}

#[tokio::test]
async fn a_panic_fails_its_batch_and_nothing_after_it() {
    let group = Group::new(Script::of([Step::Panic]), limits());
    let found = group.append(row("a")).await;
    assert!(matches!(found, Err(LedgerError::Unavailable(_))), "{found:?}");
    assert_eq!(group.append(row("b")).await.unwrap(), Appended::Accepted);
    group.close().await;
}
