//! Settlements that wait at the same time share one commit, as appends do: what a commit costs most is its wait for
//! the disk, and a worker that delivers a thousand events a second settles a thousand.
//!
//! Nobody waits for company: whoever comes while a lane is free goes at once. Each settlement stands for itself: if
//! one of a batch is refused or held up, the others are written without it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::run::{Ending, Run};
use crate::sessions::Sessions;
use crate::sql::Dialect;
use crate::{Effects, Lease, LedgerError, Outcome, Settled};

/// Settlements of one commit. A row of one is locked until all are written, so few.
const BATCH_MAX: usize = 32;

/// One run and how it ended.
pub(crate) struct Settlement {
    pub(crate) lease: Lease,
    pub(crate) outcome: Outcome,
    pub(crate) effects: Effects,
}

impl Settlement {
    fn run(&self) -> Run<'_> {
        Run {
            lease: &self.lease,
            ending: Ending::of(&self.outcome),
            effects: &self.effects.outbox,
        }
    }
}

/// Settles, in company where there is some.
pub(crate) struct Settling<D: Dialect>(Arc<Gathering<D>>);

struct Gathering<D: Dialect> {
    writers: Arc<Sessions<D>>,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    waiters: VecDeque<Waiter>,
    lanes: usize,
}

struct Waiter {
    settlement: Settlement,
    reply: oneshot::Sender<Result<Settled, LedgerError>>,
}

impl<D: Dialect> Settling<D> {
    pub(crate) fn new(writers: Arc<Sessions<D>>) -> Self {
        Self(Arc::new(Gathering {
            writers,
            line: Mutex::default(),
        }))
    }

    /// Settles one run. It is settled also if the caller stops waiting.
    pub(crate) async fn settle(&self, settlement: Settlement) -> Result<Settled, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.0.join(Waiter { settlement, reply });
        answer
            .await
            .unwrap_or_else(|_| Err(LedgerError::Unavailable("the settlement was given up".into())))
    }
}

impl<D: Dialect> Gathering<D> {
    /// Stands in line, and opens a lane if one is free.
    fn join(self: &Arc<Self>, waiter: Waiter) {
        let mut line = self.line();
        line.waiters.push_back(waiter);
        if line.lanes < D::LANES {
            line.lanes += 1;
            tokio::spawn(
                Lane {
                    gathering: Arc::clone(self),
                    left: false,
                }
                .run(),
            );
        }
    }

    async fn settle(&self, batch: Vec<Waiter>) {
        let runs: Vec<Run<'_>> = batch.iter().map(|waiter| waiter.settlement.run()).collect();
        let settled = self
            .writers
            .run(&runs.as_slice(), |conn, runs| D::settle_all(conn, runs))
            .await;
        drop(runs);
        match settled {
            Ok(settled) => {
                for (waiter, settled) in batch.into_iter().zip(settled) {
                    waiter.answer(Ok(settled));
                }
            }
            Err(LedgerError::Refused(_) | LedgerError::Locked(_)) if batch.len() > 1 => {
                self.settle_each(batch).await;
            }
            // Nobody knows the outcome: all hear it, and may ask again.
            Err(error) => {
                for waiter in batch {
                    waiter.answer(Err(error.clone()));
                }
            }
        }
    }

    /// One of them is the cause of a failure: each alone.
    async fn settle_each(&self, batch: Vec<Waiter>) {
        for waiter in batch {
            let settled = self
                .writers
                .run(&waiter.settlement.run(), |conn, run| D::settle(conn, run))
                .await;
            waiter.answer(settled);
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing panics while it holds the line, and a line is consistent between any two steps.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// The caller may have stopped waiting; then nobody hears it.
    fn answer(self, settled: Result<Settled, LedgerError>) {
        let _ = self.reply.send(settled);
    }
}

/// A task that settles batches while there are any. Counted in the line, and taken off it also by a panic.
struct Lane<D: Dialect> {
    gathering: Arc<Gathering<D>>,
    left: bool,
}

impl<D: Dialect> Lane<D> {
    async fn run(mut self) {
        while let Some(batch) = self.next() {
            self.gathering.settle(batch).await;
        }
    }

    /// The next batch, in the order of keys, so that two lanes lock rows in one order; or the end of this lane,
    /// decided under one lock, so that nobody is left standing.
    fn next(&mut self) -> Option<Vec<Waiter>> {
        let mut line = self.gathering.line();
        if line.waiters.is_empty() {
            line.lanes -= 1;
            self.left = true;
            return None;
        }
        let count = line.waiters.len().min(BATCH_MAX);
        let mut batch: Vec<Waiter> = line.waiters.drain(..count).collect();
        batch.sort_by(|a, b| a.settlement.lease.key.cmp(&b.settlement.lease.key));
        Some(batch)
    }
}

impl<D: Dialect> Drop for Lane<D> {
    fn drop(&mut self) {
        if !self.left {
            self.gathering.line().lanes -= 1;
        }
    }
}
