//! The configuration: read once at start, afterwards only types. The environment wins over the file. A
//! wrong value stops the start with one sentence.

mod advice;
mod custom;
mod form;
mod identity;
mod public_url;
mod reader;
mod secrets;
pub mod setting;
mod show;
mod source;
mod stores;
mod target;
mod tolerance;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate_claim::{Epoch, RedisSettings};
use hookgate_ledger::Retention;
use secrecy::{ExposeSecret, SecretString};

pub use advice::{Advice, UnknownVariable, Weight, advice};
pub use identity::{Identity, ModeWanted, ReplayGuard, TwinRule, Twins};
pub use reader::{Reader, Wrong};
pub use secrets::SecretOrigin;
pub use show::show;
pub use source::{Consumer, HandlerKind, SourceConfig};
pub use stores::database;
pub use target::TargetConfig;

use setting as s;

/// What the HTTP server takes, and more than it has use for.
const THREADS_MAX: usize = 512;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Counts per minute are for the last weeks; Prometheus is for years.
const STATS_KEPT: Duration = Duration::from_secs(35 * 24 * 3600);

/// Everything a process needs to know.
#[derive(Debug)]
pub struct Config {
    /// Public listener.
    pub listen: SocketAddr,
    /// Probes, metrics, and the API for people and for consumers that pull.
    pub admin_listen: SocketAddr,
    /// Bearer token of the admin API; without it the API is off.
    pub admin_token: Option<SecretString>,
    /// Bearer token for consumers that pull, and for nothing else.
    pub consume_token: Option<SecretString>,
    /// Where alerts about dead letters go; may hold credentials, so it is a secret.
    pub notify_url: Option<SecretString>,
    /// How long alerts are silent after one was sent.
    pub notify_quiet: Duration,
    /// How long finished events are kept.
    pub retention: Retention,
    /// Where claims are kept.
    pub claims: ClaimStore,
    /// Where events are kept.
    pub ledger: LedgerStore,
    /// Longest time of a whole append.
    pub ledger_timeout: Duration,
    /// Whether to migrate at start.
    pub migrate: bool,
    /// How long a copy waits for the one in flight.
    pub claim_wait: Duration,
    /// Life of a claim.
    pub claim_ttl: Duration,
    /// The configured part of the epoch.
    pub claim_epoch: u32,
    /// What to do when Redis is away and there is no ledger.
    pub without_store: WithoutStore,
    /// Tries of the worker.
    pub retry_attempts_max: u32,
    /// First delay between tries.
    pub retry_base: Duration,
    /// Events a worker delivers at the same time.
    pub worker_concurrency: usize,
    /// How long a worker that died keeps its events from others.
    pub worker_lease: Duration,
    /// Limits of the public listener.
    pub client: ClientLimits,
    /// Threads.
    pub threads: usize,
    /// Longest time from SIGTERM to exit.
    pub shutdown_grace: Duration,
    /// How much is logged.
    pub log: tracing::Level,
    /// Form of the log lines.
    pub log_format: LogFormat,
    /// How often files with secrets are read and compared; `None`: never.
    pub secret_poll: Option<Duration>,
    /// The endpoints.
    pub sources: Vec<SourceConfig>,
    /// Whether this is `hookgate dev`, where secrets are public.
    pub dev: bool,
    /// Variables of the environment that look like settings and are none.
    pub unknown_variables: Vec<UnknownVariable>,
}

/// Where claims are kept.
#[derive(Debug)]
pub enum ClaimStore {
    /// No claims: the ledger decides everything.
    None,
    /// In this process; at most so many.
    Memory(u64),
    /// Shared by all replicas.
    Redis(RedisSettings),
}

/// Where events are kept.
#[derive(Debug)]
pub enum LedgerStore {
    /// Nowhere: `forward` only.
    None,
    /// One machine.
    Sqlite(PathBuf),
    /// Many replicas.
    Postgres(SecretString),
}

/// Redis is away and there is no ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutStore {
    /// 503, try later.
    Reject,
    /// Process without idempotency, with a warning each.
    Unguarded,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Pretty,
}

/// What a client of the public listener may take.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// For its headers, and again for its body.
    pub request_timeout: Duration,
    /// Idle connections.
    pub keep_alive: Duration,
    /// Open connections per thread.
    pub connections_max: usize,
}

