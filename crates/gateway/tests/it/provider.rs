//! The provider's side: signed deliveries as the gateway should get them, and the secrets they are signed
//! with.

use std::time::{SystemTime, UNIX_EPOCH};

use hookgate_signature::Tolerance;
use hookgate_webhook::{EventId, EventKey, Provider, SourceName};

/// The secret of all test sources that use text secrets.
pub const SECRET: &str = "whsec_dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=";

/// A delivery, ready to be sent once or many times.
#[derive(Debug, Clone)]
pub struct Signed {
    /// Source it goes to.
    pub source: String,
    /// The provider's id of its event.
    pub event_id: String,
    /// All headers.
    pub headers: Vec<(String, String)>,
    /// The raw body.
    pub body: Vec<u8>,
}

impl Signed {
    /// What the ledger knows it by.
    pub fn key(&self) -> EventKey {
        EventKey {
            source: SourceName::parse(&self.source).expect("test sources have names"),
            id: EventId::parse(&self.event_id).expect("test events have ids"),
        }
    }

    /// The key of its claim in Redis.
    pub fn claim_key(&self) -> String {
        format!("webhook:{}:{}", self.source, self.event_id)
    }

    /// What targets know it by.
    pub fn target_id(&self) -> String {
        format!("{}:{}", self.source, self.event_id)
    }
}

/// A realistic event of the provider, new with every call.
pub fn event(provider: Provider) -> Signed {
    let sample = provider
        .sample(None, rand::random(), now() * 1000)
        .expect("there is a sample");
    let headers = sample
        .headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut signed = sign(provider, SECRET, &sample.id, &sample.body);
    signed.headers.splice(0..0, headers);
    signed
}

/// A Stripe event with this id and the least of a body.
pub fn stripe(event_id: &str) -> Signed {
    let id = serde_json::to_string(event_id).expect("text is JSON");
    let body = format!(
        r#"{{"id":{id},"type":"invoice.paid","created":1790000000,"livemode":true,"data":{{"object":{{"id":"in_1"}}}}}}"#
    );
    let mut signed = sign(Provider::Stripe, SECRET, event_id, body.as_bytes());
    signed.event_id = event_id.to_owned();
    signed
}

/// A Stripe event that nobody has seen before.
pub fn fresh() -> Signed {
    stripe(&format!("evt_{:032x}", rand::random::<u128>()))
}

/// Signs any bytes as the provider would, at this moment.
pub fn sign(provider: Provider, secret: &str, id: &str, body: &[u8]) -> Signed {
    sign_at(provider, secret, id, body, now())
}

/// Signs any bytes as the provider would at another moment, in unix seconds.
pub fn sign_at(provider: Provider, secret: &str, id: &str, body: &[u8], moment: i64) -> Signed {
    let keys = provider
        .keys(&[secret.into()], Tolerance::Off)
        .expect("the secret fits the scheme");
    let headers = keys
        .sign(id, moment, body)
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Signed {
        source: provider.name().to_owned(),
        event_id: id.to_owned(),
        headers,
        body: body.to_vec(),
    }
}

/// Unix seconds.
#[expect(clippy::disallowed_methods, reason = "a provider has a clock of its own")]
pub fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock stands after 1970");
    i64::try_from(since.as_secs()).expect("the year fits")
}
