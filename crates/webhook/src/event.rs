//! One event as read from a verified delivery.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::value::Value;
use crate::{EventId, Field, ProviderTime};

/// What identifies an event and where its bytes are. No interpretation of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The provider's id, or a digest where the provider guarantees none.
    pub id: EventId,
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
    /// Fields that were present but not acceptable, kept as null. Counted by the receiver.
    pub dropped: Vec<Dropped>,
}

impl Event {
    /// An event of which only the id is known yet.
    pub(crate) fn new(id: EventId, body: Bytes) -> Self {
        Self {
            id,
            event_type: None,
            object_id: None,
            account: None,
            mode: Mode::Unknown,
            provider_time: None,
            body_sha256: Sha256::digest(&body).into(),
            body,
            dropped: Vec::new(),
        }
    }

    pub(crate) fn with_type(mut self, value: &Value<'_>) -> Self {
        let text = match value {
            Value::Number(_) => &Value::Compound,
            _ => value,
        };
        self.event_type = self.keep(Dropped::Type, text);
        self
    }

    pub(crate) fn with_object(mut self, value: &Value<'_>) -> Self {
        self.object_id = self.keep(Dropped::ObjectId, value);
        self
    }

    pub(crate) fn with_account(mut self, value: &Value<'_>) -> Self {
        self.account = self.keep(Dropped::Account, value);
        self
    }

    pub(crate) fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn with_time(mut self, value: &Value<'_>) -> Self {
        self.provider_time = ProviderTime::read(value);
        if self.provider_time.is_none() && *value != Value::Absent {
            self.dropped.push(Dropped::Time);
        }
        self
    }

    /// Text or the digits of a number, if they fit; else nothing, and what was there is noted as dropped.
    fn keep(&mut self, name: Dropped, value: &Value<'_>) -> Option<Field> {
        let field = match value {
            Value::Absent => return None,
            Value::Text(text) => Field::parse(text),
            Value::Number(digits) => Field::parse(digits),
            Value::Bool(_) | Value::Compound | Value::Broken(_) => None,
        };
        if field.is_none() {
            self.dropped.push(name);
        }
        field
    }
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
