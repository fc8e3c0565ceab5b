//! Group commit: appends that wait at the same time share one commit, which is what a commit's wait for the
//! disk costs most.
//!
//! Nobody waits for company: whoever comes while a lane is free goes at once, with what is there; while all
//! lanes are busy a group gathers. A lane is a task that lives only while there is work, so an idle ledger has
//! none. Rows that were sent are not recalled when their caller stops waiting. One bad row fails alone: a
//! batch that fails through one of its rows is done again row by row.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::fault::{Fault, Pauses};
use crate::{Appended, LedgerError, Limits, NewEvent, Queue};

/// Bodies that may wait, counted in full batches: eight lie within what a database writes in a second.
const BATCHES_WAITING_MAX: usize = 8;

/// Timers are exact to a millisecond. Who has less time left than this is answered now, with the reason,
/// before its own limit strikes and knows none.
const TICK: Duration = Duration::from_millis(2);

/// One row to be appended.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) event: NewEvent,
    pub(crate) queue: Queue,
}

/// What a dialect does with a batch, and how many at once.
pub(crate) trait Commit: Send + Sync + 'static {
    /// Batches that may be committed at the same time.
    const LANES: usize;
    /// Rows of a failed batch that are tried at the same time, each alone.
    const ALONE: usize;

    /// Commits the rows, which are sorted by key, in one transaction, and says for each what it found. `None`:
    /// the row was refused as a copy, but its original is gone; repeat.
    fn commit(
        &self,
        rows: &[&Row],
        deadline: Instant,
    ) -> impl Future<Output = Result<Vec<Option<Appended>>, Fault>> + Send;
}

/// Appends, gathered into groups.
pub(crate) struct Group<C>(Arc<Gathering<C>>);

struct Gathering<C> {
    committer: C,
    limits: Limits,
    line: Mutex<Line>,
    lane_left: Notify,
}

/// Those who wait, and what is being done.
#[derive(Default)]
struct Line {
    waiters: VecDeque<Waiter>,
    bytes: usize,
    lanes: usize,
    closed: bool,
}

struct Waiter {
    row: Row,
    deadline: Instant,
    reply: oneshot::Sender<Result<Appended, LedgerError>>,
}

impl Waiter {
    fn bytes(&self) -> usize {
        self.row.event.body.len()
    }

    /// The caller may have stopped waiting; then nobody hears it.
    fn answer(self, outcome: Result<Appended, LedgerError>) {
        let _ = self.reply.send(outcome);
    }
}

impl<C: Commit> Group<C> {
    pub(crate) fn new(committer: C, limits: Limits) -> Self {
        Self(Arc::new(Gathering {
            committer,
            limits,
            line: Mutex::default(),
            lane_left: Notify::new(),
        }))
    }

    /// Appends one row, with whoever waits at the same time.
    pub(crate) async fn append(&self, row: Row) -> Result<Appended, LedgerError> {
        let deadline = Instant::now() + self.0.limits.append;
        let (reply, answer) = oneshot::channel();
        Gathering::join(&self.0, Waiter { row, deadline, reply })?;
        match timeout_at(deadline, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(LedgerError::Unavailable("the append was given up".into())),
            Err(_) => Err(LedgerError::Unavailable(
                "the append was not committed in time".into(),
            )),
        }
    }

    /// Takes no more rows and waits until those in hand have their answer, which the limits bound.
    pub(crate) async fn close(&self) {
        self.0.line().closed = true;
        loop {
            let mut left = std::pin::pin!(self.0.lane_left.notified());
            left.as_mut().enable();
            if self.0.line().lanes == 0 {
                return;
            }
            left.await;
        }
    }
}

impl<C: Commit> Gathering<C> {
    /// Stands in line, and opens a lane if one is free.
    fn join(self: &Arc<Self>, waiter: Waiter) -> Result<(), LedgerError> {
        let mut line = self.line();
        let bytes = line.bytes + waiter.bytes();
        if line.closed {
            return Err(LedgerError::Unavailable("the ledger is closed".into()));
        }
        if line.waiters.len() >= self.limits.waiters
            || (bytes > BATCHES_WAITING_MAX * self.limits.batch_bytes && !line.waiters.is_empty())
        {
            return Err(LedgerError::Unavailable("too many appends wait already".into()));
        }
        line.bytes = bytes;
        line.waiters.push_back(waiter);
        if line.lanes < C::LANES {
            line.lanes += 1;
            tokio::spawn(
                Lane {
                    gathering: Arc::clone(self),
                    left: false,
                }
                .run(),
            );
        }
        Ok(())
    }

