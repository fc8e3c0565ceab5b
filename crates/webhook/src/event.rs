//! One event as read from a verified delivery.

use std::fmt;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::value::Value;
use crate::{EventId, Field, ProviderTime, Unreadable};

/// What identifies an event and where its bytes are. No interpretation of its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// The provider's id, or a digest where the provider gave none.
    pub id: EventId,
    /// Whether the id is a digest, because the provider gave none.
    pub id_is_digest: bool,
    /// The provider's own id, where it alone does not tell two events apart and `id` says more.
    pub own_id: Option<Field>,
    /// The provider's type, e.g. `invoice.paid`.
    pub event_type: Option<Field>,
    /// Id of the object the event is about.
    pub object_id: Option<Field>,
    /// The provider's account, shop or installation it belongs to.
    pub account: Option<Field>,
    /// Live or test.
    pub mode: Mode,
    /// When the provider says it happened.
    pub provider_time: Option<ProviderTime>,
    /// The event's own bytes: the whole body, or its exact slice of a batch.
    pub body: Bytes,
    /// SHA-256 of `body`: finds the same content under another id.
    pub body_sha256: [u8; 32],
    /// Its place in a delivery of several events, where the provider sends such.
    pub batch: Option<Batch>,
    /// Fields that were present but not acceptable, kept as null. Counted by the receiver.
    pub dropped: Vec<Dropped>,
}

impl Event {
    /// An event of which only the id is known yet.
    pub(crate) fn new(id: EventId, body: Bytes) -> Self {
        Self {
            id,
            id_is_digest: false,
            own_id: None,
            event_type: None,
            object_id: None,
            account: None,
            mode: Mode::Unknown,
            provider_time: None,
            body_sha256: Sha256::digest(&body).into(),
            body,
            batch: None,
            dropped: Vec::new(),
        }
    }

    /// An event to which the provider gave no id: its bytes and its name identify it.
    pub(crate) fn without_id(name: &Value<'_>, body: Bytes) -> Self {
        let name = match name {
            Value::Text(name) => name.as_ref(),
            _ => "",
        };
        Self {
            id_is_digest: true,
            ..Self::new(EventId::digest(&body, name), body)
        }
    }

    /// The id as the provider prints it; `None` where it gave none.
    pub fn given_id(&self) -> Option<&str> {
        match (&self.own_id, self.id_is_digest) {
            (Some(own), _) => Some(own.as_str()),
            (None, false) => Some(self.id.as_str()),
            (None, true) => None,
        }
    }

    /// Notes the provider's own id beside the one that tells events apart.
    pub(crate) fn given_as(mut self, own: &Value<'_>) -> Self {
        self.own_id = own.text_or_digits();
        self
    }

    /// An event whose provider guarantees no id: by its id if there is one, else as [`Event::without_id`]. An id that is
    /// no text is none; one that is unacceptable is not passed over, since a digest in its place would hide it.
    pub(crate) fn identified(id: &Value<'_>, name: &Value<'_>, body: Bytes) -> Result<Self, Unreadable> {
        match id {
            Value::Text(text) if !text.is_empty() => Ok(Self::new(id.event_id("")?, body)),
            Value::Broken(problem) => Err(Unreadable::BadEventId(problem)),
            Value::Text(_) | Value::Absent | Value::Number(_) | Value::Bool(_) | Value::Compound => {
                Ok(Self::without_id(name, body))
            }
        }
    }

    pub(crate) fn with_type(mut self, value: &Value<'_>) -> Self {
        self.event_type = self.note(Dropped::Type, value, value.text());
        self
    }

    pub(crate) fn with_object(mut self, value: &Value<'_>) -> Self {
        self.object_id = self.note(Dropped::ObjectId, value, value.text_or_digits());
        self
    }

    pub(crate) fn with_account(mut self, value: &Value<'_>) -> Self {
        self.account = self.note(Dropped::Account, value, value.text_or_digits());
        self
    }

    pub(crate) fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn with_time(mut self, value: &Value<'_>) -> Self {
        self.provider_time = self.note(Dropped::Time, value, ProviderTime::read(value));
        self
    }

    /// A time in the provider's own spelling, which only its file knows how to read.
    pub(crate) fn with_time_read(mut self, value: &Value<'_>, time: Option<ProviderTime>) -> Self {
        self.provider_time = self.note(Dropped::Time, value, time);
        self
    }

    /// Passes on what could be made of a value; what was there and could not be used counts as dropped.
    fn note<T>(&mut self, name: Dropped, value: &Value<'_>, made: Option<T>) -> Option<T> {
        if made.is_none() && *value != Value::Absent {
            self.dropped.push(name);
        }
        made
    }
}

impl fmt::Debug for Event {
    /// Names the event and leaves its body out, which is somebody's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("id_is_digest", &self.id_is_digest)
            .field("own_id", &self.own_id)
            .field("event_type", &self.event_type)
            .field("object_id", &self.object_id)
            .field("account", &self.account)
            .field("mode", &self.mode)
            .field("provider_time", &self.provider_time)
            .field("body_bytes", &self.body.len())
            .field("batch", &self.batch)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

/// The place of an event in a delivery that carries several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    /// SHA-256 of the whole body.
    pub sha256: [u8; 32],
    /// Which of the events, from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

/// Which side of a provider's account an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Real money.
    Live,
    /// The provider's test or sandbox side.
    Test,
    /// The provider does not say.
    Unknown,
}

impl Mode {
    /// As stored and shown: `live`, `test`; `None` when unknown.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Live => Some("live"),
            Self::Test => Some("test"),
            Self::Unknown => None,
        }
    }
}

/// A descriptive field that was dropped because it is too long, holds control characters, or is a time
/// out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// The type.
    Type,
    /// The object id.
    ObjectId,
    /// The account.
    Account,
    /// The provider's time.
    Time,
}

impl Dropped {
    /// Label of `hookgate_ignored_total`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Type => "bad_event_type",
            Self::ObjectId => "bad_object_id",
            Self::Account => "bad_account",
            Self::Time => "bad_event_time",
        }
    }

    /// All reasons, so that counters can be present at zero from the start.
    pub const REASONS: [&'static str; 4] =
        ["bad_event_type", "bad_object_id", "bad_account", "bad_event_time"];
}
