//! Consumers that pull: a deployment for them, and what one of them does.

use hookgate_webhook::Provider;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Api, CONSUME_TOKEN};
use crate::deployment::{Deployment, Stores};
use crate::gateway::{Answer, Replica};
use crate::patience::until;
use crate::provider::{self, Signed};

/// Longer than any test waits for an answer: who gets one was woken.
pub const LONG: &str = "60s";

/// A deployment whose events are pulled.
pub async fn deployment(stores: Stores) -> Deployment {
    Deployment::on(stores)
        .await
        .set("HOOKGATE_CONSUMER", "pull")
        .set("HOOKGATE_CONSUME_TOKEN", CONSUME_TOKEN)
}

/// One who pulls from a replica.
#[derive(Clone)]
pub struct Consumer(Api);

impl Consumer {
    pub fn of(replica: &Replica) -> Self {
        Self(Api::of(replica).with(Some(CONSUME_TOKEN)))
    }

    /// The answer to a request for events of Stripe, with further wishes.
    pub async fn ask(&self, wishes: Value) -> Answer {
        self.0.post("/v1/consume", &wanting(wishes)).await
    }

    /// The same under way, with its own connection.
    pub fn begin(&self, wishes: Value) -> tokio::task::JoinHandle<Option<Answer>> {
        let request = self.0.request(Method::POST, "/v1/consume");
        let sending = request.body(wanting(wishes).to_string()).send();
        tokio::spawn(async move { Some(Answer::of(sending.await.ok()?).await) })
    }

    /// The events that are given.
    pub async fn pull(&self, wishes: Value) -> Vec<Value> {
        let answer = self.ask(wishes).await;
        assert_eq!(answer.status, 200, "{answer:#?}");
        items(&answer)
    }

    /// The one event that comes sooner or later.
    pub async fn wait_for_one(&self, lease: &str) -> Value {
        let mut items = self.pull(json!({"lease": lease, "wait": LONG})).await;
        assert_eq!(items.len(), 1, "{items:#?}");
        items.remove(0)
    }

    /// Settles one event, and returns what became of that.
    pub async fn settle(&self, item: &Value, mut settlement: Value) -> String {
        settlement["lease"] = item["lease"].clone();
        let answer = self
            .0
            .post("/v1/consume/settle", &json!({"items": [settlement]}))
            .await;
        assert_eq!(answer.status, 200, "{answer:#?}");
        assert_eq!(answer.json["items"][0]["lease"], item["lease"]);
        answer.json["items"][0]["result"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

fn wanting(mut wishes: Value) -> Value {
    wishes["sources"] = json!(["stripe"]);
    wishes
}

/// The events of an answer.
pub fn items(answer: &Answer) -> Vec<Value> {
    answer.json["items"].as_array().cloned().unwrap_or_default()
}

/// Waits until so many consumers wait at this replica.
pub async fn until_waiting(replica: &Replica, consumers: f64) {
    until("consumers wait", async || {
        replica.metric("hookgate_consumers_waiting").await == consumers
    })
    .await;
}

/// Delivers a fresh event.
pub async fn deliver(replica: &Replica) -> Signed {
    let event = provider::event(Provider::Stripe);
    assert!(replica.deliver(&event).await.is_ok(false));
    event
}
