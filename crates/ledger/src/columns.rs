//! From columns to the domain's words, the same in both dialects. What a column holds that has no such word
//! is an error, never a guess.

use std::time::Duration;

use hookgate_webhook::{EventId, EventKey, SourceName};

use crate::{Alike, Appended, DeliveryId, NewEvent, State};

/// The row that a copy met.
#[derive(Debug)]
pub(crate) struct Original {
    delivery: DeliveryId,
    state: State,
    body_sha256: [u8; 32],
    is_linked: bool,
}

impl Original {
    pub(crate) fn read(
        delivery: [u8; 16],
        state_name: &str,
        body_sha256: [u8; 32],
        is_linked: bool,
    ) -> sqlx::Result<Self> {
        Ok(Self {
            delivery: DeliveryId::from_bytes(delivery),
            state: state(state_name)?,
            body_sha256,
            is_linked,
        })
    }

    /// What the copy is told. Its own delivery id means that an earlier try of the same append was committed
    /// and only its answer was lost: then it is told what that would have been.
    pub(crate) fn meets(&self, copy: &NewEvent) -> Appended {
        match (self.delivery == copy.delivery, self.is_linked) {
            (true, false) => Appended::Accepted,
            (true, true) if self.state == State::Twin => {
                Appended::Twin(Alike::remembered(&copy.content_keys, true))
            }
            (true, true) => Appended::Alike(Alike::remembered(&copy.content_keys, false)),
            (false, _) => Appended::Duplicate {
                state: self.state,
                same_body: self.body_sha256 == copy.body_sha256,
            },
        }
    }
}

/// The state of that name.
pub(crate) fn state(name: &str) -> sqlx::Result<State> {
    State::parse(name).ok_or_else(|| sqlx::Error::Decode(format!("unknown state {name:?}").into()))
}

/// The key of a row.
pub(crate) fn key(source: &str, event_id: &str) -> sqlx::Result<EventKey> {
    let undecodable = |error| sqlx::Error::Decode(Box::new(error));
    Ok(EventKey {
        source: SourceName::parse(source).map_err(undecodable)?,
        id: EventId::parse(event_id).map_err(undecodable)?,
    })
}

/// A count, which the tables keep from being negative.
pub(crate) fn count(number: i64) -> sqlx::Result<u32> {
    u32::try_from(number).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// A bound as databases count; none counts further.
pub(crate) fn signed(bound: u64) -> i64 {
    i64::try_from(bound).unwrap_or(i64::MAX)
}

/// An id as SQLite gives it.
pub(crate) fn id(stored: &[u8]) -> sqlx::Result<DeliveryId> {
    bytes(stored).map(DeliveryId::from_bytes)
}

/// Bytes of a fixed length.
pub(crate) fn bytes<const LENGTH: usize>(stored: &[u8]) -> sqlx::Result<[u8; LENGTH]> {
    stored
        .try_into()
        .map_err(|_| sqlx::Error::Decode(format!("not {LENGTH} bytes long").into()))
}

/// A span of time as SQLite's tables count it.
pub(crate) fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
