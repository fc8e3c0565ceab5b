//! A connection that ends when its client has kept us waiting for too long.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::config::Config;

/// How long a connection may keep us waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// From the first byte of a request to its answer.
    request: Duration,
    /// From an answer to the first byte of the next request and on to its end. The server itself closes idle
    /// connections sooner; this is for those that it does not take for idle.
    idle: Duration,
}

impl Patience {
    /// Whatever a well-behaved provider can need: its head, its body, and the slowest way to an answer.
    pub(super) fn of_deliveries(config: &Config) -> Self {
        let handling = config.sources.iter().map(|source| source.handler_timeout).max();
        let answering = config.claim_wait + handling.unwrap_or_default() + 3 * config.ledger_timeout;
        Self::new(config, 2 * config.client.request_timeout + answering)
    }

    /// What a client of the admin listener may take before it has shown a token: its head and its body. Whoever
    /// has shown one may be given more by [`Deadline::extend`].
    pub(super) fn of_strangers(config: &Config) -> Self {
        Self::new(config, 2 * config.client.request_timeout)
    }

    fn new(config: &Config, request: Duration) -> Self {
        Self {
            request,
            idle: config.client.keep_alive + request,
        }
    }
}

/// When a connection ends unless its client is answered before. A handler finds it among the connection's data.
#[derive(Debug, Clone)]
pub(crate) struct Deadline(Rc<Moments>);

#[derive(Debug)]
struct Moments {
    /// By what the client does.
    deadline: Cell<Instant>,
    /// By what is being done for it, if that is later.
    granted: Cell<Option<Instant>>,
    /// For an answer that is ready, to be sent.
    sending: Duration,
}

impl Deadline {
    fn new(deadline: Instant, sending: Duration) -> Self {
        Self(Rc::new(Moments {
            deadline: Cell::new(deadline),
            granted: Cell::new(None),
            sending,
        }))
    }

    fn get(&self) -> Instant {
        let deadline = self.0.deadline.get();
        self.0
            .granted
            .get()
            .map_or(deadline, |granted| granted.max(deadline))
    }

    fn set(&self, from_now: Duration) {
        self.0.deadline.set(Instant::now() + from_now);
    }

    /// Gives the request in hand so much time from now, whatever is heard or said meanwhile: a request to
    /// continue is an answer too.
    pub(crate) fn extend(&self, by: Duration) -> Extension {
        self.0.granted.set(Some(Instant::now() + by));
        Extension(self.clone())
    }
}

/// More time for a request, until this is dropped.
#[derive(Debug)]
pub(crate) struct Extension(Deadline);

impl Drop for Extension {
    fn drop(&mut self) {
        let Self(deadline) = self;
        deadline.0.granted.set(None);
        deadline.set(deadline.0.sending);
    }
}

/// A connection that ends when its client has kept us waiting for too long.
pub(super) struct Timed<S> {
    stream: S,
    patience: Patience,
    /// Whether a request has begun since the last answer.
    begun: bool,
    deadline: Deadline,
    /// Never rings later than the deadline. One that rings early is set anew, so that a busy connection
    /// seldom touches the timer.
    alarm: Pin<Box<Sleep>>,
}

impl<S> Timed<S> {
    /// A fresh connection, on which a request is awaited.
    pub(super) fn new(stream: S, patience: Patience) -> Self {
        let deadline = Instant::now() + patience.request;
        Self {
            stream,
            patience,
            begun: true,
            deadline: Deadline::new(deadline, patience.request),
            alarm: Box::pin(sleep_until(deadline)),
        }
    }

    /// The deadline, for whoever knows that more time is needed.
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline.clone()
    }

    fn heard(&mut self) {
        if !self.begun {
            self.begun = true;
            self.deadline.set(self.patience.request);
        }
    }

    fn answered(&mut self) {
        self.begun = false;
        self.deadline.set(self.patience.idle);
    }

    /// Pending until the deadline.
    fn keep_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let deadline = self.deadline.get();
            if now >= deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // A request that begins later ends later than this.
            let next = deadline.min(now + self.patience.request);
            self.alarm.as_mut().reset(next);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(result) => {
                if buffer.filled().len() > before {
                    self.heard();
                }
                Poll::Ready(result)
            }
            Poll::Pending => self.keep_waiting(cx),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Ready(written) => {
                self.answered();
                Poll::Ready(written)
            }
            // A client that does not read its answer keeps us waiting too.
            Poll::Pending => self.keep_waiting(cx).map(|late| late.map(|()| 0)),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
