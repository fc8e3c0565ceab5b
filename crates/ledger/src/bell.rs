//! News of events that wait, so that a worker need not find out by looking.
//!
//! Whoever appends rings after the commit. Workers of the same process hear it at once; where the database can
//! pass it on, a task with a connection of its own tells the other processes, and another one listens. However
//! many batches are committed meanwhile, one message is on its way at a time: a message says "look", not what
//! there is. News may be lost, by a connection that breaks or a pooler that does not pass them on; workers also
//! look by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::fault::Fault;
use crate::sessions::{Opened, Sessions, Store};

/// Pause between two messages. Hundreds a second are as good as thousands to those who hear them, and cost the
/// database less.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(2);

/// Longest wait for the database to take one message, or to open the connection for it.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause before a connection that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A bell that rings in this process, and in others if the store can pass it on.
pub(crate) struct Bell<S: Herald> {
    store: Arc<Sessions<S>>,
    heard: watch::Sender<u64>,
    to_tell: Notify,
    telling: AtomicBool,
    listening: AtomicBool,
    closed: watch::Sender<bool>,
}

/// A store that may pass news on between processes.
pub(crate) trait Herald: Store {
    /// Whether it does. Others are used by one process.
    const SHARED: bool;

    /// Tells the others, by one statement that needs no session of its own.
    fn tell(conn: &mut Self::Connection) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Calls `heard` for everything that others tell, beginning with a call when it can hear; returns when it no
    /// longer can.
    fn hear(&self, heard: impl Fn() + Send) -> impl Future<Output = Fault> + Send;
}

impl<S: Herald> Bell<S> {
    pub(crate) fn new(store: Arc<Sessions<S>>) -> Arc<Self> {
        Arc::new(Self {
            store,
            heard: watch::Sender::new(0),
            to_tell: Notify::new(),
            telling: AtomicBool::new(false),
            listening: AtomicBool::new(false),
            closed: watch::Sender::new(false),
        })
    }

    /// Rings. Costs the caller next to nothing.
    pub(crate) fn ring(self: &Arc<Self>) {
        self.hear();
        if !S::SHARED {
            return;
        }
        self.to_tell.notify_one();
        if !self.telling.swap(true, Ordering::Relaxed) {
            let bell = Arc::clone(self);
            self.until_closed(async move { bell.tell_others().await });
        }
    }

    /// From now on hears the bell, also when others ring.
    pub(crate) fn listen(self: &Arc<Self>) -> watch::Receiver<u64> {
        if S::SHARED && !self.listening.swap(true, Ordering::Relaxed) {
            let bell = Arc::clone(self);
            self.until_closed(async move { bell.hear_others().await });
        }
        self.heard.subscribe()
    }

    /// Ends the tasks.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    fn hear(&self) {
        self.heard.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn until_closed(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut closed = self.closed.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                () = task => {}
                _ = closed.wait_for(|closed| *closed) => {}
            }
        });
    }

    /// One connection, kept; one message at a time.
    async fn tell_others(&self) {
        loop {
            let opened = timeout(MESSAGE_TIMEOUT, self.store.store().open()).await;
            let Ok(Ok(Opened {
                connection: mut conn, ..
            })) = opened
            else {
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            };
            loop {
                self.to_tell.notified().await;
                if !matches!(timeout(MESSAGE_TIMEOUT, S::tell(&mut conn)).await, Ok(Ok(()))) {
                    break;
                }
                tokio::time::sleep(MESSAGE_INTERVAL).await;
            }
            // What was to be told is told by the next connection.
            self.to_tell.notify_one();
        }
    }

    async fn hear_others(&self) {
        loop {
            let fault = self.store.store().hear(|| self.hear()).await;
            tracing::debug!(?fault, "news of events are not heard; looking at intervals");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}
