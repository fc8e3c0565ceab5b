//! Which history of the database is written now. A standby that takes over, and a restore to a point in time, begin
//! a new one, in which the latest commits of the old one may be missing.
//!
//! A witness says it: a connection of its own that does nothing but stand. While it stands, the server that named its
//! history is there; when it breaks, or the server falls silent, the history is in doubt until a connection
//! names one again. So nobody has to ask at each step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::fault::{Fault, Pauses};
use crate::sessions::{Sessions, Store};

/// How often the witness asks although nothing happened: a network that drops everything breaks no connection, a
/// pooler keeps ours when its own break, and a standby that takes over keeps those that came to look.
pub(crate) const WITNESS_INTERVAL: Duration = Duration::from_secs(1);

/// How long the server may be silent to the witness before the history is in doubt.
pub(crate) const WITNESS_TIMEOUT: Duration = Duration::from_secs(1);

/// The same while it is in doubt: nobody can rely on claims meanwhile.
pub(crate) const DOUBT_INTERVAL: Duration = Duration::from_millis(100);

/// What is known of the history that is written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Nothing: no server has named one since the last connection broke, or it is a standby, which writes none.
    Doubted,
    /// A Postgres timeline; 0 where the database has none or does not show it.
    Timeline(u32),
}

/// What the witness tells, and what it is told.
pub(crate) struct Histories {
    told: watch::Sender<History>,
    /// Something looked odd: ask again, at once.
    doubted: Notify,
    /// Other connections lead to another history: connect anew.
    moved: Notify,
}

impl Default for Histories {
    fn default() -> Self {
        Self {
            told: watch::Sender::new(History::Doubted),
            doubted: Notify::new(),
            moved: Notify::new(),
        }
    }
}

/// Why the witness should do something before its time.
pub(crate) enum Nudge {
    Doubted,
    Moved,
}

impl Histories {
    /// What is told from now on.
    pub(crate) fn subscribe(&self) -> watch::Receiver<History> {
        self.told.subscribe()
    }

    /// Tells it. Also that nothing is known any more.
    pub(crate) fn tell(&self, history: History) {
        self.told
            .send_if_modified(|told| std::mem::replace(told, history) != history);
    }

    /// What was told last.
    pub(crate) fn told(&self) -> History {
        *self.told.borrow()
    }

    /// A connection broke: nothing is known until the witness has asked.
    pub(crate) fn doubt(&self) {
        self.tell(History::Doubted);
        self.doubted.notify_one();
    }

    /// A connection that was just made saw this timeline. If that is another one than the witness saw, its connection
    /// leads to a server that is no longer the one.
    pub(crate) fn seen(&self, timeline: u32) {
        let told = self.told();
        if timeline != 0 && told != History::Doubted && told != History::Timeline(timeline) {
            self.tell(History::Doubted);
            self.moved.notify_one();
        }
    }

    /// Waits until the witness should not rest any longer.
    pub(crate) async fn nudged(&self) -> Nudge {
        tokio::select! {
            biased;
            () = self.moved.notified() => Nudge::Moved,
            () = self.doubted.notified() => Nudge::Doubted,
        }
    }
}

/// A store that may have several histories.
pub(crate) trait Chronicle {
    /// Where it is told which one is written; `None`: there is one for ever.
    fn histories(&self) -> Option<&Histories> {
        None
    }

    /// Stands as the witness and tells what it sees; returns when its connection is lost.
    fn witness(&self) -> impl Future<Output = Fault> + Send {
        std::future::pending()
    }
}

/// Keeps a witness standing.
#[derive(Default)]
pub(crate) struct Witness {
    started: AtomicBool,
    closed: watch::Sender<bool>,
}

impl Witness {
    /// What it tells; begins with the first who wants to know.
    pub(crate) fn watch<S: Store>(&self, sessions: &Arc<Sessions<S>>) -> watch::Receiver<History> {
        let Some(histories) = sessions.store().histories() else {
            return watch::Sender::new(History::Timeline(0)).subscribe();
        };
        if !self.started.swap(true, Ordering::Relaxed) {
            let (sessions, mut closed) = (Arc::clone(sessions), self.closed.subscribe());
            tokio::spawn(async move {
                tokio::select! {
                    () = stand_again_and_again(sessions.store()) => {}
                    _ = closed.wait_for(|closed| *closed) => {}
                }
            });
        }
        histories.subscribe()
    }

    /// Ends it.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }
}

async fn stand_again_and_again<S: Store>(store: &S) {
    let mut pauses = Pauses::new();
    loop {
        let fault = store.witness().await;
        let Some(histories) = store.histories() else {
            return;
        };
        if histories.told() != History::Doubted {
            pauses = Pauses::new();
        }
        histories.tell(History::Doubted);
        tracing::debug!(?fault, "the witness of the ledger's history lost its connection");
        tokio::time::sleep(pauses.next()).await;
    }
}
