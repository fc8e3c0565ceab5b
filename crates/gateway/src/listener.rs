//! The public listener: connections, and how long one may keep us waiting.
//!
//! The server's own limits hold for the first request of a connection and for an idle one. In between lies a
//! gap: a client that was answered once may begin a second request and never end it. So each connection has
//! one more limit, from the first byte of a request to its answer, which no behaviour of a client escapes.

use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::task::{Context, Poll, ready as ready_or_return};
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_server::Server;
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::dev::AppConfig;
use actix_web::{App, web};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::config::Config;
use crate::intake::{self, Intake};

/// Connections that may wait to be accepted: a burst of a whole second at full speed.
const BACKLOG: u32 = 4_096;

/// How long a refused client may go on sending before its connection is dropped.
const LINGER: Duration = Duration::from_secs(1);

/// Opens the public listener with its one route; also says where it is bound.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) fn open(config: &Config, intake: web::Data<Intake>) -> io::Result<(Server, SocketAddr)> {
    let listener = bind(config.listen)?;
    let address = listener.local_addr()?;
    let patience = Patience::of(config);
    let client = config.client;
    let builder = Server::build();
    let draining = builder.graceful_shutdown_signal();
    let factory = move || {
        let draining = draining.clone();
        let app = App::new()
            .app_data(intake.clone())
            .route("/webhooks/{source}", web::route().to(intake::webhook))
            .default_service(web::route().to(intake::elsewhere));
        let app = app
            .into_factory()
            .map_err(|error: actix_web::Error| error.error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let draining = draining.clone();
                async move { draining.notified().await }
            })
            .keep_alive(client.keep_alive)
            .client_request_timeout(client.request_timeout)
            .client_disconnect_timeout(LINGER)
            .local_addr(address)
            .h1(map_config(app, |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            ready(Ok::<_, DispatchError>((Timed::new(stream, patience), peer)))
        })
        .and_then(http)
    };
    let server = builder
        .workers(config.threads)
        .max_concurrent_connections(client.connections_max)
        .shutdown_timeout(config.shutdown_grace.as_secs())
        .disable_signals()
        .listen("public", listener, factory)?;
    Ok((server.run(), address))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// How long a connection may keep us waiting.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// From the first byte of a request to its answer.
    request: Duration,
    /// From an answer to the first byte of the next request and on to its end. The server itself closes idle
    /// connections sooner; this is for those that it does not take for idle.
    idle: Duration,
}

impl Patience {
    /// Whatever a well-behaved client can need: its head, its body, and the slowest way to an answer.
    fn of(config: &Config) -> Self {
        let handling = config.sources.iter().map(|source| source.handler_timeout).max();
        let answering = config.claim_wait + handling.unwrap_or_default() + 3 * config.ledger_timeout;
        let request = 2 * config.client.request_timeout + answering;
        Self {
            request,
            idle: config.client.keep_alive + request,
        }
    }
}

/// A connection that ends when its client has kept us waiting for too long.
struct Timed<S> {
    stream: S,
    patience: Patience,
    /// Whether a request has begun since the last answer.
    begun: bool,
    deadline: Instant,
    /// Never rings later than the deadline. One that rings early is set anew, so that a busy connection
    /// seldom touches the timer.
    alarm: Pin<Box<Sleep>>,
}

impl<S> Timed<S> {
    fn new(stream: S, patience: Patience) -> Self {
        let deadline = Instant::now() + patience.request;
        Self {
            stream,
            patience,
            begun: true,
            deadline,
            alarm: Box::pin(sleep_until(deadline)),
        }
    }

    fn heard(&mut self) {
        if !self.begun {
            self.begun = true;
            self.deadline = Instant::now() + self.patience.request;
        }
    }

    fn answered(&mut self) {
        self.begun = false;
        self.deadline = Instant::now() + self.patience.idle;
    }

    /// Pending until the deadline.
    fn keep_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if now >= self.deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            // A request that begins later ends later than this.
            let next = self.deadline.min(now + self.patience.request);
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
        let written = ready_or_return!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.answered();
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
