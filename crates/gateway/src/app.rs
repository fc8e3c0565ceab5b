//! The wiring: every route on one screen, which loop runs in which role, and the order of shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::dev::{Server, ServerHandle};
use actix_web::web;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::assembly::{self, Assembly, Ends, Sources};
use crate::clock::Clock;
use crate::config::{self, Advice, Config, Weight, Wrong};
use crate::intake::Intake;
use crate::keepers::Keepers;
use crate::listener;
use crate::receiver::Receiver;
use crate::rotation::Rotation;
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
    /// The worker, and alerts about what dies.
    pub work: bool,
    /// Retention.
    pub sweep: bool,
}

impl Roles {
    /// Everything.
    pub const ALL: Self = Self {
        receive: true,
        work: true,
        sweep: true,
    };
    /// The public listener alone.
    pub const RECEIVE: Self = Self {
        work: false,
        sweep: false,
        ..Self::ALL
    };
    /// The worker alone.
    pub const WORK: Self = Self {
        receive: false,
        sweep: false,
        ..Self::ALL
    };
    /// Retention alone.
    pub const SWEEP: Self = Self {
        receive: false,
        work: false,
        ..Self::ALL
    };
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
    /// The client that fetches certificates.
    #[error("no TLS client can be built: {0}")]
    Client(#[source] reqwest::Error),
    /// The metrics.
    #[error("the metrics cannot be registered: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl StartError {
    /// 64 where the operator has to change a setting, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Secret { .. } | Self::Target(_) | Self::Store(_) => 64,
            Self::Listen { .. } | Self::Client(_) | Self::Metrics(_) => 1,
        }
    }
}

/// What a process is given from outside while it runs, besides the word to end.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// Judges the age of signatures; by default the system's.
    pub clock: Clock,
    /// Told when secrets are to be read again.
    pub reread: Arc<Notify>,
}

/// A process that is ready to run.
pub struct App {
    admin: web::Data<Admin>,
    admin_server: ServerHandle,
    admin_address: SocketAddr,
    public: Option<Public>,
    worker: Option<Arc<Worker>>,
    keepers: Keepers,
    receiver: Arc<Receiver>,
    grace: Duration,
    ends: Ends,
}

/// The public listener, bound and not yet served.
struct Public {
    intake: web::Data<Intake>,
    server: Server,
    address: SocketAddr,
}

impl App {
    /// Opens stores and listeners and brings the schema up to date; probes are answered meanwhile, with "not
    /// ready". Nothing else is served before [`Self::run`]. `None` if `shutdown` came first.
    ///
    /// # Errors
    /// [`StartError`] with one sentence for the operator.
    pub async fn build(
        config: &Config,
        roles: Roles,
        outside: Outside,
        shutdown: &CancellationToken,
    ) -> Result<Option<Self>, StartError> {
        let Assembly {
            receiver,
            sources,
            worker,
            deaths,
            ends,
        } = assembly::assemble(config, roles.work, outside.clock)?;
        let warned = config::advice(config)
            .into_iter()
            .filter(|advice| advice.weight == Weight::Warning);
        receiver
            .metrics
            .warnings
            .set(i64::try_from(warned.count()).unwrap_or(i64::MAX));
        let admin = web::Data::new(Admin::new(config, &receiver, &deaths, &ends.stop));
        // Who verifies nothing needs no other secrets.
        let rotation = Rotation::new(
            sources.values().filter(|_| roles.receive),
            config.secret_poll,
            outside.reread,
            Arc::clone(&receiver.metrics),
        );
        let keepers =
            Keepers::new(config, roles, &receiver.stores, &receiver.metrics, deaths)?.with(rotation);
        let (admin_server, admin_address) = admin_server(config, admin.clone())?;
        if let Some(ledger) = &receiver.stores.ledger {
            match shutdown.run_until_cancelled(ledger.start(config.migrate)).await {
                Some(started) => started.map_err(Unusable::from)?,
                None => return Ok(None),
            }
        }
        receiver.stores.history_named().await;
        let public = roles
            .receive
            .then(|| Public::open(config, &receiver, sources))
            .transpose()?;
        let grace = config.shutdown_grace;
        Ok(Some(Self {
            admin,
            admin_server,
            admin_address,
            public,
            worker,
            keepers,
            receiver,
            grace,
            ends,
        }))
    }

    /// Where the public listener is bound, if this role has one.
    pub fn public_address(&self) -> Option<SocketAddr> {
        self.public.as_ref().map(|public| public.address)
    }

