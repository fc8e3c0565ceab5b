//! Calling the user's service: the raw body byte for byte, the provider's headers, a stable idempotency
//! key, and our own Standard Webhooks signature. Success is a 2xx and nothing else.

use std::time::Duration;

use bytes::Bytes;
use hookgate_ledger::StoredHeaders;
use hookgate_signature::{Keys, Scheme, StandardWebhooks, Tolerance};
use hookgate_webhook::EventKey;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::TargetConfig;

/// Bytes outside visible ASCII, and `%` itself, are percent-encoded in an id given to targets.
const NOT_VISIBLE: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// An answer's body is read up to here, so that the connection can be used again; a longer one costs it.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// An answer's body may take so long after its head; it is not ours to wait for.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Idle connections kept per target host.
const IDLE_CONNECTIONS_MAX: usize = 64;

/// Longest time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// One delivery to a target.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Identity.
    pub key: &'a EventKey,
    /// How often the finished event was replayed.
    pub generation: u32,
    /// The provider's type.
    pub event_type: Option<&'a str>,
    /// Which try, allocated by the ledger; absent without one, since a fence that does not rise is a lie.
    pub attempt: Option<u32>,
    /// The provider's headers.
    pub headers: &'a StoredHeaders,
    /// The raw body.
    pub body: Bytes,
}

/// Why a target did not take an event. The text names no address.
#[derive(Debug, thiserror::Error)]
pub enum TargetFailure {
    /// It answered something else than 2xx.
    #[error("the target answered {status}")]
    Status {
        /// Its status.
        status: u16,
        /// After how long it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    #[error("the target gave no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// No connection could be made.
    #[error("the target cannot be reached")]
    Unreachable,
    /// The connection broke before the answer.
    #[error("the connection to the target broke before its answer")]
    Broken,
    /// We gave up waiting because the process has to end; says nothing about the target.
    #[error("interrupted by shutdown")]
    Interrupted,
}

/// The signing secret of a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTarget {
    /// The secret.
    #[error("HOOKGATE_TARGET_SECRET: {0}")]
    Secret(#[from] hookgate_signature::BadSecret),
    /// The HTTP client.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
}

/// A user's service.
pub struct Target {
    url: reqwest::Url,
    client: reqwest::Client,
    keys: Option<Keys>,
    timeout: Duration,
    hurry: CancellationToken,
}

impl Target {
    /// Prepares client and keys. Calls end early once `hurry` is cancelled: the last moment at which a
    /// stopping process can still release what it holds.
    ///
    /// # Errors
    /// [`BadTarget`] if the secret is not of the accepted form.
    pub fn new(
        config: &TargetConfig,
        timeout: Duration,
        hurry: CancellationToken,
    ) -> Result<Self, BadTarget> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            // Less than the whole, so that a target that cannot be reached is told from one that does not answer.
            .connect_timeout(CONNECT_TIMEOUT.min(timeout * 3 / 4))
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .no_proxy()
            .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let keys = match &config.secret {
            None => None,
            Some(secret) => {
                let secrets = std::slice::from_ref(secret);
                Some(Keys::new(
                    Scheme::StandardWebhooks(StandardWebhooks::UNBRANDED),
                    secrets,
                    Tolerance::Off,
                )?)
            }
        };
        let url = config
            .url
            .expose_secret()
            .parse()
            .expect("the configuration accepts only URLs");
        Ok(Self {
            url,
            client,
            keys,
            timeout,
            hurry,
        })
    }

    /// Posts one event. `Ok` means 2xx.
    pub async fn post(&self, outgoing: &Outgoing<'_>) -> Result<(), TargetFailure> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers(outgoing))
            .body(outgoing.body.clone());
        let exchange = tokio::time::timeout(self.timeout, exchange(request));
        match self.hurry.run_until_cancelled(exchange).await {
            Some(Ok(answer)) => {
                drain(answer?).await;
                Ok(())
            }
            Some(Err(_)) => Err(TargetFailure::Timeout(self.timeout)),
            None => Err(TargetFailure::Interrupted),
        }
    }

    fn headers(&self, outgoing: &Outgoing<'_>) -> HeaderMap {
        let id = target_id(outgoing.key, outgoing.generation);
        let now = clock::unix_seconds();
        let mut headers = HeaderMap::new();
        for (name, value) in outgoing.headers {
            put(&mut headers, name, value);
        }
        put(&mut headers, "webhook-id", id.as_bytes());
        put(&mut headers, "idempotency-key", id.as_bytes());
        put(&mut headers, "webhook-timestamp", now.to_string().as_bytes());
        headers.remove("webhook-signature");
        for (name, value) in self
            .keys
            .iter()
            .flat_map(|keys| keys.sign(&id, now, &outgoing.body))
        {
            put(&mut headers, name, value.as_bytes());
        }
        put(
            &mut headers,
            "hookgate-source",
            outgoing.key.source.as_str().as_bytes(),
        );
        if let Some(event_type) = outgoing.event_type {
            put(
                &mut headers,
                "hookgate-event-type",
                visible(event_type).as_bytes(),
            );
        }
        if let Some(attempt) = outgoing.attempt {
            put(&mut headers, "hookgate-attempt", attempt.to_string().as_bytes());
        }
        headers
    }
}

/// The id by which a target may deduplicate: stable over tries, new with each replay.
pub fn target_id(key: &EventKey, generation: u32) -> String {
    let id = visible(key.id.as_str());
    match generation {
        0 => format!("{}:{id}", key.source),
        n => format!("{}@{n}:{id}", key.source),
    }
}

fn visible(text: &str) -> String {
    utf8_percent_encode(text, NOT_VISIBLE).to_string()
}

fn put(headers: &mut HeaderMap, name: &str, value: &[u8]) {
    if let (Ok(name), Ok(value)) = (
        HeaderName::from_bytes(name.as_bytes()),
        HeaderValue::from_bytes(value),
    ) {
        headers.insert(name, value);
    }
}

/// The status decides; the rest of the answer is read only so that the connection can be used again.
async fn exchange(request: reqwest::RequestBuilder) -> Result<reqwest::Response, TargetFailure> {
    let answer = request.send().await.map_err(|error| match error.is_connect() {
        true => TargetFailure::Unreachable,
        false => TargetFailure::Broken,
    })?;
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status => Err(TargetFailure::Status {
            status: status.as_u16(),
            retry_after: retry_after(&answer),
        }),
    }
}

/// `Retry-After` in either of its forms, seconds or a date (RFC 9110, 10.2.3). What is neither counts as absent.
fn retry_after(answer: &reqwest::Response) -> Option<Duration> {
    let value = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Longer than can be counted is long.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let then = then.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(then.saturating_sub(clock::since_epoch()))
}

/// Reads the rest of an answer, up to a size and a time; what is longer costs the connection.
async fn drain(mut answer: reqwest::Response) {
    let mut read = 0;
    let rest = async {
        while let Ok(Some(chunk)) = answer.chunk().await {
            read += chunk.len();
            if read > ANSWER_BYTES_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
}
