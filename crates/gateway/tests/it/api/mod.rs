//! The admin API from outside: a client with its token, and what it is told.

mod auth;
mod away;
mod consumers;
mod decisions;
mod document;
mod pull;
mod scene;
mod search;
mod secrets;
mod twin_replays;

use reqwest::Method;
use serde_json::Value;

use crate::gateway::{Answer, Replica, client};

/// Opens everything.
pub const ADMIN_TOKEN: &str = "admin-token-of-the-tests";

/// Opens `/v1/consume`.
pub const CONSUME_TOKEN: &str = "consume-token-of-the-tests";

/// Somebody who uses the API.
#[derive(Clone)]
pub struct Api {
    address: String,
    token: Option<String>,
    client: reqwest::Client,
}

impl Api {
    /// With the admin token.
    pub fn of(replica: &Replica) -> Self {
        Self {
            address: replica.admin_address().to_owned(),
            token: Some(ADMIN_TOKEN.to_owned()),
            client: client(),
        }
    }

    /// The same with another token, or none.
    pub fn with(&self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self.clone()
        }
    }

    /// A request that is ready to be sent.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self
            .client
            .request(method, format!("http://{}{path}", self.address));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        sent(self.request(Method::GET, path)).await
    }

    /// POST of a JSON document.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }

    /// POST of a text.
    pub async fn post_text(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        sent(self.request(Method::POST, path).body(body)).await
    }
}

/// Sends a request, and waits for the answer.
pub async fn sent(request: reqwest::RequestBuilder) -> Answer {
    Answer::of(request.send().await.expect("the admin listener answers")).await
}

/// Insists on a problem document of this kind, and returns its `field` and `allowed`.
pub fn problem(answer: &Answer, status: u16, code: &str) -> (String, String) {
    assert_eq!(
        (answer.status, &answer.json["code"]),
        (status, &code.into()),
        "{answer:#?}"
    );
    assert_eq!(
        answer.headers["content-type"], "application/problem+json",
        "{answer:#?}"
    );
    assert_eq!(answer.headers["cache-control"], "no-store", "{answer:#?}");
    assert_eq!(answer.json["type"], format!("urn:hookgate:problem:{code}"));
    assert_eq!(answer.json["status"], status);
    for text in ["title", "detail"] {
        assert!(
            answer.json[text].as_str().is_some_and(|text| !text.is_empty()),
            "{answer:#?}"
        );
    }
    let text = |name: &str| answer.json[name].as_str().unwrap_or_default().to_owned();
    (text("field"), text("allowed"))
}
