//! Where the next step of a bulk change begins, as opaque text: after which event, and when what follows may
//! become due, so that many steps keep to one rate.

use hookgate_ledger::{Cursor, UnixMicros};

use crate::view::sealed;

const PURPOSE: u8 = b'b';

/// No step makes anything due later than this from now, in milliseconds: a hundred years.
const AHEAD_MAX: u64 = 100 * 365 * 24 * 3_600 * 1_000;

/// A place in a bulk change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// After this event.
    pub(super) after: Cursor,
    /// Milliseconds since 1970: what follows becomes due from here on.
    pub(super) due: u64,
}

/// The place as text.
pub(super) fn write(place: &Place) -> String {
    let numbers = [place.after.received_at.0.to_be_bytes(), place.due.to_be_bytes()];
    sealed::seal(PURPOSE, numbers.as_flattened(), &place.after.key)
}

/// The place that a text names; `None` if this API never gave it. `now` counts milliseconds since 1970.
pub(super) fn read(text: &str, now: u64) -> Option<Place> {
    let (numbers, key) = sealed::open::<16>(PURPOSE, text)?;
    let (received_at, rest) = numbers.split_first_chunk()?;
    let received_at = UnixMicros(i64::from_be_bytes(*received_at));
    let due = u64::from_be_bytes(*rest.first_chunk()?);
    (due <= now.saturating_add(AHEAD_MAX)).then_some(Place {
        after: Cursor { received_at, key },
        due,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::place;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn a_place_comes_back_exactly_and_is_no_place_in_a_list() {
        for received_at in [0, -1, i64::MIN, i64::MAX] {
            let after = Cursor {
                received_at: UnixMicros(received_at),
                key: place::key_of("stripe:a/b 😀").unwrap(),
            };
            let due = NOW + AHEAD_MAX;
            let text = write(&Place {
                after: after.clone(),
                due,
            });
            assert_eq!(place::read(&text), None);
            assert_eq!(read(&place::write(&after), NOW), None);
            assert_eq!(read(&text, NOW - 1), None);
            assert_eq!(read(&text, NOW), Some(Place { after, due }));
        }
    }
}
