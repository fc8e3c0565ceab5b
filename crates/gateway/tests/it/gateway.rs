//! The gateway under test: one or several replicas of the real binary on free ports, with their stores.

use std::collections::BTreeMap;
use std::process::Command;

use hookgate_harness::{PATIENCE, Process};
use serde_json::Value;

/// One running process of the gateway.
pub struct Replica {
    process: Process,
    public: String,
    admin: String,
    client: reqwest::Client,
}

/// One HTTP answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Header lines by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null if it is none.
    pub json: Value,
}

/// A delivery that is under way. The request goes on if this is dropped.
pub struct Sent(tokio::task::JoinHandle<Option<Answer>>);

impl Sent {
    /// The gateway's answer.
    pub async fn answer(&mut self) -> Answer {
        self.outcome().await.expect("the gateway answers")
    }

    /// `None`: the connection broke before the answer.
    ///
    /// # Panics
    /// If neither comes within [`PATIENCE`].
    pub async fn outcome(&mut self) -> Option<Answer> {
        let outcome = tokio::time::timeout(PATIENCE, &mut self.0).await;
        let outcome = outcome.expect("a delivery is answered while we wait");
        outcome.expect("sending does not panic")
    }
}

/// The gateway binary with nothing of this process's environment but `PATH`.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command.args(arguments).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

impl Replica {
    /// Starts `hookgate serve` and waits until it listens.
    pub async fn serve(settings: &[(&str, &str)]) -> Self {
        Self::start("serve", settings).await
    }

