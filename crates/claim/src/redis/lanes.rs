//! A few multiplexed connections to one place that all commands share.
//!
//! Concurrent commands travel one behind the other on the same connections; nobody waits to have one alone.
//! Each command has one limit over everything: finding a connection, making one, the answer. A connection
//! that broke, fell silent or turned out read-only is left behind with what is still on it, and the next
//! command resolves the name anew. Nothing is queued here to be sent later.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::Pipeline;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{Answer, Failure};
use super::connection::{Link, Source};

/// Longest time to make a connection, in the background: names, Sentinels, TLS and log-in together may take
/// longer than a command may, and giving up each time at the command's limit might never get there.
const CONNECTING_MAX: Duration = Duration::from_secs(2);

/// When a command has to be answered, and how long it was given for that.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self {
            at: Instant::now() + limit,
            limit,
        }
    }

    /// Waits for an answer, but not longer.
    pub(super) async fn bound<T>(self, answer: impl Future<Output = T>) -> Result<T, Elapsed> {
        timeout_at(self.at, answer).await
    }

    /// There was no time left to find a connection.
    pub(super) fn unsent(self) -> Failure {
        Failure::Unsent(format!("no connection within {:?}", self.limit))
    }
}

/// The shared connections.
pub(super) struct Lanes {
    lanes: Box<[Arc<Lane>]>,
    next: AtomicUsize,
    closed: Arc<AtomicBool>,
}

impl Lanes {
    pub(super) fn new(source: Source, connections: usize) -> Self {
        let (source, closed) = (Arc::new(source), Arc::default());
        let lane = || Arc::new(Lane::new(Arc::clone(&source), Arc::clone(&closed)));
        Self {
            lanes: (0..connections.max(1)).map(|_| lane()).collect(),
            next: AtomicUsize::new(0),
            closed,
        }
    }

    /// Sends all commands in one write, within the limit. A connection found dropped is replaced and the
    /// commands are sent once more: an idle one that the server closed must not cost a claim.
    pub(super) async fn send(&self, commands: &Pipeline, deadline: Deadline) -> Result<Answer, Failure> {
        let lane = &self.lanes[self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len()];
        match lane.send(commands, deadline).await {
            Err(Failure::Unanswered { dropped: true, .. }) => {
                let again = lane.send(commands, deadline).await;
                again
                    .map(|answer| Answer {
                        resent: true,
                        ..answer
                    })
                    .map_err(Failure::after_another)
            }
            outcome => outcome,
        }
    }

    /// Lets all connections end and makes no more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for lane in &self.lanes {
            lane.link.store(None);
        }
    }
}

/// One connection and its successors.
struct Lane {
    source: Arc<Source>,
    link: ArcSwapOption<Link>,
    /// Held while connecting, so that a crowd of commands makes one connection and not a crowd of them.
    connecting: Arc<Mutex<()>>,
    /// Where connections live, if known: not on the worker thread that happens to need one first.
    runtime: Option<Handle>,
    /// Shared by all lanes to one place.
    closed: Arc<AtomicBool>,
}

impl Lane {
    fn new(source: Arc<Source>, closed: Arc<AtomicBool>) -> Self {
        Self {
            source,
            closed,
            link: ArcSwapOption::empty(),
            connecting: Arc::new(Mutex::new(())),
            runtime: Handle::try_current().ok(),
        }
    }

    async fn send(self: &Arc<Self>, commands: &Pipeline, deadline: Deadline) -> Result<Answer, Failure> {
        let connected = deadline.bound(self.link()).await;
        let link = connected.unwrap_or_else(|_| Err(deadline.unsent()))?;
        let failure = match deadline.bound(link.send(commands)).await {
            Ok(Ok(replies)) => {
                let answer = Answer::new(replies);
                if answer.is_of_no_primary() {
                    self.leave(&link);
                }
                return Ok(answer);
            }
            Ok(Err(error)) => Failure::of_sent(&error, deadline.limit),
            Err(_) => Failure::silence(deadline.limit),
        };
        self.leave(&link);
        Err(failure)
    }

    async fn link(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        if let Some(link) = self.link.load_full() {
            return Ok(link);
        }
        let turn = Arc::clone(&self.connecting).lock_owned().await;
        if let Some(link) = self.link.load_full() {
            return Ok(link);
        }
        let lane = Arc::clone(self);
        let runtime = self.runtime.clone().unwrap_or_else(Handle::current);
        let connecting = runtime.spawn(async move {
            let _turn = turn;
            lane.connect().await
        });
        connecting
            .await
            .unwrap_or_else(|_| Err(Failure::Unsent("connecting was aborted".into())))
    }

    /// Goes on although the command that asked for it has given up: the next one finds it done.
    async fn connect(&self) -> Result<Arc<Link>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        let late = |_| Err(format!("no connection within {CONNECTING_MAX:?}"));
        let connected = timeout(CONNECTING_MAX, self.source.connect())
            .await
            .unwrap_or_else(late);
        let link = Arc::new(connected.map_err(Failure::Unsent)?);
        self.link.store(Some(Arc::clone(&link)));
        // Closed meanwhile: whoever closed may have looked before there was anything to end.
        if self.closed.load(Ordering::Acquire) {
            self.leave(&link);
            return Err(closed());
        }
        Ok(link)
    }

    /// Stops using this very connection; one made since by somebody else stays.
    fn leave(&self, link: &Arc<Link>) {
        self.link.compare_and_swap(link, None);
    }
}

/// The store was closed; nothing is sent any more.
pub(super) fn closed() -> Failure {
    Failure::Unsent("the claim store was closed".into())
}
