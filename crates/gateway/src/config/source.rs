//! The configured endpoints: which provider, which secrets, where its events go.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use hookgate_signature::Tolerance;
use hookgate_webhook::{Provider, SourceName};
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::custom;
use super::form::fault;
use super::identity::{self, Identity, IdentityTable};
use super::public_url::{self, Registered};
use super::reader::{self, Reader, Wrong};
use super::secrets::{self, Named, SecretOrigin};
use super::setting;
use super::target::{self, TargetConfig, Wanted};
use super::tolerance;
use crate::metrics::UNKNOWN_SOURCE;

/// How a source's events are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandlerKind {
    /// Store, answer, deliver by a worker.
    Inbox,
    /// POST to the target before the answer.
    Forward,
}

impl HandlerKind {
    /// `inbox` or `forward`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "inbox" => Some(Self::Inbox),
            "forward" => Some(Self::Forward),
            _ => None,
        }
    }

    /// As configured and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Forward => "forward",
        }
    }
}

/// Who gets the events of a source: exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Consumer {
    /// The target, called by a worker; without a target nobody.
    Target,
    /// Whoever pulls them from the admin API.
    Pull,
}

impl Consumer {
    /// `target` or `pull`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "target" => Some(Self::Target),
            "pull" => Some(Self::Pull),
            _ => None,
        }
    }
}

/// One endpoint, complete.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// Its name: path segment, label and part of every key.
    pub name: SourceName,
    /// Who sends to it.
    pub provider: Provider,
    /// Secrets that are valid at start; several during a rotation.
    pub secrets: Vec<SecretString>,
    /// Where they come from, and others may later.
    pub secret_origin: SecretOrigin,
    /// How far signed times may lie from the clock.
    pub tolerance: Tolerance,
    /// Its URL as it is registered with the provider, if anybody said.
    pub public_url: Option<String>,
    /// How its events are handled.
    pub handler: HandlerKind,
    /// Who gets its events.
    pub consumer: Consumer,
    /// Where its events go.
    pub target: Option<TargetConfig>,
    /// Tries of the worker before an event goes to the dead letters.
    pub attempts_max: u32,
    /// First delay between tries.
    pub retry_base: Duration,
    /// Events that a worker delivers at the same time.
    pub concurrency: usize,
    /// Longest wait for the target.
    pub handler_timeout: Duration,
    /// Age after which an unfinished claim may be taken over.
    pub claim_lease: Duration,
    /// Largest accepted body.
    pub body_bytes_max: usize,
    /// Which events are its own, and which are the same.
    pub identity: Identity,
}

impl SourceConfig {
    /// Whether this is one of its secrets.
    pub(super) fn has_secret(&self, secret: &str) -> bool {
        self.secrets.iter().any(|own| own.expose_secret() == secret)
    }

    /// Whether anybody gets its events.
    pub fn has_consumer(&self) -> bool {
        match self.consumer {
            Consumer::Target => self.target.is_some(),
            Consumer::Pull => true,
        }
    }
}

/// A `[sources.NAME]` table. What it leaves out comes from the global settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceTable {
    provider: Option<String>,
    secrets: Option<Vec<SecretString>>,
    secret_file: Option<PathBuf>,
    tolerance: Option<tolerance::Given>,
    public_url: Option<Registered>,
    handler: Option<HandlerKind>,
    consumer: Option<Consumer>,
    target: Option<String>,
    target_url: Option<SecretString>,
    target_secret: Option<SecretString>,
    #[serde(default, deserialize_with = "moment")]
    handler_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "lease")]
    claim_lease: Option<Duration>,
    max_body_bytes: Option<NonZeroUsize>,
    retry_max_attempts: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "delay")]
    retry_base: Option<Duration>,
    concurrency: Option<NonZeroUsize>,
    signature: Option<toml::Value>,
    event: Option<toml::Value>,
    sender: Option<toml::Value>,
    /// Read by itself.
    #[serde(skip)]
    identity: IdentityTable,
}

/// Largest body unless a setting or a provider's published size says more: fits every payload seen from
/// the providers that publish none.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The longest default wait for a target.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);

/// The shortest lease: a renewal has to fit into a third of it.
const LEASE_MIN: Duration = Duration::from_millis(100);

/// What a claim's lease adds to the handler timeout, so that a live handler is never taken over.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// All configured sources: those of the file, and one for each provider whose secret the environment has.
/// In `dev`, every other provider is opened with its published dev secret.
pub(super) fn read(reader: &Reader, dev: bool) -> Result<Vec<SourceConfig>, Wrong> {
    target::check(reader)?;
    let mut tables = tables(reader)?;
    for provider in Provider::ALL {
        let named = tables.iter().any(|(name, _)| name.as_str() == provider.name());
        let given = setting::secret_variables(provider.name())
            .iter()
            .any(|name| reader.env().contains_key(name));
        if !named && (given || dev) {
            let name = SourceName::parse(provider.name()).expect("provider names are source names");
            tables.push((name, SourceTable::default()));
        }
    }
    let sources: Vec<_> = tables
        .into_iter()
        .map(|(name, table)| complete(reader, dev, name, table))
        .collect::<Result<_, _>>()?;
    target::distinct(&sources)?;
    Ok(sources)
}