impl Config {
    /// Reads the environment and the file.
    ///
    /// # Errors
    /// [`Wrong`] with one sentence that names the setting, its value and the accepted form.
    pub fn read(reader: &Reader, dev: bool) -> Result<Self, Wrong> {
        let address = |text: &str| text.parse().ok();
        let sources = source::read(reader, dev)?;
        let config = Self {
            listen: match reader.text(&s::LISTEN) {
                None if dev => SocketAddr::from(([127, 0, 0, 1], 8080)),
                _ => reader.value(&s::LISTEN, address)?,
            },
            admin_listen: reader.value(&s::ADMIN_LISTEN, address)?,
            admin_token: reader.optional(&s::ADMIN_TOKEN, token)?,
            consume_token: reader.optional(&s::CONSUME_TOKEN, token)?,
            notify_url: reader.optional(&s::NOTIFY_URL, http_url)?,
            notify_quiet: reader.value(&s::NOTIFY_QUIET, reader::duration_from(Duration::from_secs(1)))?,
            retention: retention(reader)?,
            claims: stores::claims(reader)?,
            ledger: database(reader)?,
            ledger_timeout: reader.value(&s::LEDGER_TIMEOUT, reader::duration_from(reader::MOMENT))?,
            migrate: reader.value(&s::MIGRATE, reader::switch)?,
            claim_wait: reader.value(&s::CLAIM_WAIT, reader::duration)?,
            claim_ttl: reader.value(&s::CLAIM_TTL, reader::duration_from(Duration::from_secs(1)))?,
            claim_epoch: reader.value(&s::CLAIM_EPOCH, |text| text.parse().ok())?,
            without_store: reader.value(&s::WITHOUT_STORE, WithoutStore::parse)?,
            retry_attempts_max: reader.value(&s::RETRY_MAX_ATTEMPTS, reader::positive)?,
            retry_base: reader.value(&s::RETRY_BASE, reader::duration)?,
            worker_concurrency: reader.value(&s::WORKER_CONCURRENCY, reader::positive)?,
            worker_lease: reader.value(&s::WORKER_LEASE, reader::duration_from(Duration::from_secs(1)))?,
            client: ClientLimits {
                request_timeout: reader.value(&s::REQUEST_TIMEOUT, reader::duration_from(reader::MOMENT))?,
                keep_alive: reader.value(&s::KEEP_ALIVE, reader::duration)?,
                connections_max: reader.value(&s::MAX_CONNECTIONS, reader::positive)?,
            },
            threads: reader
                .optional(&s::THREADS, |text| {
                    reader::positive(text).filter(|threads| *threads <= THREADS_MAX)
                })?
                .unwrap_or_else(cores),
            shutdown_grace: reader.value(&s::SHUTDOWN_GRACE, reader::duration)?,
            log: reader.value(&s::LOG, |text| text.parse().ok())?,
            log_format: match reader.text(&s::LOG_FORMAT) {
                None if dev => LogFormat::Pretty,
                _ => reader.value(&s::LOG_FORMAT, LogFormat::parse)?,
            },
            secret_poll: reader.value(&s::SECRET_POLL, secrets::interval)?,
            unknown_variables: advice::unknown_variables(reader.env(), &sources),
            sources,
            dev,
        };
        config.coherent(dev)?;
        Ok(config)
    }

