//! A replica with something to look at: a source whose target takes what it is told to take, one whose events
//! are pulled, and events in the states that people decide about.

use hookgate_harness::{Answer as TargetAnswer, Upstream};
use hookgate_webhook::Provider;
use serde_json::{Value, json};

use super::{ADMIN_TOKEN, Api};
use crate::embedded::Embedded;
use crate::patience::eventually;
use crate::provider::{self, Signed};

/// Stripe's events go to a target, GitHub's are pulled. A failed delivery is a dead letter at once.
const SOURCES: &str = "[sources.stripe]\n[sources.github]\nconsumer = \"pull\"\n";

/// The replica and its target.
pub struct Scene {
    pub replica: Embedded,
    pub api: Api,
    pub target: Upstream,
    _directory: tempfile::TempDir,
}

impl Scene {
    /// A replica without events.
    pub async fn set() -> Self {
        Self::set_with(&[]).await
    }

    /// The same with further settings.
    pub async fn set_with(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("hookgate.toml");
        std::fs::write(&file, SOURCES).expect("the directory takes a file");
        let target = Upstream::start().await;
        let (file, url) = (file.display().to_string(), target.url());
        let mut all = vec![
            ("HOOKGATE_CONFIG", file.as_str()),
            ("HOOKGATE_ADMIN_TOKEN", ADMIN_TOKEN),
            ("HOOKGATE_TARGET_URL", &url),
            ("HOOKGATE_RETRY_MAX_ATTEMPTS", "1"),
        ];
        all.extend(settings);
        let replica = Embedded::serve_with(&all).await;
        let api = Api::of(&replica);
        Self {
            replica,
            api,
            target,
            _directory: directory,
        }
    }

    /// Delivers an event that its target takes, and waits for that.
    pub async fn done(&self) -> String {
        self.deliver(provider::event(Provider::Stripe), 200, "done").await
    }

    /// Delivers an event that its target refuses.
    pub async fn dead(&self) -> String {
        self.deliver(provider::event(Provider::Stripe), 422, "dead").await
    }

    /// Delivers an event to a target that answers so, and waits for the state that follows.
    pub async fn deliver(&self, event: Signed, status: u16, state: &str) -> String {
        self.target.answer(TargetAnswer::Status(status));
        assert!(self.replica.deliver(&event).await.is_ok(false));
        self.wait_for_state(&event.event_id, state).await;
        event.event_id
    }

    /// Waits until an event of Stripe is in this state, and returns what the API shows of it.
    pub async fn wait_for_state(&self, id: &str, state: &str) -> Value {
        eventually(&format!("{id} is {state}"), async || {
            let shown = self.api.get(&path(id, "")).await.json;
            (shown["state"] == state).then_some(shown)
        })
        .await
    }

    /// Delivers an event that is pulled; returns its lease.
    pub async fn pulled(&self) -> String {
        assert!(
            self.replica
                .deliver(&provider::event(Provider::Github))
                .await
                .is_ok(false)
        );
        let request = json!({"sources": ["github"], "lease": "1h", "wait": "60s"});
        let answer = self.api.post("/v1/consume", &request).await;
        let lease = answer.json["items"][0]["lease"].as_str();
        lease.expect("an event is pulled").to_owned()
    }
}

/// The path of an event of Stripe, its id percent-encoded.
pub fn path(id: &str, rest: &str) -> String {
    let id = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
    format!("/v1/events/stripe/{id}{rest}")
}
