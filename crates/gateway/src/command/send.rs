//! `hookgate send`: realistic signed events, for trying out and for smoke tests.

use std::path::PathBuf;

use clap::Args;
use hookgate_signature::{Keys, Tolerance};
use hookgate_webhook::{Provider, Sample, Sending, Success};
use secrecy::SecretString;

use super::{Failure, print};
use crate::clock;
use crate::config::setting;

/// Where `hookgate dev` listens.
const DEV_URL: &str = "http://127.0.0.1:8080";

/// Arguments of `hookgate send`.
#[derive(Debug, Args)]
pub struct Send {
    /// Source to send to; its name is the provider unless --provider says otherwise
    #[arg(value_name = "SOURCE")]
    source: String,
    /// Provider whose events to make
    #[arg(long)]
    provider: Option<String>,
    /// Event type, e.g. invoice.paid; an unknown one is answered with the list
    #[arg(long = "type", value_name = "T")]
    event_type: Option<String>,
    /// Send each event twice: the second must be a duplicate
    #[arg(long)]
    twice: bool,
    /// How many events
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: u32,
    /// Full URL of the source, or the gateway's base URL; by default the dev address
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// File with the secret; by default `<SOURCE>_WEBHOOK_SECRET`, else the dev secret
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl Send {
    /// Sends, and prints each answer. Fails if one is not success as the provider knows it.
    pub fn run(&self) -> Result<(), Failure> {
        // One TLS library for every client; a second call finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let provider: Provider =
            self.provider
                .as_deref()
                .unwrap_or(&self.source)
                .parse()
                .map_err(|unknown| {
                    Failure::usage(format!("{unknown}; for a source of another name give --provider"))
                })?;
        let keys = provider
            .keys(&self.secrets(provider)?, Tolerance::Off)
            .map_err(Failure::usage)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::new)?;
        runtime.block_on(self.send_all(provider, &keys))
    }

    async fn send_all(&self, provider: Provider, keys: &Keys) -> Result<(), Failure> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .build()
            .map_err(Failure::new)?;
        let mut refused = 0;
        for _ in 0..self.count {
            let now_ms = i64::try_from(clock::since_epoch().as_millis()).unwrap_or(i64::MAX);
            let sample = provider
                .sample(self.event_type.as_deref(), rand::random(), now_ms)
                .map_err(Failure::usage)?;
            for _ in 0..if self.twice { 2 } else { 1 } {
                refused += u32::from(!self.send(&client, provider, keys, &sample).await?);
            }
        }
        if refused == 0 {
            Ok(())
        } else {
            Err(Failure::new(format!(
                "{refused} answer(s) were not what the provider takes for success"
            )))
        }
    }

    async fn send(
        &self,
        client: &reqwest::Client,
        provider: Provider,
        keys: &Keys,
        sample: &Sample,
    ) -> Result<bool, Failure> {
        let url = self.url();
        let sending = Sending {
            url: &url,
            now: clock::unix_seconds(),
        };
        let signed = provider.sign(keys, sample, &sending);
        let mut request = client.post(&signed.url).body(signed.body);
        for (name, value) in &signed.headers {
            request = request.header(*name, value);
        }
        let answer = request.send().await.map_err(|error| {
            Failure::new(format!(
                "{url} cannot be reached ({}); is `hookgate dev` running?",
                error.without_url()
            ))
        })?;
        let status = answer.status().as_u16();
        let body = answer.text().await.unwrap_or_default();
        print(&format!("{status} {body}\n"));
        Ok(status == expected_status(provider))
    }

    fn url(&self) -> String {
        let base = self.url.as_deref().unwrap_or(DEV_URL).trim_end_matches('/');
        if base.contains("/webhooks/") {
            base.to_owned()
        } else {
            format!("{base}/webhooks/{}", self.source)
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a command-line tool reads its own secret from the environment"
    )]
    fn secrets(&self, provider: Provider) -> Result<Vec<SecretString>, Failure> {
        if let Some(path) = &self.secret_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("--secret-file {}: {error}", path.display())))?;
            return Ok(text.lines().map(SecretString::from).collect());
        }
        let [variable, _] = setting::secret_variables(&self.source);
        let list = |list: String| list.split(',').map(|secret| secret.trim().into()).collect();
        Ok(std::env::var(variable).map_or_else(|_| provider.dev_secrets(), list))
    }
}

/// What the gateway answers to an event of this provider that is safe.
fn expected_status(provider: Provider) -> u16 {
    match provider.knowledge().success {
        Success::Ok | Success::OkAccepted => 200,
        Success::NoContent => 204,
    }
}
