//! A few multiplexed connections that all commands share.
//!
//! Concurrent commands travel one behind the other on the same connections; nobody waits to have one alone.
//! Each command has one limit over everything: finding a connection, making one, the answer. A connection
//! that broke, fell silent or turned out read-only is left behind with what is still on it, and the next
//! command resolves the name anew. Nothing is queued here to be sent later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::Pipeline;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{Answer, Failure};
use super::connection::{Link, Source};
use super::scripts::Call;
use super::settings::{BadRedisUrl, RedisSettings};

/// Longest time to make a connection, in the background: names, Sentinels, TLS and log-in together may take
/// longer than a command may, and giving up each time at the command's limit might never get there.
const CONNECTING_MAX: Duration = Duration::from_secs(2);

/// The shared connections.
pub(super) struct Lanes {
    lanes: Box<[Arc<Lane>]>,
    next: AtomicUsize,
    limit: Duration,
    closed: AtomicBool,
}

impl Lanes {
    pub(super) fn new(settings: RedisSettings) -> Result<Self, BadRedisUrl> {
        let count = settings.connections.max(1);
        let limit = settings.timeout;
        let source = Arc::new(settings.into_source()?);
        let lanes = (0..count)
            .map(|_| Arc::new(Lane::new(Arc::clone(&source))))
            .collect();
        Ok(Self {
            lanes,
            next: AtomicUsize::new(0),
            limit,
            closed: AtomicBool::new(false),
        })
    }

    /// Sends all commands in one write, within the limit. A connection found dropped is replaced and the
    /// commands are sent once more: an idle one that the server closed must not cost a claim.
    pub(super) async fn send(&self, commands: &Pipeline) -> Result<Answer, Failure> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Failure::Unsent("the claim store was closed".into()));
        }
        let deadline = Instant::now() + self.limit;
        let lane = &self.lanes[self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len()];
        match lane.send(commands, deadline, self.limit).await {
            Err(Failure::Unanswered { dropped: true, .. }) => {
                let again = lane.send(commands, deadline, self.limit).await;
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

    /// Runs a script, giving the server its text if it does not know it.
    pub(super) async fn run(&self, call: Call) -> Result<Answer, Failure> {
        let by_hash = self.send(&call.by_hash()).await?;
        if !by_hash.lacks_script() {
            return Ok(by_hash);
        }
        let by_text = self.send(&call.by_text()).await?;
        Ok(Answer {
            resent: by_hash.resent || by_text.resent,
            ..by_text
        })
    }

    /// Lets all connections end and makes no more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
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
}

impl Lane {
    fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            link: ArcSwapOption::empty(),
            connecting: Arc::new(Mutex::new(())),
            runtime: Handle::try_current().ok(),
        }
    }

    async fn send(
        self: &Arc<Self>,
        commands: &Pipeline,
        deadline: Instant,
        limit: Duration,
    ) -> Result<Answer, Failure> {
        let connected = timeout_at(deadline, self.link()).await;
        let link =
            connected.unwrap_or_else(|_| Err(Failure::Unsent(format!("no connection within {limit:?}"))))?;
        let failure = match timeout_at(deadline, link.send(commands)).await {
            Ok(Ok(replies)) => {
                let answer = Answer {
                    replies,
                    resent: false,
                };
                if answer.is_read_only() {
                    self.leave(&link);
                }
                return Ok(answer);
            }
            Ok(Err(error)) => Failure::of_sent(&error, limit),
            Err(_) => Failure::silence(limit),
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
        let late = |_| Err(format!("no connection within {CONNECTING_MAX:?}"));
        let connected = timeout(CONNECTING_MAX, self.source.connect())
            .await
            .unwrap_or_else(late);
        let link = Arc::new(connected.map_err(Failure::Unsent)?);
        self.link.store(Some(Arc::clone(&link)));
        Ok(link)
    }

    /// Stops using this very connection; one made since by somebody else stays.
    fn leave(&self, link: &Arc<Link>) {
        self.link.compare_and_swap(link, None);
    }
}
