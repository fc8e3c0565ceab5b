//! Events as a receiver would hand them over.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use hookgate_ledger::{Appended, DeliveryId, Fetch, Job, Lane, Ledger, NewEvent, State, Ticket};
use hookgate_webhook::{EventId, EventKey, Field, Mode, ProviderTime, SourceName};

/// A lease that does not end during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A lease that ends at once; wait until the ledger says so.
pub(crate) const SHORT: Duration = Duration::from_millis(1);

pub(crate) fn source(name: &str) -> SourceName {
    SourceName::parse(name).unwrap()
}

pub(crate) fn key(id: &str) -> EventKey {
    EventKey {
        source: source("stripe"),
        id: EventId::parse(id).unwrap(),
    }
}

/// One delivery of the event of that id; every call is another delivery of the same bytes.
pub(crate) fn event(id: &str) -> NewEvent {
    with_body(id, format!(r#"{{"id":"{id}"}}"#).into_bytes())
}

pub(crate) fn with_body(id: &str, body: Vec<u8>) -> NewEvent {
    NewEvent {
        key: key(id),
        provider: "stripe",
        account: Field::parse("acct_1"),
        mode: Mode::Live,
        event_type: Field::parse("invoice.paid"),
        object_id: Field::parse("in_1"),
        provider_time: Some(ProviderTime {
            text: "1700000000".into(),
            unix_ms: 1_700_000_000_123,
        }),
        body_sha256: digest(&body),
        headers: vec![("content-type".into(), b"application/json".to_vec())],
        body: Bytes::from(body),
        delivery: DeliveryId(rand::random()),
        content_keys: Vec::new(),
    }
}

/// Not the real digest: the ledger only compares it.
fn digest(body: &[u8]) -> [u8; 32] {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&hasher.finish().to_be_bytes());
    digest
}

pub(crate) fn copy_in(state: State) -> Appended {
    Appended::Duplicate {
        state,
        same_body: true,
    }
}

/// Up to 100 of a source that shares a bound with nobody else of another number.
pub(crate) fn lane(name: &str, pool: u32) -> Lane {
    Lane {
        source: source(name),
        room: 100,
        pool,
        pool_room: 100,
    }
}

/// What a worker of the one source wants: up to 100 jobs.
pub(crate) fn all(lease: Duration) -> Fetch {
    Fetch {
        lanes: vec![lane("stripe", 0)],
        limit: 100,
        bytes_max: 1 << 20,
        lease,
        ticket: Ticket::draw(),
    }
}

/// Fetches up to 100 jobs.
pub(crate) async fn fetch(ledger: &dyn Ledger, lease: Duration) -> Vec<Job> {
    ledger.fetch(all(lease)).await.unwrap()
}

/// Fetches the one job that is due.
pub(crate) async fn fetch_one(ledger: &dyn Ledger, lease: Duration) -> Job {
    let mut jobs = fetch(ledger, lease).await;
    assert_eq!(jobs.len(), 1, "jobs due");
    jobs.remove(0)
}