fn tables(reader: &Reader) -> Result<Vec<(SourceName, SourceTable)>, Wrong> {
    let Some(sources) = reader.sources() else {
        return Ok(Vec::new());
    };
    let wrong = |problem: String| Wrong::File {
        path: reader.path(),
        problem,
    };
    let Some(sources) = sources.as_table() else {
        return Err(wrong("sources must be tables, e.g. [sources.stripe]".to_owned()));
    };
    let mut tables = Vec::new();
    for (name, table) in sources {
        let at = |problem: &str| wrong(format!("[sources.{name}]: {problem}"));
        let parsed = SourceName::parse(name).map_err(|bad| at(&bad.to_string()))?;
        if name == UNKNOWN_SOURCE {
            return Err(at(
                "metrics call requests to no source by this name; choose another",
            ));
        }
        let (identity, table) = identity::take(table).map_err(|problem| at(&problem))?;
        let rest = table.clone().try_into().map_err(|_| at(&fault(&table)))?;
        tables.push((parsed, SourceTable { identity, ..rest }));
    }
    Ok(tables)
}

fn complete(reader: &Reader, dev: bool, name: SourceName, table: SourceTable) -> Result<SourceConfig, Wrong> {
    let provider = provider(&name, &table)?;
    let named = Named {
        secrets: table.secrets.as_ref(),
        secret_file: table.secret_file.as_deref(),
    };
    let secrets = secrets::read(reader, dev, &name, provider, named)?;
    let knowledge = provider.knowledge();
    let global_timeout = reader.optional(&setting::HANDLER_TIMEOUT, reader::duration_from(reader::MOMENT))?;
    let budget_left = knowledge.answer_budget.saturating_sub(Duration::from_secs(1));
    let handler_timeout = table
        .handler_timeout
        .or(global_timeout)
        .unwrap_or(HANDLER_TIMEOUT.min(budget_left));
    let global_lease = reader.optional(&setting::CLAIM_LEASE, reader::duration_from(LEASE_MIN))?;
    let global_bytes = reader.optional(&setting::MAX_BODY_BYTES, reader::positive)?;
    let default_bytes = BODY_BYTES_MAX.max(knowledge.body_bytes_max.unwrap_or(0));
    Ok(SourceConfig {
        provider,
        secrets: secrets.list,
        secret_origin: secrets.origin,
        tolerance: tolerance::of(&name, provider, table.tolerance)?,
        public_url: public_url::of(reader, &name, table.public_url)?,
        handler: table
            .handler
            .map_or_else(|| reader.value(&setting::HANDLER, HandlerKind::parse), Ok)?,
        consumer: table
            .consumer
            .map_or_else(|| reader.value(&setting::CONSUMER, Consumer::parse), Ok)?,
        target: target::read(
            reader,
            &name,
            &Wanted {
                name: table.target.as_deref(),
                url: table.target_url.as_ref(),
                secret: table.target_secret.as_ref(),
            },
        )?,
        attempts_max: match table.retry_max_attempts {
            Some(attempts) => attempts.get(),
            None => reader.value(&setting::RETRY_MAX_ATTEMPTS, reader::positive)?,
        },
        retry_base: match table.retry_base {
            Some(base) => base,
            None => reader.value(&setting::RETRY_BASE, reader::duration)?,
        },
        concurrency: match table.concurrency {
            Some(concurrency) => concurrency.get(),
            None => reader.value(&setting::WORKER_CONCURRENCY, reader::positive)?,
        },
        handler_timeout,
        claim_lease: table
            .claim_lease
            .or(global_lease)
            .unwrap_or(handler_timeout + LEASE_MARGIN),
        body_bytes_max: table
            .max_body_bytes
            .map(usize::from)
            .or(global_bytes)
            .unwrap_or(default_bytes),
        identity: identity::complete(&name, provider, table.identity)?,
        name,
    })
}

/// A built-in provider, or the sender that the table describes.
fn provider(name: &SourceName, table: &SourceTable) -> Result<Provider, Wrong> {
    let wanted = table.provider.as_deref().unwrap_or(name.as_str());
    let tables = custom::Tables {
        signature: table.signature.as_ref(),
        event: table.event.as_ref(),
        sender: table.sender.as_ref(),
    };
    if let Some(kind) = custom::kind(wanted) {
        let described = custom::provider(kind, &tables);
        return described.map_err(|problem| Wrong::Combination(format!("source {name}: {problem}")));
    }
    if let Some(described) = tables.any() {
        return Err(Wrong::Combination(format!(
            "source {name}: {described} describes a sender of your own: use it with provider = \"hmac\" or \"token\""
        )));
    }
    wanted
        .parse()
        .map_err(|unknown: hookgate_webhook::UnknownProvider| {
            Wrong::Combination(format!(
                "source {name} has provider {wanted:?}: {unknown}, and hmac and token for senders of your own"
            ))
        })
}

/// Durations in the file are written like those in the environment.
fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration_from(deserializer, reader::MOMENT)
}

fn delay<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration_from(deserializer, Duration::ZERO)
}

fn lease<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration_from(deserializer, LEASE_MIN)
}

fn duration_from<'de, D: Deserializer<'de>>(
    deserializer: D,
    least: Duration,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match reader::duration_from(least)(&text) {
        Some(duration) => Ok(Some(duration)),
        None => Err(D::Error::custom("not a duration")),
    }
}
