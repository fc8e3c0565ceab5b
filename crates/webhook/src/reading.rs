//! What a verified delivery turned out to be.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::{Batch, Event, Unreadable};

/// What a verified delivery says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its events: one, several where the provider batches, or none where it documents an empty batch. For a handshake
    /// they tell what came, and are not to be kept.
    pub events: Vec<Event>,
    /// What to answer, if this is a handshake and not an event.
    pub handshake: Option<Answer>,
}

/// What a provider wants to hear on a handshake. It holds nothing that was not in the verified delivery, and nothing
/// that a secret of ours has touched unless the provider's file says how a stranger's text is kept away from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Reading {
    /// An ordinary delivery.
    pub(crate) fn of(events: Vec<Event>) -> Self {
        Self {
            events,
            handshake: None,
        }
    }

    /// A delivery of several events, each read from its own slice of the body; `elements` are such slices. One that
    /// cannot be read makes the delivery unreadable, so that no event is passed over in silence.
    pub(crate) fn batch(
        body: &Bytes,
        elements: &[&str],
        read: impl Fn(Bytes) -> Result<Event, Unreadable>,
    ) -> Result<Self, Unreadable> {
        let (sha256, count) = (Sha256::digest(body).into(), elements.len());
        let event = |(index, element): (usize, &&str)| {
            let batch = Some(Batch { sha256, index, count });
            read(body.slice_ref(element.as_bytes())).map(|event| Event { batch, ..event })
        };
        let events = elements.iter().enumerate().map(event);
        events.collect::<Result<_, _>>().map(Self::of)
    }

    /// A handshake; the event only tells what came.
    pub(crate) fn handshake(event: Event, answer: Answer) -> Self {
        Self {
            events: vec![event],
            handshake: Some(answer),
        }
    }
}

impl From<Event> for Reading {
    fn from(event: Event) -> Self {
        Self::of(vec![event])
    }
}
