//! What an event may have in common with another one besides its id, and what that means: the words of content keys.
//!
//! A source that asks for it gives its events keys. The ledger claims them in the transaction that writes the event: who
//! holds a key is the original, and whoever meets it there may be its twin. Events without keys cost nothing here.

use std::time::Duration;

use hookgate_webhook::{Field, Mode};

/// One thing by which two events can be told to be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentKey {
    /// What is compared.
    pub(crate) sameness: Sameness,
    /// What names it within its source.
    pub(crate) name: String,
    /// Whether a second event is kept as a twin and not run. Otherwise it is only linked to the first.
    pub(crate) suppresses: bool,
}

/// What two events have to share. In the order in which keys are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sameness {
    /// The whole body, under an id that nobody signed.
    Body,
    /// Mode, account, type, object and data, and about the same time.
    Content { sha256: [u8; 32], window: Duration },
    /// Mode, account, type and object.
    Object,
}

/// The object of an event, as its provider tells it apart.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Live or test.
    pub mode: Mode,
    /// The provider's account.
    pub account: Option<&'a Field>,
    /// The provider's type.
    pub event_type: &'a Field,
    /// Object the event is about.
    pub object_id: &'a Field,
}

/// Which content of an event came before under another id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Alike {
    /// Its body, byte for byte.
    pub body: bool,
    /// What a rule for twins compares.
    pub twin: bool,
}

impl ContentKey {
    /// The same body under another id.
    pub fn of_body(sha256: &[u8; 32], suppresses: bool) -> Self {
        Self {
            sameness: Sameness::Body,
            name: sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
            suppresses,
        }
    }

    /// The same type and object, at any time: for types that happen to an object once.
    pub fn of_object(subject: Subject<'_>, suppresses: bool) -> Self {
        Self {
            sameness: Sameness::Object,
            name: subject.name(),
            suppresses,
        }
    }

    /// The same type and object with the same data, the provider's times no further apart than the window.
    pub fn of_content(subject: Subject<'_>, sha256: [u8; 32], window: Duration, suppresses: bool) -> Self {
        Self {
            sameness: Sameness::Content { sha256, window },
            name: subject.name(),
            suppresses,
        }
    }
}

impl Sameness {
    /// As stored.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Content { .. } => "content",
            Self::Object => "object",
        }
    }

    /// The digest of the data, where that is compared.
    pub(crate) fn sha256(self) -> Option<[u8; 32]> {
        match self {
            Self::Content { sha256, .. } => Some(sha256),
            Self::Body | Self::Object => None,
        }
    }
}

impl Subject<'_> {
    /// A JSON list, so that no two subjects share a name whatever their parts hold, and people can read it.
    fn name(&self) -> String {
        let account = self.account.map(Field::as_str);
        serde_json::json!([
            self.mode.as_str(),
            account,
            self.event_type.as_str(),
            self.object_id.as_str()
        ])
        .to_string()
    }
}

impl Alike {
    /// Whether anything came before.
    pub fn any(self) -> bool {
        self.body || self.twin
    }

    /// Notes that content of this kind came before.
    pub(crate) fn note(&mut self, sameness: Sameness) {
        match sameness {
            Sameness::Body => self.body = true,
            Sameness::Content { .. } | Sameness::Object => self.twin = true,
        }
    }

    /// What a row says afterwards of an event whose answer was lost: which of the keys it met is not written down, so
    /// it may name one too many where a source has rules of both kinds. Only counters hear it.
    pub(crate) fn remembered(keys: &[ContentKey], suppressed: bool) -> Self {
        let mut alike = Self::default();
        for key in keys.iter().filter(|key| key.suppresses == suppressed) {
            alike.note(key.sameness);
        }
        alike
    }
}

#[cfg(test)]
mod tests {
    use hookgate_webhook::{Field, Mode};

    use super::{ContentKey, Subject};

    fn name(mode: Mode, account: Option<&str>, event_type: &str, object_id: &str) -> String {
        let field = |text| Field::parse(text).unwrap();
        let account = account.map(field);
        let subject = Subject {
            mode,
            account: account.as_ref(),
            event_type: &field(event_type),
            object_id: &field(object_id),
        };
        ContentKey::of_object(subject, true).name
    }

    #[test]
    fn no_two_subjects_share_a_name() {
        let names = [
            name(Mode::Live, None, "a", "b"),
            name(Mode::Test, None, "a", "b"),
            name(Mode::Unknown, None, "a", "b"),
            name(Mode::Live, Some("a"), "a", "b"),
            name(Mode::Live, Some("null"), "a", "b"),
            name(Mode::Live, None, "b", "a"),
            name(Mode::Live, None, "a\",\"b", "b"),
            name(Mode::Live, None, "a", "b\",\"b"),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:#?}");
    }

    #[test]
    fn the_longest_subject_fits_an_index() {
        // A row of a B-tree of Postgres holds about 2,700 bytes, and a source and a kind stand beside the name.
        let longest = "\"".repeat(255);
        assert!(name(Mode::Live, Some(&longest), &longest, &longest).len() < 2_000);
    }
}
