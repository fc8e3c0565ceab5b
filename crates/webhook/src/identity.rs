//! The names of things. Parsed once at the edge; afterwards only these types cross a crate boundary.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

/// Longest id, type or object id in bytes: long enough for every provider, short enough for an index.
const NAME_BYTES_MAX: usize = 255;

/// Longest source name in bytes; it becomes a path segment, a metric label and part of a key.
const SOURCE_BYTES_MAX: usize = 63;

/// A name that is not accepted. The text says what form is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(pub &'static str);

/// The name of a configured endpoint: `[a-z0-9][a-z0-9_-]{0,62}`. It holds no `:`, so the first `:`
/// after it always splits a key. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceName(Arc<str>);

impl SourceName {
    /// Accepts a well-formed name.
    ///
    /// # Errors
    /// [`BadName`] if it is not of the form `[a-z0-9][a-z0-9_-]{0,62}`.
    pub fn parse(name: &str) -> Result<Self, BadName> {
        let bad = BadName("a source name has the form [a-z0-9][a-z0-9_-]{0,62}");
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        match name.as_bytes() {
            [first, rest @ ..]
                if name.len() <= SOURCE_BYTES_MAX
                    && plain(*first)
                    && rest.iter().all(|&b| plain(b) || b == b'_' || b == b'-') =>
            {
                Ok(Self(name.into()))
            }
            _ => Err(bad),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A provider's id of an event: 1 to 255 bytes, no control characters. Compared byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(Box<str>);

impl EventId {
    /// Accepts a well-formed id.
    ///
    /// # Errors
    /// [`BadName`] if it is empty, longer than 255 bytes, or holds a control character.
    pub fn parse(id: &str) -> Result<Self, BadName> {
        match fits(id) {
            true => Ok(Self(id.into())),
            false => Err(BadName(
                "an event id has 1 to 255 bytes and no control characters",
            )),
        }
    }

    /// `sha256-<hex>` over the body, and where the event has a name over a zero byte and the name too, so that the
    /// same bytes under another name are another event.
    pub(crate) fn digest(body: &[u8], name: &str) -> Self {
        let mut digest = Sha256::new_with_prefix(body);
        if !name.is_empty() {
            digest.update([0]);
            digest.update(name);
        }
        Self(format!("sha256-{:x}", Hex(&digest.finalize())).into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes as hexadecimal.
struct Hex<'a>(&'a [u8]);

impl fmt::LowerHex for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A descriptive field that a provider sent: type, object id or account; 1 to 255 bytes, no control
/// characters. What does not fit is dropped and counted, never refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field(Box<str>);

impl Field {
    /// The field, if it fits.
    pub fn parse(text: &str) -> Option<Self> {
        fits(text).then(|| Self(text.into()))
    }

    /// The field as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn fits(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// What is claimed, kept and never applied twice: one event of one source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey {
    /// The endpoint it came to.
    pub source: SourceName,
    /// The provider's id.
    pub id: EventId,
}

impl EventKey {
    /// The key under which the event is claimed: `webhook:<source>:<event_id>`. Two events never share
    /// one, whatever an id holds, because the source ends at the first `:`.
    pub fn claim_key(&self) -> String {
        format!("webhook:{self}")
    }
}

impl fmt::Display for EventKey {
    /// `<source>:<event_id>`, unambiguous because a source holds no `:`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::{EventId, EventKey, SourceName};

    fn claim_key(source: &str, id: &str) -> String {
        EventKey {
            source: SourceName::parse(source).unwrap(),
            id: EventId::parse(id).unwrap(),
        }
        .claim_key()
    }

    #[test]
    fn a_claim_key_names_source_and_id() {
        assert_eq!(claim_key("stripe", "evt_1"), "webhook:stripe:evt_1");
        assert_eq!(claim_key("p", "q:r"), "webhook:p:q:r");
    }

    #[test]
    fn no_two_events_share_a_claim_key() {
        assert!(
            SourceName::parse("p:q").is_err(),
            "else p:q with r were p with q:r"
        );
        for (source, id) in [
            ("p", "q:r"),
            ("p-q", "r"),
            ("stripe", ":"),
            ("s", "webhook:s:x"),
            ("a", " a"),
            ("a", "😀"),
        ] {
            let key = claim_key(source, id);
            let (prefix, rest) = key.split_once(':').unwrap();
            assert_eq!((prefix, rest.split_once(':').unwrap()), ("webhook", (source, id)));
        }
    }

    #[test]
    fn a_source_name_is_a_short_plain_word() {
        for good in ["a", "0", "stripe", "stripe-eu_2", &"x".repeat(63)] {
            assert_eq!(SourceName::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-a",
            "_a",
            "A",
            "a b",
            "a:b",
            "a/b",
            "a.b",
            "é",
            "a\n",
            &"x".repeat(64),
        ] {
            assert!(SourceName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_reaches_a_key_byte_for_byte_or_not_at_all() {
        for good in ["*", "..", "a b", " ", "é", &"x".repeat(255)] {
            assert_eq!(claim_key("s", good), format!("webhook:s:{good}"));
        }
        for bad in [
            "",
            "a\r\nSET x y",
            "\0",
            "\u{85}",
            &"x".repeat(256),
            &"é".repeat(128),
        ] {
            assert!(EventId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
