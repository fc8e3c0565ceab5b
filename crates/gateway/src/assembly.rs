//! Turns a configuration into the parts that run: stores, sources with their handlers, and the worker.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use hookgate_claim::Terms;
use hookgate_ledger::{OnFailure, TriesMax};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::address::Address;
use crate::app::StartError;
use crate::certificates::Certificates;
use crate::clock::Clock;
use crate::config::{Config, Consumer, HandlerKind, SourceConfig};
use crate::handler::{Forward, Handler, Inbox, Unfinished, Waiters};
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::receiver::{Receiver, Source};
use crate::sink::Sink;
use crate::stores::{GuardedLedger, Stores};
use crate::target::{BadTarget, Target};
use crate::worker::{Bounds, Gate, Route, Worker};

/// The parts of a process.
pub struct Assembly {
    /// The path.
    pub receiver: Arc<Receiver>,
    /// Endpoints by name.
    pub sources: Sources,
    /// The worker, if this process has the role and any source has a target.
    pub worker: Option<Arc<Worker>>,
    /// To be told when an event dies.
    pub deaths: Arc<Notify>,
    /// How they end.
    pub ends: Ends,
}

/// The endpoints by the last segment of their path.
pub type Sources = HashMap<String, Arc<Source>>;

/// The stages of a process's end, in their order.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// Ends the loops: nothing new is taken up.
    pub stop: CancellationToken,
    /// Cuts calls short that would outlive the shutdown grace.
    pub hurry: CancellationToken,
    /// Ends the probing of stores that are away. Until then an open circuit can still close, so that what is
    /// in hand can be written down.
    pub closing: CancellationToken,
}

/// Puts everything together; needs a tokio runtime. The clock is the one that judges signatures.
///
/// # Errors
/// [`StartError`] with one sentence for the operator.
pub fn assemble(config: &Config, work: bool, clock: Clock) -> Result<Assembly, StartError> {
    // One TLS library for every client; a second call finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let ends = Ends::default();
    let metrics = Arc::new(Metrics::new(
        config.sources.iter().map(|source| source.name.as_str()),
    )?);
    let stores = Stores::open(config, &metrics, &ends.closing)?;
    let tasks = TaskTracker::new();
    let waiters = Waiters::new(stores.clone());
    let remembering =
        |ledger: &Arc<GuardedLedger>| Unfinished::new(Arc::clone(ledger), tasks.clone(), ends.hurry.clone());
    let unfinished = stores.ledger.as_ref().map(remembering);
    let deaths = Arc::<Notify>::default();
    let parts = Parts {
        config,
        stores: &stores,
        metrics: &metrics,
        waiters: &waiters,
        unfinished,
        hurry: &ends.hurry,
        deaths: &deaths,
    };
    let mut sources = HashMap::new();
    for source in &config.sources {
        sources.insert(source.name.as_str().to_owned(), Arc::new(parts.source(source)?));
    }
    let worker = if work { parts.worker()? } else { None };
    let runtime = tokio::runtime::Handle::current();
    let certificates = Certificates::public(metrics.certificates.clone()).map_err(StartError::Client)?;
    let receiver = Arc::new(Receiver {
        stores,
        certificates,
        clock,
        metrics,
        tasks,
        runtime,
    });
    Ok(Assembly {
        receiver,
        sources,
        worker,
        deaths,
        ends,
    })
}

/// Tries before an event goes to the dead letters, by source.
pub(crate) fn tries_max(config: &Config) -> TriesMax {
    let of_source = |source: &SourceConfig| (source.name.clone(), source.attempts_max);
    TriesMax {
        by_source: config.sources.iter().map(of_source).collect(),
        otherwise: config.retry_attempts_max,
    }
}

struct Parts<'a> {
    config: &'a Config,
    stores: &'a Stores,
    metrics: &'a Arc<Metrics>,
    waiters: &'a Arc<Waiters>,
    unfinished: Option<Arc<Unfinished>>,
    hurry: &'a CancellationToken,
    deaths: &'a Arc<Notify>,
}

