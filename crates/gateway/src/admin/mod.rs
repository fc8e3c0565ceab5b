//! The admin listener: probes and metrics for machines, and under `/v1` what people and consumers ask for.
//!
//! ```text
//! request ─▶ auth (token) ─▶ input (strict) ─▶ the ledger, on the main runtime ─▶ JSON, or a problem document
//! ```
//!
//! It runs in every role and changes nothing by itself: what people decide is the ledger's to do and to write
//! down.

mod auth;
mod change;
mod consume;
mod cursor;
mod dead_letters;
mod events;
mod filter;
mod input;
mod json;
mod lease;
mod openapi;
mod probes;
mod problem;
mod pull;
mod settle;
mod stats;
mod targets;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App as ActixApp, web};
use hookgate_ledger::{LedgerError, Operations};
use hookgate_webhook::SourceName;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use utoipa::OpenApi as _;
use utoipa_actix_web::AppExt as _;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::assembly;
use crate::config::{Config, Consumer};
use crate::metrics::Metrics;
use crate::receiver::Receiver;
use crate::stores::Stores;
pub use auth::REFUSALS;
use auth::Tokens;
use problem::{Kind, Problem};
use pull::{Pull, Waiting};

/// A question of a person is answered by then, however little time deliveries are given.
const DESK_TIMEOUT: Duration = Duration::from_secs(10);

/// What the admin listener needs.
pub struct Admin {
    /// Both stores.
    pub stores: Stores,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    /// Set once the listeners are open; cleared at shutdown.
    pub ready: AtomicBool,
    /// Requests of the API in hand.
    pub in_hand: TaskTracker,
    tokens: Tokens,
    /// How long a request's body may take.
    body_timeout: Duration,
    /// How long the answer to whoever has shown a token may take.
    answer_timeout: Duration,
    pull: Option<Arc<Pull>>,
    /// Sources by the name of their target.
    targets: BTreeMap<String, Vec<String>>,
    runtime: Handle,
}

impl Admin {
    /// Puts it together. `deaths` is told when a consumer buries an event; once `stop` is cancelled nobody waits
    /// any more.
    pub fn new(config: &Config, receiver: &Receiver, deaths: &Arc<Notify>, stop: &CancellationToken) -> Self {
        let pull = receiver.stores.ledger.clone().map(|ledger| {
            Arc::new(Pull {
                ledger,
                metrics: Arc::clone(&receiver.metrics),
                sources: pulled(config),
                retry_base: config.retry_base,
                tries_max: assembly::tries_max(config),
                runtime: receiver.runtime.clone(),
                tasks: receiver.tasks.clone(),
                deaths: Arc::clone(deaths),
                stop: stop.clone(),
                waiting: Waiting::default(),
            })
        });
        Self {
            stores: receiver.stores.clone(),
            metrics: Arc::clone(&receiver.metrics),
            ready: AtomicBool::new(false),
            in_hand: TaskTracker::new(),
            tokens: Tokens::new(config.admin_token.as_ref(), config.consume_token.as_ref()),
            body_timeout: config.client.request_timeout,
            answer_timeout: consume::WAIT_MAX + 3 * config.ledger_timeout.max(DESK_TIMEOUT),
            pull,
            targets: targets(config),
            runtime: receiver.runtime.clone(),
        }
    }

    /// Asks the ledger, in a task of the main runtime: there its connections live, and a client that hangs up
    /// cancels no statement half-way.
    async fn ask<T, F>(&self, question: impl FnOnce(Arc<dyn Operations>) -> F) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, LedgerError>> + Send + 'static,
        T: Send + 'static,
    {
        let operations = self.stores.operations.clone().ok_or_else(no_ledger)?;
        // People's questions are tried for seconds; that is in vain while it is known to be away.
        if self.stores.ledger.as_ref().is_some_and(|ledger| !ledger.is_up()) {
            return Err(LedgerError::Unavailable("circuit open".to_owned()).into());
        }
        match self.runtime.spawn(question(operations)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the ledger could not answer the admin API");
                Err(error.into())
            }
            Err(_) => Err(Problem::new(
                Kind::Internal,
                "the request broke off; the log says why",
            )),
        }
    }
}

/// The sources whose events are pulled, each with the first delay between tries.
fn pulled(config: &Config) -> BTreeMap<SourceName, Duration> {
    let sources = config.sources.iter();
    sources
        .filter(|source| source.consumer == Consumer::Pull)
        .map(|source| (source.name.clone(), source.retry_base))
        .collect()
}

/// The sources whose events a worker brings, by the name of their target.
fn targets(config: &Config) -> BTreeMap<String, Vec<String>> {
    let mut targets = BTreeMap::<_, Vec<_>>::new();
    let sources = config.sources.iter();
    for source in sources.filter(|source| source.consumer == Consumer::Target) {
        if let Some(target) = &source.target {
            let name = target.name.clone();
            targets.entry(name).or_default().push(source.name.to_string());
        }
    }
    targets
}

/// There is nothing to search.
fn no_ledger() -> Problem {
    Problem::new(
        Kind::NoLedger,
        "DATABASE_URL = none: without a ledger no event is kept, and there is nothing to look at",
    )
}

/// The application of the admin listener, with every route on one screen.
pub fn application(
    admin: web::Data<Admin>,
) -> ActixApp<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    let (app, document) = ActixApp::new()
        .app_data(admin)
        .configure(probes::routes)
        .into_utoipa_app()
        .openapi(openapi::Preface::openapi())
        .configure(routes)
        .split_for_parts();
    app.app_data(web::Data::new(document))
        .default_service(web::to(openapi::fallback))
        .wrap(from_fn(auth::guard))
}

/// The routes of the API. Each describes itself, so that the document has what is here and nothing else.
fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(events::list_events)
        .service(events::replay_events)
        .service(events::show_event)
        .service(events::download_body)
        .service(events::replay_event)
        .service(dead_letters::list_dead_letters)
        .service(dead_letters::redrive_dead_letters)
        .service(dead_letters::discard_dead_letters)
        .service(dead_letters::redrive_dead_letter)
        .service(dead_letters::discard_dead_letter)
        .service(targets::list_targets)
        .service(targets::pause_target)
        .service(targets::resume_target)
        .service(stats::show_stats)
        .service(consume::consume_events)
        .service(settle::settle_events)
        .service(openapi::show_document);
}
