//! The notifier: tells people when events die, once per burst and not once per event, over all replicas. A row
//! with a lease elects the one that tells. Once it has told, the row rests for a quiet time and remembers up to
//! which death people know: what dies meanwhile is told when the quiet time ends. Whether an alert gets through
//! changes nothing for any event.

mod alert;

use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{Deaths, DeliveryId, Elected, LedgerError, UnixMicros, Upkeep};
use reqwest::header::CONTENT_TYPE;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::stores::OnceAMinute;

/// The name of the lease.
const JOB: &str = "dead-letter-alert";

/// How long a notifier that died keeps others from telling; longer than all its tries.
const LEASE: Duration = Duration::from_secs(60);

/// How often deaths are looked for that nobody has told of: those of other processes, and those of the quiet
/// time.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// After the first death of a burst so long is waited for the rest of it. What died less than
/// [`Deaths::SETTLED_AFTER`] ago is not counted yet, so five seconds of deaths are told together.
const GATHER: Duration = Deaths::SETTLED_AFTER.saturating_add(Duration::from_secs(5));

/// Longest wait for an answer.
const POST_TIMEOUT: Duration = Duration::from_secs(5);

/// Pauses before the second and the third try. After that the quiet time comes, and then the next alert.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Tells people about events that died.
pub struct Notifier {
    upkeep: Arc<dyn Upkeep>,
    url: reqwest::Url,
    client: reqwest::Client,
    quiet: Duration,
    deaths: Arc<Notify>,
    metrics: Arc<Metrics>,
    owner: DeliveryId,
    warned: OnceAMinute,
}

/// What one look led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Told {
    /// Nobody died whom people do not know of.
    Nothing,
    /// It is quiet, or another replica tells.
    Later,
    /// An alert got through.
    Sent,
    /// None did.
    Failed,
}

impl Notifier {
    /// Alerts go to `url`, and not more often than every `quiet`. Whoever sees an event die tells `deaths`, which
    /// costs next to nothing, however often.
    ///
    /// # Errors
    /// If the HTTP client cannot be built.
    pub fn new(
        upkeep: Arc<dyn Upkeep>,
        url: reqwest::Url,
        quiet: Duration,
        deaths: Arc<Notify>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(POST_TIMEOUT)
            .pool_max_idle_per_host(0)
            .no_proxy()
            .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self {
            upkeep,
            url,
            client,
            quiet,
            deaths,
            metrics,
            owner: DeliveryId(rand::random()),
            warned: OnceAMinute::default(),
        })
    }

    /// Looks now, whenever it is told of a death, and every half minute, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            if let Err(error) = self.run_once(&stop).await {
                tracing::debug!(%error, "deaths cannot be looked for now");
            }
            if stop.run_until_cancelled(self.wait()).await.is_none() {
                return;
            }
        }
    }

    /// Looks for deaths that people do not know of, and tells them if it is this process's turn.
    ///
    /// # Errors
    /// [`LedgerError`] if the ledger cannot answer. Nothing is forgotten by that.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Told, LedgerError> {
        let known = self.upkeep.done_until(JOB).await?;
        let known = known.unwrap_or(UnixMicros(0));
        if self.upkeep.deaths_since(known).await?.latest.is_none() {
            return Ok(Told::Nothing);
        }
        let Elected::Yes { done_until, .. } = self.upkeep.elect(JOB, self.owner, LEASE).await? else {
            return Ok(Told::Later);
        };
        let since = done_until.unwrap_or(UnixMicros(0));
        let deaths = self.upkeep.deaths_since(since).await?;
        let Some(text) = alert::text(&deaths) else {
            self.upkeep.resign(JOB, self.owner).await?;
            return Ok(Told::Nothing);
        };
        match stop.run_until_cancelled(self.send(&text)).await {
            Some(true) => {
                let latest = deaths.latest.map(|latest| latest.at);
                self.upkeep.conclude(JOB, self.owner, latest, self.quiet).await?;
                Ok(Told::Sent)
            }
            Some(false) => {
                self.upkeep.conclude(JOB, self.owner, None, self.quiet).await?;
                Ok(Told::Failed)
            }
            None => {
                self.upkeep.resign(JOB, self.owner).await?;
                Ok(Told::Later)
            }
        }
    }

    /// Waits for the next look.
    async fn wait(&self) {
        let look_again = LOOK_INTERVAL.min(self.quiet);
        if timeout(look_again, self.deaths.notified()).await.is_ok() {
            sleep(GATHER).await;
        }
    }

    /// Tries a few times. True if the alert got through.
    async fn send(&self, text: &str) -> bool {
        let pauses = RETRY_PAUSES.into_iter().map(Some).chain([None]);
        for pause in pauses {
            match self.post(text).await {
                Ok(()) => {
                    self.count("sent");
                    return true;
                }
                Err(problem) => self.warn(&problem),
            }
            if let Some(pause) = pause {
                sleep(pause).await;
            }
        }
        self.count("failed");
        false
    }

    /// Posts the alert once. The problem's text names no address: it may hold a secret.
    async fn post(&self, text: &str) -> Result<(), String> {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::json!({ "text": text }).to_string());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("it answered {}", answer.status().as_u16())),
            Err(error) if error.is_timeout() => {
                Err(format!("it gave no answer within {} s", POST_TIMEOUT.as_secs()))
            }
            Err(error) => Err(error.without_url().to_string()),
        }
    }

    fn count(&self, outcome: &str) {
        self.metrics.notifications.with_label_values(&[outcome]).inc();
    }

    fn warn(&self, problem: &str) {
        if self.warned.due() {
            tracing::warn!(
                problem,
                "the alert about dead letters did not get through to HOOKGATE_NOTIFY_URL: {problem}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use hookgate_ledger::{Limits, SqliteLedger};
    use tokio::time::Instant;

    use super::*;

    fn notifier(directory: &tempfile::TempDir, quiet: Duration, deaths: &Arc<Notify>) -> Notifier {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ledger = SqliteLedger::open(&directory.path().join("hookgate.db"), Limits::default());
        let ledger = Arc::new(ledger.expect("a fresh directory can be written"));
        let metrics = Arc::new(Metrics::new(std::iter::empty()).expect("names are unique"));
        let url = "http://127.0.0.1:1".parse().expect("a URL");
        Notifier::new(ledger, url, quiet, Arc::clone(deaths), metrics).expect("a client needs nothing")
    }

    #[tokio::test(start_paused = true)]
    async fn a_death_is_looked_for_when_its_burst_is_together_and_otherwise_now_and_then() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let deaths = Arc::<Notify>::default();
        let notifier = notifier(&directory, Duration::from_secs(300), &deaths);
        let begun = Instant::now();
        for _ in 0..50 {
            deaths.notify_one();
        }
        notifier.wait().await;
        assert_eq!(begun.elapsed(), GATHER);
        notifier.wait().await;
        assert_eq!(begun.elapsed(), GATHER + LOOK_INTERVAL);
    }
}
