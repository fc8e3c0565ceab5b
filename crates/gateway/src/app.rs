//! The wiring: every route on one screen, which loop runs in which role, and the order of shutdown.

use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::{App as ActixApp, HttpServer, web};
use tokio_util::sync::CancellationToken;

use crate::admin::{self, Admin};
use crate::assembly::{self, Assembly};
use crate::config::{Config, Wrong};
use crate::intake::Intake;
use crate::listener;
use crate::receiver::Receiver;
use crate::stores::Unusable;
use crate::target::BadTarget;
use crate::worker::Worker;

/// Time kept back from the shutdown grace for releasing what a call that had to be cut short still holds.
const RELEASE_MARGIN: Duration = Duration::from_secs(2);

/// Which loops a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// The public listener.
    pub receive: bool,
    /// The worker.
    pub work: bool,
}

/// Why a process could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] Wrong),
    /// A secret of a source.
    #[error("source {source_name}: {problem}")]
    Secret {
        /// Which source.
        source_name: String,
        /// What is wrong and what is accepted.
        problem: hookgate_signature::BadSecret,
    },
    /// A target.
    #[error(transparent)]
    Target(#[from] BadTarget),
    /// A store.
    #[error(transparent)]
    Store(#[from] Unusable),
    /// A listener.
    #[error("cannot listen on {address}: {problem}; is another process using the port?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        problem: std::io::Error,
    },
    /// The metrics.
    #[error("the metrics cannot be registered: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl StartError {
    /// 64 where the operator has to change a setting, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Secret { .. } | Self::Target(_) | Self::Store(_) => 64,
            Self::Listen { .. } | Self::Metrics(_) => 1,
        }
    }
}

/// A process that is ready to run.
pub struct App {
    admin: web::Data<Admin>,
    intake: web::Data<Intake>,
    admin_server: Server,
    public_server: Option<Server>,
    admin_address: SocketAddr,
    public_address: Option<SocketAddr>,
    worker: Option<Worker>,
    receiver: Arc<Receiver>,
    claim_epoch: u32,
    grace: Duration,
    stop: CancellationToken,
    hurry: CancellationToken,
}

impl App {
    /// Opens stores and listeners and brings the schema up to date. Nothing is served before [`Self::run`].
    ///
    /// # Errors
    /// [`StartError`] with one sentence for the operator.
    pub async fn build(config: &Config, roles: Roles) -> Result<Self, StartError> {
        let Assembly {
            receiver,
            sources,
            worker,
            stop,
            hurry,
        } = assembly::assemble(config, roles.work)?;
        let stores = receiver.stores.clone();
        if let Some(ledger) = &stores.ledger {
            ledger.start(config.migrate).await.map_err(Unusable::from)?;
        }
        let metrics = Arc::clone(&receiver.metrics);
        let admin = web::Data::new(Admin {
            stores,
            metrics,
            ready: AtomicBool::new(false),
        });
        let intake = web::Data::new(Intake {
            receiver: Arc::clone(&receiver),
            sources,
            body_timeout: config.client.request_timeout,
            draining: AtomicBool::new(false),
        });
        let (admin_server, admin_address) = admin_server(config, admin.clone())?;
        let public = roles
            .receive
            .then(|| public_server(config, intake.clone()))
            .transpose()?;
        let (public_server, public_address) = public.unzip();
        Ok(Self {
            admin,
            intake,
            admin_server,
            public_server,
            admin_address,
            public_address,
            worker,
            receiver,
            claim_epoch: config.claim_epoch,
            grace: config.shutdown_grace,
            stop,
            hurry,
        })
    }

    /// Where the public listener is bound, if this role has one.
    pub fn public_address(&self) -> Option<SocketAddr> {
        self.public_address
    }

    /// Where probes and metrics are bound.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Serves until `shutdown`, then drains: not ready, stop accepting, finish what is in hand, return
    /// claims and leases, close the stores. True if everything was finished within the grace.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> bool {
        let (stores, tasks) = (self.receiver.stores.clone(), self.receiver.tasks.clone());
        tasks.spawn({
            let (stores, stop) = (stores.clone(), self.stop.clone());
            async move { stores.watch(self.claim_epoch, stop).await }
        });
        if let Some(worker) = self.worker {
            let stop = self.stop.clone();
            tasks.spawn(async move { worker.run(stop).await });
        }
        let admin_handle = self.admin_server.handle();
        let public_handle = self.public_server.as_ref().map(Server::handle);
        let servers = [Some(self.admin_server), self.public_server];
        let servers: Vec<_> = servers.into_iter().flatten().map(tokio::spawn).collect();
        self.admin.ready.store(true, Ordering::Release);

        shutdown.await;
        tracing::info!("shutting down: finishing what is in hand");
        self.admin.ready.store(false, Ordering::Release);
        self.intake.draining.store(true, Ordering::Relaxed);
        self.stop.cancel();
        let drain = async {
            stop_accepting(public_handle).await;
            tasks.close();
            tasks.wait().await;
        };
        tokio::pin!(drain);
        let calm = self.grace.saturating_sub(RELEASE_MARGIN.min(self.grace / 2));
        if tokio::time::timeout(calm, &mut drain).await.is_err() {
            tracing::warn!("the grace is nearly over: releasing what is not finished");
            self.hurry.cancel();
            let _ = tokio::time::timeout(self.grace - calm, &mut drain).await;
        }
        // A client that keeps its connection open leaves nothing unfinished.
        let finished = tasks.is_empty();
        admin_handle.stop(false).await;
        stores.close().await;
        servers.iter().for_each(tokio::task::JoinHandle::abort);
        tracing::info!(finished, "stopped");
        finished
    }
}

async fn stop_accepting(public: Option<ServerHandle>) {
    if let Some(public) = public {
        public.stop(true).await;
    }
}

fn public_server(config: &Config, intake: web::Data<Intake>) -> Result<(Server, SocketAddr), StartError> {
    listener::open(config, intake).map_err(|problem| StartError::Listen {
        address: config.listen,
        problem,
    })
}

fn admin_server(config: &Config, admin: web::Data<Admin>) -> Result<(Server, SocketAddr), StartError> {
    let server = HttpServer::new(move || ActixApp::new().app_data(admin.clone()).configure(admin::routes))
        .workers(1)
        .disable_signals()
        .bind(config.admin_listen)
        .map_err(|problem| StartError::Listen {
            address: config.admin_listen,
            problem,
        })?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

/// The endpoints by the last segment of their path.
pub type Sources = HashMap<String, Arc<crate::receiver::Source>>;