    /// The next batch: whoever is there, within the bounds, but always at least one.
    fn next_batch(&self, line: &mut Line) -> Vec<Waiter> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(waiter) = line.waiters.front() {
            bytes += waiter.bytes();
            if !batch.is_empty() && (batch.len() >= self.limits.batch_rows || bytes > self.limits.batch_bytes)
            {
                break;
            }
            batch.extend(line.waiters.pop_front());
        }
        line.bytes -= batch.iter().map(Waiter::bytes).sum::<usize>();
        batch.retain(|waiter| !waiter.reply.is_closed());
        batch.sort_by(|a, b| a.row.event.key.cmp(&b.row.event.key));
        batch
    }

    /// Commits a batch, repeating what may pass, until all have their answer. What it returns has none yet:
    /// rows among which one is the cause of a failure, to be tried each alone.
    async fn commit(&self, mut batch: Vec<Waiter>) -> Vec<Waiter> {
        let mut pauses = Pauses::new();
        while let Some(deadline) = batch.iter().map(|waiter| waiter.deadline).max() {
            let rows: Vec<&Row> = batch.iter().map(|waiter| &waiter.row).collect();
            let fault = match self.committer.commit(&rows, deadline).await {
                Ok(found) => {
                    batch = answer(batch, found);
                    Fault::Conflict("the original of a copy is gone again and again".into())
                }
                Err(fault) if fault.is_of_one_row() && batch.len() > 1 => return batch,
                Err(fault) if !fault.passes() => {
                    give_up(batch, &fault);
                    return Vec::new();
                }
                Err(fault) => fault,
            };
            let resume = Instant::now() + pauses.next();
            let (late, rest) = batch
                .into_iter()
                .partition(|waiter| waiter.deadline <= resume + TICK);
            give_up(late, &fault);
            batch = rest;
            if !batch.is_empty() {
                tokio::time::sleep_until(resume).await;
                batch.retain(|waiter| !waiter.reply.is_closed());
            }
        }
        batch
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing panics while it holds the line, and a line is consistent between any two steps.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells each row what was found; those without an answer stay.
fn answer(batch: Vec<Waiter>, found: Vec<Option<Appended>>) -> Vec<Waiter> {
    let mut rest = Vec::new();
    for (waiter, appended) in batch.into_iter().zip(found) {
        match appended {
            Some(appended) => waiter.answer(Ok(appended)),
            None => rest.push(waiter),
        }
    }
    rest
}

fn give_up(batch: Vec<Waiter>, fault: &Fault) {
    for waiter in batch {
        waiter.answer(Err(fault.clone().into()));
    }
}

/// A task that commits batches while there are any. Counted in the line, and taken off it also by a panic.
struct Lane<C: Commit> {
    gathering: Arc<Gathering<C>>,
    left: bool,
}

impl<C: Commit> Lane<C> {
    async fn run(mut self) {
        while let Some(batch) = self.next() {
            let suspects = self.gathering.commit(batch).await;
            let gathering = &self.gathering;
            stream::iter(suspects)
                .for_each_concurrent(C::ALONE, |row| async move {
                    gathering.commit(vec![row]).await;
                })
                .await;
        }
    }

    /// The next batch, or the end of this lane: decided under one lock, so that nobody is left standing.
    fn next(&mut self) -> Option<Vec<Waiter>> {
        let mut line = self.gathering.line();
        if line.waiters.is_empty() {
            line.lanes -= 1;
            self.left = true;
            return None;
        }
        Some(self.gathering.next_batch(&mut line))
    }
}

impl<C: Commit> Drop for Lane<C> {
    fn drop(&mut self) {
        if !self.left {
            self.gathering.line().lanes -= 1;
        }
        self.gathering.lane_left.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
