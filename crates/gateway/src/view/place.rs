//! A place in a list as text, to be given back for the next page. To whoever holds it, it is opaque: letters
//! that survive a URL and a shell.

use hookgate_ledger::{Cursor, UnixMicros};
use hookgate_webhook::{EventId, EventKey, SourceName};

use super::sealed;

const PURPOSE: u8 = b'e';

/// As text.
pub fn write(place: &Cursor) -> String {
    sealed::seal(PURPOSE, &place.received_at.0.to_be_bytes(), &place.key)
}

/// As it was. `None` if it is no text that [`write()`] has made.
pub fn read(text: &str) -> Option<Cursor> {
    let (received_at, key) = sealed::open(PURPOSE, text)?;
    Some(Cursor {
        received_at: UnixMicros(i64::from_be_bytes(received_at)),
        key,
    })
}

/// Reads `source:event_id`. No source has a colon, so the first one splits.
pub fn key_of(text: &str) -> Option<EventKey> {
    let (source, id) = text.split_once(':')?;
    Some(EventKey {
        source: SourceName::parse(source).ok()?,
        id: EventId::parse(id).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_as_text() {
        for id in ["evt_1", "a:b", "🦀", "..", "%2F\"'"] {
            let place = Cursor {
                received_at: UnixMicros(1_700_000_000_123_456),
                key: key_of(&format!("stripe:{id}")).unwrap(),
            };
            let text = write(&place);
            assert!(
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            );
            assert_eq!(read(&text), Some(place));
        }
    }

    #[test]
    fn anything_else_is_no_place() {
        for text in ["", "x", "evt_1", "MTox", "MTpzdHJpcGU6", "not base64!", "////"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