impl Parts<'_> {
    fn source(&self, source: &SourceConfig) -> Result<Source, StartError> {
        let keyring = Keyring::new(source, self.metrics).map_err(|problem| StartError::Secret {
            source_name: source.name.to_string(),
            problem,
        })?;
        Ok(Source {
            name: source.name.clone(),
            provider: source.provider,
            keyring,
            address: Address::of(self.config, source),
            handler: self.handler(source)?,
            terms: self.terms(source),
            body_bytes_max: source.body_bytes_max,
            identity: source.identity.clone(),
        })
    }

    fn terms(&self, source: &SourceConfig) -> Terms {
        Terms {
            ttl: self.config.claim_ttl,
            lease: source.claim_lease,
        }
    }

    fn handler(&self, source: &SourceConfig) -> Result<Handler, StartError> {
        match source.handler {
            HandlerKind::Inbox => {
                let ledger = self
                    .stores
                    .ledger
                    .clone()
                    .expect("the configuration refuses an inbox without a ledger");
                Ok(Handler::Inbox(Inbox::new(
                    ledger,
                    source.has_consumer(),
                    Arc::clone(self.metrics),
                )))
            }
            HandlerKind::Forward => Ok(Handler::Forward(Box::new(Forward {
                target: self
                    .target(source)?
                    .expect("the configuration refuses forward without a target"),
                stores: self.stores.clone(),
                waiters: Arc::clone(self.waiters),
                wait: self.config.claim_wait,
                terms: self.terms(source),
                without_store: self.config.without_store,
                on_failure: if source.provider.knowledge().retries() {
                    OnFailure::ProviderRetries
                } else {
                    OnFailure::WorkerRetries(source.retry_base)
                },
                unfinished: self.unfinished.clone(),
                metrics: Arc::clone(self.metrics),
            }))),
        }
    }

    fn target(&self, source: &SourceConfig) -> Result<Option<Target>, BadTarget> {
        let target = source.target.as_ref();
        target
            .map(|target| Target::new(target, source.handler_timeout, self.hurry.clone()))
            .transpose()
    }

    /// The worker. It works without any target too: whoever pulls events may die like a worker, and it frees
    /// what was theirs.
    fn worker(&self) -> Result<Option<Arc<Worker>>, StartError> {
        let Some(ledger) = &self.stores.ledger else {
            return Ok(None);
        };
        let (freed, mut gates, mut routes) = (Arc::<Notify>::default(), Vec::new(), HashMap::new());
        for source in &self.config.sources {
            if let Some(route) = self.route(source, &freed, &mut gates)? {
                routes.insert(source.name.clone(), Arc::new(route));
            }
        }
        Ok(Some(Arc::new(Worker {
            ledger: Arc::clone(ledger),
            routes,
            gates,
            tries_max: tries_max(self.config),
            concurrency: self.config.worker_concurrency,
            lease: self.config.worker_lease,
            in_hand: AtomicUsize::new(0),
            freed,
            deaths: Arc::clone(self.deaths),
            metrics: Arc::clone(self.metrics),
        })))
    }

    /// Where a source's events go, if a worker is to bring them. Sources with the same target share its gate.
    fn route(
        &self,
        source: &SourceConfig,
        freed: &Arc<Notify>,
        gates: &mut Vec<Arc<Gate>>,
    ) -> Result<Option<Route>, StartError> {
        let (Consumer::Target, Some(config), Some(target)) =
            (source.consumer, &source.target, self.target(source)?)
        else {
            return Ok(None);
        };
        let known = gates.iter().find(|gate| gate.name() == config.name).cloned();
        let gate = known.unwrap_or_else(|| {
            let bounds = Bounds {
                concurrency: config.concurrency,
                rate: config.rate,
            };
            let gate = Gate::new(&config.name, bounds, Arc::clone(freed), Instant::now());
            let labels = [config.name.as_str()];
            self.metrics.target_up.with_label_values(&labels).set(1);
            self.metrics.target_paused.with_label_values(&labels).set(0);
            gates.push(Arc::clone(&gate));
            gate
        });
        Ok(Some(Route {
            source: source.name.clone(),
            sink: Sink::Http(target),
            gate,
            attempts_max: source.attempts_max,
            retry_base: source.retry_base,
            concurrency: source.concurrency,
            in_hand: AtomicUsize::new(0),
        }))
    }
}