    /// Reads the process's own environment.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn from_process(path: Option<&Path>, dev: bool) -> Result<Self, Wrong> {
        Self::read(&Reader::of_process(path)?, dev)
    }

    /// The epoch before the ledger has named its timeline.
    pub fn epoch(&self) -> Epoch {
        Epoch {
            configured: self.claim_epoch,
            timeline: 0,
        }
    }

    /// Refuses combinations that would lose or double events.
    fn coherent(&self, dev: bool) -> Result<(), Wrong> {
        let refuse = |sentence: String| Err(Wrong::Combination(sentence));
        if dev && !self.listen.ip().is_loopback() {
            let listen = self.listen;
            return refuse(format!(
                "HOOKGATE_LISTEN = {listen} is not accepted: dev secrets are public, so dev listens on loopback only; use `hookgate serve`"
            ));
        }
        if self.sources.is_empty() {
            return refuse(
                "no source is configured: set a secret, e.g. STRIPE_WEBHOOK_SECRET, or try `hookgate dev`"
                    .to_owned(),
            );
        }
        self.tokens_coherent()?;
        self.sources.iter().try_for_each(|source| {
            source
                .public_url_known(dev)
                .and_then(|()| self.source_coherent(source))
        })
    }

    /// A token that opens everything must not be in the hands of those who need only one door.
    fn tokens_coherent(&self) -> Result<(), Wrong> {
        let same = |(admin, consume): (&SecretString, &SecretString)| {
            admin.expose_secret() == consume.expose_secret()
        };
        match self.admin_token.as_ref().zip(self.consume_token.as_ref()).is_some_and(same) {
            true => Err(Wrong::Combination(
                "HOOKGATE_CONSUME_TOKEN and HOOKGATE_ADMIN_TOKEN are the same: give consumers a token of their own".to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn source_coherent(&self, source: &SourceConfig) -> Result<(), Wrong> {
        let name = &source.name;
        if source.claim_lease >= self.claim_ttl {
            return Err(Wrong::Combination(format!(
                "source {name}: the claim lease {} is not shorter than HOOKGATE_CLAIM_TTL = {}, so a claim would \
                 vanish while its handler still runs: raise the one or lower the other",
                humantime::format_duration(source.claim_lease),
                humantime::format_duration(self.claim_ttl),
            )));
        }
        let no_ledger = matches!(self.ledger, LedgerStore::None);
        if let (true, Some(setting)) = (no_ledger, source.identity.needs_ledger) {
            return Err(Wrong::Combination(format!(
                "source {name}: {setting} needs a ledger, which alone remembers what came before, and DATABASE_URL = none: set DATABASE_URL, or take it out"
            )));
        }
        let nothing = no_ledger && matches!(self.claims, ClaimStore::None);
        let sentence = match source.handler {
            HandlerKind::Inbox if no_ledger => format!(
                "source {name}: HOOKGATE_HANDLER = inbox needs a ledger, and DATABASE_URL = none: set DATABASE_URL, or use forward"
            ),
            HandlerKind::Forward if source.target.is_none() => {
                format!("source {name}: HOOKGATE_HANDLER = forward needs HOOKGATE_TARGET_URL")
            }
            HandlerKind::Forward if source.consumer == Consumer::Pull => format!(
                "source {name}: HOOKGATE_CONSUMER = pull needs HOOKGATE_HANDLER = inbox: with forward the target is called before the answer"
            ),
            HandlerKind::Inbox
                if source.consumer == Consumer::Pull
                    && self.admin_token.is_none()
                    && self.consume_token.is_none() =>
            {
                format!(
                    "source {name}: HOOKGATE_CONSUMER = pull needs HOOKGATE_CONSUME_TOKEN or HOOKGATE_ADMIN_TOKEN: without one nobody can pull"
                )
            }
            HandlerKind::Forward if nothing && self.without_store == WithoutStore::Reject => format!(
                "source {name}: REDIS_URL = none and DATABASE_URL = none, so every event would be answered 503: \
                 set one of them, or HOOKGATE_WITHOUT_STORE = unguarded to process without idempotency"
            ),
            HandlerKind::Forward if no_ledger && !source.provider.knowledge().retries() => format!(
                "source {name}: {} never retries, so forward needs a ledger to keep what fails: set DATABASE_URL",
                source.provider.name()
            ),
            HandlerKind::Forward if source.provider.knowledge().batches => {
                format!(
                    "source {name}: {} sends batches, which forward cannot answer: use inbox",
                    source.provider.name()
                )
            }
            HandlerKind::Forward | HandlerKind::Inbox => return Ok(()),
        };
        Err(Wrong::Combination(sentence))
    }
}

/// How long what is finished is kept: all that a sweep needs besides the database.
///
/// # Errors
/// [`Wrong`] if a time is not of an accepted form, or rows would go before their bodies.
pub fn retention(reader: &Reader) -> Result<Retention, Wrong> {
    let retention = Retention {
        bodies: reader.value(&s::RETENTION_BODY, reader::duration_from(HOUR))?,
        rows: reader.value(&s::RETENTION_EVENT, reader::duration_from(DAY))?,
        stats: STATS_KEPT,
    };
    if retention.rows < retention.bodies {
        return Err(Wrong::Combination(format!(
            "HOOKGATE_RETENTION_EVENT = {} is shorter than HOOKGATE_RETENTION_BODY = {}: raise the one or lower the other",
            humantime::format_duration(retention.rows),
            humantime::format_duration(retention.bodies),
        )));
    }
    Ok(retention)
}

/// Long enough not to be guessed, and fit for a header.
fn token(text: &str) -> Option<SecretString> {
    let fits = (16..=512).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.into())
}

/// An address that can be posted to.
fn http_url(text: &str) -> Option<SecretString> {
    let url: reqwest::Url = text.parse().ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then(|| text.into())
}

fn cores() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(THREADS_MAX)
}

impl WithoutStore {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "reject" => Some(Self::Reject),
            "unguarded" => Some(Self::Unguarded),
            _ => None,
        }
    }
}

impl LogFormat {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "json" => Some(Self::Json),
            "pretty" => Some(Self::Pretty),
            _ => None,
        }
    }
}
