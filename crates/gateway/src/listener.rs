//! Both listeners: connections, how many there may be, and how long one may keep us waiting.
//!
//! The server's own limits hold for the first request of a connection and for an idle one. In between lies a
//! gap: a client that was answered once may begin a second request and never end it. So each connection has
//! one more limit, from the first byte of a request to its answer, which no behaviour of a client escapes.

mod timed;

use std::future::ready;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_server::Server;
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::dev::{AppConfig, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, web};
use tokio::net::{TcpSocket, TcpStream};

use crate::admin::{self, Admin};
use crate::config::Config;
use crate::intake::{self, Intake};
pub(crate) use timed::{Deadline, Extension};
use timed::{Patience, Timed};

/// Connections that may wait to be accepted: a burst of a whole second at full speed.
const BACKLOG: u32 = 4_096;

/// How long a refused client may go on sending before its connection is dropped.
const LINGER: Duration = Duration::from_secs(1);

/// Open connections of the admin listener. Four times what may wait there for events, and half of the 1,024
/// files that a process may commonly open at least: whoever takes all of them leaves the public listener its
/// own. Further ones wait to be accepted.
const ADMIN_CONNECTIONS_MAX: usize = 512;

/// What sets a listener apart.
#[derive(Debug, Clone, Copy)]
struct Manner {
    name: &'static str,
    threads: usize,
    connections_max: usize,
    patience: Patience,
    request_timeout: Duration,
    keep_alive: Duration,
    /// Whether a client that has said its last word still gets its answer.
    half_closed: bool,
    shutdown_timeout: Duration,
}

/// Opens the public listener with its one route; also says where it is bound.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) fn open(config: &Config, intake: web::Data<Intake>) -> io::Result<(Server, SocketAddr)> {
    let manner = Manner {
        name: "public",
        threads: config.threads,
        connections_max: config.client.connections_max,
        patience: Patience::of_deliveries(config),
        half_closed: true,
        ..Manner::of(config)
    };
    serve(config.listen, manner, move || {
        App::new()
            .app_data(intake.clone())
            .route("/webhooks/{source}", web::route().to(intake::webhook))
            .default_service(web::route().to(intake::elsewhere))
    })
}

/// Opens the admin listener; also says where it is bound.
///
/// # Errors
/// If the address cannot be bound.
pub(crate) fn open_admin(config: &Config, admin: web::Data<Admin>) -> io::Result<(Server, SocketAddr)> {
    serve(config.admin_listen, Manner::of(config), move || {
        admin::application(admin.clone())
    })
}

impl Manner {
    /// That of the admin listener.
    fn of(config: &Config) -> Self {
        Self {
            name: "admin",
            threads: 1,
            connections_max: ADMIN_CONNECTIONS_MAX,
            patience: Patience::of_strangers(config),
            request_timeout: config.client.request_timeout,
            keep_alive: config.client.keep_alive,
            // A consumer that hangs up while it waits must not be given an event.
            half_closed: false,
            shutdown_timeout: config.shutdown_grace,
        }
    }
}

fn serve<T>(
    address: SocketAddr,
    manner: Manner,
    app: impl Fn() -> App<T> + Clone + Send + 'static,
) -> io::Result<(Server, SocketAddr)>
where
    T: ServiceFactory<
            ServiceRequest,
            Config = (),
            Response = ServiceResponse,
            Error = actix_web::Error,
            InitError = (),
        > + 'static,
{
    let listener = bind(address)?;
    let address = listener.local_addr()?;
    let builder = Server::build();
    let draining = builder.graceful_shutdown_signal();
    let factory = move || {
        let draining = draining.clone();
        let app = app()
            .into_factory()
            .map_err(|error: actix_web::Error| error.error_response());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let draining = draining.clone();
                async move { draining.notified().await }
            })
            .keep_alive(manner.keep_alive)
            .client_request_timeout(manner.request_timeout)
            .client_disconnect_timeout(LINGER)
            .h1_allow_half_closed(manner.half_closed)
            .local_addr(address)
            .on_connect_ext(|connection: &Timed<TcpStream>, data| {
                data.insert(connection.deadline());
            })
            .h1(map_config(app, |()| AppConfig::default()));
        fn_service(move |stream: TcpStream| {
            let peer = stream.peer_addr().ok();
            ready(Ok::<_, DispatchError>((
                Timed::new(stream, manner.patience),
                peer,
            )))
        })
        .and_then(http)
    };
    let server = builder
        .workers(manner.threads)
        .max_concurrent_connections(manner.connections_max)
        .shutdown_timeout(manner.shutdown_timeout.as_secs())
        .disable_signals()
        .listen(manner.name, listener, factory)?;
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
