//! What the benches share: signed deliveries of a chosen size, fresh keys, fresh rows, and a runtime.
//!
//! Run with `cargo bench -p hookgate-benches`; each file states its question. Redis and Postgres are started
//! on free ports by the harness, on the same machine and with the same cores as the bench: read the figures
//! as relations, not as limits.

use bytes::Bytes;
use hookgate_ledger::{DeliveryId, NewEvent};
use hookgate_signature::{Delivery, Headers, Keys, Tolerance};
use hookgate_webhook::{EventId, EventKey, Mode, Provider, SourceName};
use tokio::runtime::Runtime;

/// Concurrency of the "at once" benches: what one busy replica has open.
pub const AT_ONCE: usize = 64;

/// The clock of the pure stations, unix seconds.
pub const NOW: i64 = 1_790_000_000;

/// A signed delivery that can be handed out again and again.
pub struct Prepared {
    /// Who signs.
    pub provider: Provider,
    /// The keys that verify it.
    pub keys: Keys,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

/// Providers whose bodies may hold anything beside what identifies the event, so that a body can be of any size.
pub const PROVIDERS: [Provider; 4] = [
    Provider::Stripe,
    Provider::Github,
    Provider::Shopify,
    Provider::StandardWebhooks,
];

impl Prepared {
    /// A delivery of about `bytes` bytes: a JSON object of many small fields, as providers send them.
    pub fn new(provider: Provider, bytes: usize) -> Self {
        Self::signed_at(NOW, provider, bytes, "evt_bench")
    }

    /// The same under an id of its own, signed at a moment of the caller's choice.
    pub fn signed_at(now: i64, provider: Provider, bytes: usize, id: &str) -> Self {
        let keys = provider.keys(&provider.dev_secrets(), Tolerance::Off);
        let keys = keys.expect("the dev secret fits its scheme");
        let body = body(id, bytes);
        let sample = provider
            .sample(None, 1, NOW * 1000)
            .expect("there is a default sample");
        let mut headers = sample.headers;
        headers.extend(keys.sign(id, now, &body));
        Self {
            provider,
            keys,
            headers,
            body,
        }
    }

    /// Its headers.
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    /// One more copy.
    pub fn delivery(&self) -> Delivery<'_> {
        let headers = self.headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        Delivery {
            method: "POST",
            url: None,
            headers: Headers::from_iter(headers),
            body: self.body.clone(),
        }
    }
}

fn body(id: &str, bytes: usize) -> Bytes {
    let mut body = format!(
        r#"{{"id":"{id}","object":"event","type":"invoice.paid","created":{NOW},"livemode":true,"data":{{"object":{{"id":"in_bench","lines":["#
    );
    let line =
        r#"{"id":"il_000000000001","amount":2000,"currency":"usd","description":"caf\u00e9","metadata":{}},"#;
    while body.len() + line.len() < bytes {
        body += line;
    }
    body += "{}]}}}";
    Bytes::from(body)
}

/// A key that nobody has used.
pub fn fresh_key() -> EventKey {
    let id = format!("evt_{:032x}", rand::random::<u128>());
    EventKey {
        source: SourceName::parse("stripe").expect("a source name"),
        id: EventId::parse(&id).expect("an event id"),
    }
}

/// A row of 2 kB that nobody has appended.
pub fn fresh_event() -> NewEvent {
    NewEvent {
        key: fresh_key(),
        provider: "stripe",
        account: None,
        mode: Mode::Live,
        event_type: None,
        object_id: None,
        provider_time: None,
        body_sha256: rand::random(),
        headers: vec![("stripe-signature".into(), vec![b'a'; 90])],
        body: body("evt_bench", 2_000),
        delivery: DeliveryId(rand::random()),
        content_keys: Vec::new(),
    }
}

/// A runtime as the gateway has it.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("threads can be started")
}