    /// Starts a role and waits until it listens.
    pub async fn start(role: &str, settings: &[(&str, &str)]) -> Self {
        let mut command = command(&[role]);
        command
            .env("HOOKGATE_LISTEN", "127.0.0.1:0")
            .env("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0");
        command.envs(settings.iter().copied());
        let process = Process::spawn(command);
        let line = process
            .wait_for_line(|line| line.contains("probes and metrics on "))
            .await;
        // JSON or pretty, the message is the same sentence.
        let address = |before: &str| {
            let rest = line.split(before).nth(1)?;
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':')?;
            Some(rest[..end].trim_end_matches(['.', ':']).to_owned())
        };
        let admin = address("probes and metrics on ").expect("the start names the admin address");
        let public = address("listening on ").unwrap_or_default();
        Self {
            process,
            public,
            admin,
            client: client(),
        }
    }

    /// The child process: signals, lines, exit.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// `127.0.0.1:port` of the public listener.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// `127.0.0.1:port` of the admin listener.
    pub fn admin_address(&self) -> &str {
        &self.admin
    }

    /// `http://…/webhooks/<source>`.
    pub fn url(&self, source: &str) -> String {
        format!("http://{}/webhooks/{source}", self.public)
    }

    /// Posts a body with headers to a source.
    pub async fn post(
        &self,
        source: &str,
        headers: &[(String, String)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let mut request = self.client.post(self.url(source)).body(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        Answer::of(request.send().await.expect("the gateway answers")).await
    }

    /// Posts a signed delivery.
    pub async fn deliver(&self, delivery: &crate::provider::Signed) -> Answer {
        self.post(&delivery.source, &delivery.headers, delivery.body.clone())
            .await
    }

    /// Posts a signed delivery; the answer is waited for later, or never.
    pub fn send(&self, delivery: &crate::provider::Signed) -> Sent {
        self.send_to(&self.public, delivery)
    }

    /// As [`Self::send`], to an address that leads here.
    pub fn send_to(&self, address: &str, delivery: &crate::provider::Signed) -> Sent {
        let url = format!("http://{address}/webhooks/{}", delivery.source);
        let mut request = self.client.post(url);
        for (name, value) in &delivery.headers {
            request = request.header(name, value);
        }
        let sending = request.body(delivery.body.clone()).send();
        Sent(tokio::spawn(async move {
            Some(Answer::of(sending.await.ok()?).await)
        }))
    }

    /// A page of the admin listener.
    pub async fn admin(&self, path: &str) -> (u16, String) {
        let answer = self
            .client
            .get(format!("http://{}{path}", self.admin))
            .send()
            .await;
        let answer = answer.expect("the admin listener answers");
        (
            answer.status().as_u16(),
            answer.text().await.expect("the admin listener sends text"),
        )
    }

    /// The value of one series, e.g. `hookgate_deliveries_total{outcome="accepted",source="stripe"}` (labels
    /// in alphabetical order); 0 if it is not there.
    pub async fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.admin("/metrics").await;
        let found = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        found.unwrap_or_default()
    }

    /// Deliveries of a source by outcome.
    pub async fn deliveries(&self, source: &str, outcome: &str) -> f64 {
        self.metric(&format!(
            "hookgate_deliveries_total{{outcome=\"{outcome}\",source=\"{source}\"}}"
        ))
        .await
    }

    /// All series of the metrics page with their values.
    pub async fn series(&self) -> BTreeMap<String, f64> {
        let (status, text) = self.admin("/metrics").await;
        assert_eq!(status, 200, "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a line has a name and a value");
                (name.to_owned(), value.parse().expect("a value is a number"))
            })
            .collect()
    }

    /// Refusals of a source by reason.
    pub async fn refusals(&self, source: &str, reason: &str) -> f64 {
        self.metric(&format!(
            "hookgate_refusals_total{{reason=\"{reason}\",source=\"{source}\"}}"
        ))
        .await
    }

    /// A request of any method to any path of the public listener.
    pub async fn ask(&self, method: reqwest::Method, path: &str) -> Answer {
        let request = self
            .client
            .request(method, format!("http://{}{path}", self.public));
        Answer::of(request.send().await.expect("the gateway answers")).await
    }

    /// The log lines about deliveries, up to the one that answers a request with this id.
    pub async fn delivery_lines(&self, last_request_id: &str) -> Vec<Value> {
        let is_last = |line: &str| line.contains(last_request_id);
        self.process.wait_for_line(is_last).await;
        let lines = self.process.lines();
        let lines = lines
            .iter()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["target"] == "hookgate::delivery")
            .collect()
    }

    /// Duplicates of a source that this layer recognised.
    pub async fn duplicates(&self, source: &str, decided_by: &str) -> f64 {
        self.metric(&format!(
            "hookgate_duplicates_skipped_total{{decided_by=\"{decided_by}\",source=\"{source}\"}}"
        ))
        .await
    }

    /// Events of a source that were decided without the claim store.
    pub async fn fallbacks(&self, source: &str) -> f64 {
        self.metric(&format!("hookgate_claim_fallbacks_total{{source=\"{source}\"}}"))
            .await
    }

    /// Whether the claim store answers, as this replica sees it.
    pub async fn claims_are_up(&self) -> bool {
        self.metric("hookgate_claims_up").await == 1.0
    }

    /// Whether the ledger answers, as this replica sees it.
    pub async fn ledger_is_up(&self) -> bool {
        self.metric("hookgate_ledger_up").await == 1.0
    }

    /// Log lines of this level.
    pub fn lines_of_level(&self, level: &str) -> Vec<String> {
        let mark = format!("\"level\":\"{level}\"");
        let lines = self.process.lines().into_iter();
        lines.filter(|line| line.contains(&mark)).collect()
    }

    /// Sends SIGTERM and waits for the exit code.
    pub async fn stop(&self) -> Option<i32> {
        self.process.signal("TERM");
        self.process.wait_exit().await
    }
}

/// An HTTP client with nothing of the environment.
pub fn client() -> reqwest::Client {
    // The first test installs it, the others find it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        // Shorter than any server here keeps a connection, so that none is used that is being closed.
        .pool_idle_timeout(std::time::Duration::from_secs(2))
        .build()
        .expect("a client needs nothing")
}

impl Answer {
    /// The answer, read to its end.
    pub async fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let body = response.bytes().await.expect("the answer has a body");
        Self {
            status,
            headers,
            json: serde_json::from_slice(&body).unwrap_or_default(),
        }
    }

    /// Whether it is 200 and says so of a fresh (`false`) or known (`true`) event.
    pub fn is_ok(&self, duplicate: bool) -> bool {
        self.status == 200 && self.json["received"] == true && self.json["duplicate"] == duplicate
    }

    /// Whether the sender is told to come again later, and with which word.
    pub fn says_later(&self, status: u16, error: &str) -> bool {
        self.status == status && self.error() == error && self.headers.contains_key("retry-after")
    }

    /// The contract's word for a refusal.
    pub fn error(&self) -> &str {
        self.json["error"].as_str().unwrap_or_default()
    }
}