    /// Where probes and metrics are bound.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Serves until `shutdown`, or until a loop ends that should not, then drains: not ready, stop accepting,
    /// finish what is in hand, return claims and leases, close the stores. True if it was asked to stop and
    /// everything was finished within the grace.
    pub async fn run(mut self, shutdown: &CancellationToken) -> bool {
        let mut loops = self.loops();
        let public = self.public.take().map(Public::serve);
        self.admin.ready.store(true, Ordering::Release);
        let asked = tokio::select! {
            () = shutdown.cancelled() => true,
            Some(ended) = loops.join_next() => {
                tracing::error!(?ended, "a loop ended that should not; stopping, so that the process is started anew");
                false
            }
        };
        tracing::info!("shutting down: finishing what is in hand");
        let over = Instant::now() + self.grace;
        self.admin.ready.store(false, Ordering::Release);
        self.ends.stop.cancel();
        let finished = self.drain(public, &mut loops).await;
        self.keepers
            .flush(over.saturating_duration_since(Instant::now()))
            .await;
        self.ends.closing.cancel();
        self.receiver.stores.close().await;
        self.admin_server.stop(false).await;
        tracing::info!(finished, "stopped");
        asked && finished
    }

    /// The loops beside the listeners.
    fn loops(&mut self) -> JoinSet<()> {
        let mut loops = JoinSet::new();
        let (stores, stop) = (self.receiver.stores.clone(), self.ends.stop.clone());
        let (advised, metrics, over) = (stores.clone(), Arc::clone(&self.receiver.metrics), stop.clone());
        loops.spawn(async move {
            let said = |advice: Advice| {
                advice.log();
                metrics.warnings.add(i64::from(advice.weight == Weight::Warning));
            };
            advised.advise(said, &over).await;
            over.cancelled().await;
        });
        loops.spawn(async move {
            stores.watch(&stop).await;
            stop.cancelled().await;
        });
        if let Some(worker) = self.worker.take() {
            loops.spawn(worker.run(self.ends.stop.clone()));
        }
        self.keepers.start(&mut loops, &self.ends.stop);
        loops
    }

    /// Finishes what is in hand; cuts short in time what will not end, so that it can still be released.
    async fn drain(&self, public: Option<Served>, loops: &mut JoinSet<()>) -> bool {
        // A task of its own, which is not begun anew when the calm part of the grace is over.
        let mut stopping = tokio::spawn(async move {
            if let Some(public) = public {
                public.stop_accepting().await;
            }
        });
        let calm = self.grace.saturating_sub(RELEASE_MARGIN.min(self.grace / 2));
        if tokio::time::timeout(calm, self.finish(&mut stopping, loops))
            .await
            .is_err()
        {
            tracing::warn!("the grace is nearly over: releasing what is not finished");
            self.ends.hurry.cancel();
            let _ = tokio::time::timeout(self.grace - calm, self.finish(&mut stopping, loops)).await;
        }
        // A client that keeps its connection open leaves nothing unfinished.
        self.receiver.tasks.is_empty() && loops.is_empty()
    }

    async fn finish(&self, stopping: &mut JoinHandle<()>, loops: &mut JoinSet<()>) {
        self.receiver.tasks.close();
        self.receiver.tasks.wait().await;
        while loops.join_next().await.is_some() {}
        if !stopping.is_finished() {
            let _ = stopping.await;
        }
        // What came on open connections while they were being closed.
        self.receiver.tasks.wait().await;
        self.admin.in_hand.close();
        self.admin.in_hand.wait().await;
    }
}

impl Public {
    fn open(config: &Config, receiver: &Arc<Receiver>, sources: Sources) -> Result<Self, StartError> {
        let intake = web::Data::new(Intake::new(config, Arc::clone(receiver), sources));
        let (server, address) =
            listener::open(config, intake.clone()).map_err(|problem| StartError::Listen {
                address: config.listen,
                problem,
            })?;
        Ok(Self {
            intake,
            server,
            address,
        })
    }

    fn serve(self) -> Served {
        let handle = self.server.handle();
        tokio::spawn(self.server);
        Served {
            intake: self.intake,
            handle,
        }
    }
}

/// The public listener while it is served.
struct Served {
    intake: web::Data<Intake>,
    handle: ServerHandle,
}

impl Served {
    /// Accepts no more connections, and waits for the answers to what came on those that are open.
    async fn stop_accepting(&self) {
        self.intake.draining.store(true, Ordering::Relaxed);
        self.handle.stop(true).await;
    }
}

/// Serves probes and metrics from now on.
fn admin_server(config: &Config, admin: web::Data<Admin>) -> Result<(ServerHandle, SocketAddr), StartError> {
    let (server, address) = listener::open_admin(config, admin).map_err(|problem| StartError::Listen {
        address: config.admin_listen,
        problem,
    })?;
    let handle = server.handle();
    tokio::spawn(server);
    Ok((handle, address))
}
