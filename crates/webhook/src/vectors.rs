//! Judges test vectors: recorded deliveries with the secrets, the clock and the outcome that go with
//! them, one JSON object a line. Behind `hookgate verify --jsonl`, and behind our own tests.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate_signature::{BadSecret, Delivery, Headers, Keys, Refusal, Tolerance};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::{Event, Provider, Reading};

/// What came of one vector, in the order in which it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The vector's own name.
    pub name: String,
    /// `ok`, or the reason of the refusal.
    pub verdict: &'static str,
    /// The event's id. This and the fields below are null on a refusal, on a verified body that cannot be
    /// read, and where the provider has none.
    pub event_id: Option<String>,
    /// Its type.
    pub event_type: Option<String>,
    /// Id of the object it is about.
    pub object_id: Option<String>,
    /// The provider's time, exactly as in the source.
    pub event_time: Option<String>,
    /// Whether all of this equals what the vector expects. A vector without `expect` expects nothing.
    #[serde(skip)]
    pub as_expected: bool,
}

/// A line that is no vector, or one that cannot be judged here.
#[derive(Debug, thiserror::Error)]
pub enum BadLine {
    /// Not a JSON object of the documented form. The parser's own words would quote a value.
    #[error("the line is not a vector: column {column} is {problem}")]
    NotAVector {
        /// Where reading ended, from 1.
        column: usize,
        /// In which way it is wrong.
        problem: &'static str,
    },
    /// The provider is not known.
    #[error("vector {name}: provider {provider:?} is unknown")]
    UnknownProvider {
        /// The vector's name.
        name: String,
        /// The provider it names.
        provider: String,
    },
    /// The body is not base64.
    #[error("vector {name}: body_b64 is not base64")]
    BadBody {
        /// The vector's name.
        name: String,
    },
    /// A secret does not fit the provider's scheme.
    #[error("vector {name}: {problem}")]
    BadSecret {
        /// The vector's name.
        name: String,
        /// What is wrong with it.
        #[source]
        problem: BadSecret,
    },
}

#[derive(Deserialize)]
struct Vector {
    name: String,
    provider: String,
    #[serde(default = "post")]
    method: String,
    url: Option<String>,
    headers: Vec<(String, String)>,
    body_b64: String,
    secrets: Vec<String>,
    /// Unix seconds; without it nothing is said about time.
    now: Option<i64>,
    tolerance_s: Option<u64>,
    expect: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    object_id: Option<String>,
    event_time: Option<String>,
}

fn post() -> String {
    "POST".to_owned()
}

/// Judges one line with its own secrets, clock, tolerance and URL.
///
/// # Errors
/// [`BadLine`] if there is nothing to judge; its text never quotes a secret.
pub fn judge(line: &str) -> Result<Verdict, BadLine> {
    let vector: Vector = serde_json::from_str(line).map_err(|error| BadLine::NotAVector {
        column: error.column(),
        problem: match error.classify() {
            Category::Data => "of another type than documented, or a field is missing before it",
            Category::Eof => "the end, and something is missing",
            Category::Syntax | Category::Io => "no JSON",
        },
    })?;
    let provider: Provider = vector.provider.parse().map_err(|_| BadLine::UnknownProvider {
        name: vector.name.clone(),
        provider: vector.provider.clone(),
    })?;
    let keys = vector.keys(provider)?;
    let outcome = vector.deliver(provider, &keys)?;
    Ok(vector.verdict(outcome))
}

impl Vector {
    fn keys(&self, provider: Provider) -> Result<Keys, BadLine> {
        let knowledge = provider.knowledge();
        let tolerance = match (self.now, self.tolerance_s) {
            (Some(_), Some(seconds)) => knowledge.tolerance.with_limit(Duration::from_secs(seconds)),
            (None, _) | (_, None) => Tolerance::Off,
        };
        let secrets: Vec<_> = self.secrets.iter().cloned().map(SecretString::from).collect();
        provider
            .keys(&secrets, tolerance)
            .map_err(|problem| BadLine::BadSecret {
                name: self.name.clone(),
                problem,
            })
    }

    /// The first event of the delivery, or nothing if it is genuine and cannot be read.
    fn deliver(&self, provider: Provider, keys: &Keys) -> Result<Result<Option<Event>, Refusal>, BadLine> {
        let body = STANDARD.decode(&self.body_b64).map_err(|_| BadLine::BadBody {
            name: self.name.clone(),
        })?;
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (&**name, value.as_bytes()));
        let delivery = Delivery {
            method: &self.method,
            url: self.url.as_deref(),
            headers: Headers::from_iter(headers),
            body: Bytes::from(body),
        };
        let verified = provider.verify(keys, delivery, self.now.unwrap_or_default());
        let first = |reading: Reading| reading.events.into_iter().next();
        Ok(verified.map(|verified| provider.read(&verified).ok().and_then(first)))
    }

    fn verdict(self, outcome: Result<Option<Event>, Refusal>) -> Verdict {
        let verdict = outcome.as_ref().map_or_else(Refusal::reason, |_| "ok");
        let event = outcome.ok().flatten();
        let event = event.as_ref();
        let text = |text: &str| text.to_owned();
        let event_id = event.and_then(|event| event.given_id().map(text));
        let event_type = event.and_then(|event| Some(text(event.event_type.as_ref()?.as_str())));
        let object_id = event.and_then(|event| Some(text(event.object_id.as_ref()?.as_str())));
        let event_time = event.and_then(|event| Some(text(&event.provider_time.as_ref()?.text)));
        let as_expected = self.expect.is_none_or(|expect| {
            expect == verdict
                && self.event_id == event_id
                && self.event_type == event_type
                && self.object_id == object_id
                && self.event_time == event_time
        });
        Verdict {
            name: self.name,
            verdict,
            event_id,
            event_type,
            object_id,
            event_time,
            as_expected,
        }
    }
}
