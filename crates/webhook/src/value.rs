//! A value as a sender wrote it, from a body or from a header, and what it is accepted as.

use std::borrow::Cow;

use hookgate_signature::{Headers, Repeated};
use serde_json::value::RawValue;

use crate::fields::unescape;
use crate::{EventId, Field, Unreadable};

/// One value, before anybody decided whether it fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// No such field or header, an empty header, or JSON's `null`.
    Absent,
    /// Text, unescaped.
    Text(Cow<'a, str>),
    /// A JSON number, in its own digits.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// An object or an array.
    Compound,
    /// Present, but no text can be read from it; says why.
    Broken(&'static str),
}

impl<'a> Value<'a> {
    pub(crate) fn from_json(raw: Option<&'a RawValue>) -> Self {
        let Some(raw) = raw.map(RawValue::get) else {
            return Self::Absent;
        };
        match raw.as_bytes() {
            [b'n', ..] => Self::Absent,
            [b't', ..] => Self::Bool(true),
            [b'f', ..] => Self::Bool(false),
            [b'{' | b'[', ..] => Self::Compound,
            [b'"', ..] => unescape(raw).map_or(Self::Broken("it is not Unicode text"), Self::Text),
            _ => Self::Number(raw),
        }
    }

    pub(crate) fn from_header(headers: &Headers<'a>, name: &str) -> Self {
        match headers.sole(name).map(|value| value.map(std::str::from_utf8)) {
            Ok(None) => Self::Absent,
            Ok(Some(Ok(text))) => Self::Text(Cow::Borrowed(text)),
            Ok(Some(Err(_))) => Self::Broken("it is not UTF-8"),
            Err(Repeated) => Self::Broken("its header occurs more than once"),
        }
    }

    /// The event id where the provider guarantees one, as text. A number is no id: JSON readers round
    /// it, each in its own way, and two events would share what is left. `missing` says where it belongs.
    pub(crate) fn event_id(&self, missing: &'static str) -> Result<EventId, Unreadable> {
        match self {
            Self::Text(text) if text.is_empty() => Err(Unreadable::MissingEventId(missing)),
            Self::Text(text) => EventId::parse(text).map_err(|bad| Unreadable::BadEventId(bad.0)),
            Self::Broken(problem) => Err(Unreadable::BadEventId(problem)),
            Self::Absent | Self::Number(_) | Self::Bool(_) | Self::Compound => {
                Err(Unreadable::MissingEventId(missing))
            }
        }
    }

    /// The event id of a sender that a configuration describes; one that numbers its events means the digits.
    pub(crate) fn own_event_id(&self) -> Result<EventId, Unreadable> {
        match self {
            Self::Number(digits) => EventId::parse(digits).map_err(|bad| Unreadable::BadEventId(bad.0)),
            _ => self.event_id("there is no event id where `event.id` of the configuration says it stands"),
        }
    }

    /// As [`Value::event_id`], for a provider that documents its ids as whole numbers, which then count by their digits.
    pub(crate) fn event_id_or_digits(&self, missing: &'static str) -> Result<EventId, Unreadable> {
        match self {
            Self::Number(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                EventId::parse(digits).map_err(|bad| Unreadable::BadEventId(bad.0))
            }
            Self::Number(_) => Err(Unreadable::BadEventId("it is not a whole number")),
            _ => self.event_id(missing),
        }
    }

    /// The text, if it fits.
    pub(crate) fn text(&self) -> Option<Field> {
        match self {
            Self::Text(text) => Field::parse(text),
            _ => None,
        }
    }

    /// The text or the number's own digits, if they fit.
    pub(crate) fn text_or_digits(&self) -> Option<Field> {
        match self {
            Self::Number(digits) => Field::parse(digits),
            _ => self.text(),
        }
    }

    /// Whether this is exactly the given text.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }
}
