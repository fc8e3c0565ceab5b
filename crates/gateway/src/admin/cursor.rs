//! Where the next step of a bulk change begins, as opaque text: after which event, and when what follows may
//! become due, so that many steps keep to one rate.

use hookgate_ledger::{Cursor, UnixMicros};

use crate::view::sealed;

const PURPOSE: u8 = b'b';

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

/// The place that a text names; `None` if this API never gave it.
pub(super) fn read(text: &str) -> Option<Place> {
    let (numbers, key) = sealed::open::<16>(PURPOSE, text)?;
    let (received_at, rest) = numbers.split_first_chunk()?;
    let received_at = UnixMicros(i64::from_be_bytes(*received_at));
    Some(Place {
        after: Cursor { received_at, key },
        due: u64::from_be_bytes(*rest.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::place;

    #[test]
    fn a_place_comes_back_exactly_and_is_no_place_in_a_list() {
        for received_at in [0, -1, i64::MIN, i64::MAX] {
            let after = Cursor {
                received_at: UnixMicros(received_at),
                key: place::key_of("stripe:a/b 😀").unwrap(),
            };
            let due = u64::MAX - 1;
            let text = write(&Place {
                after: after.clone(),
                due,
            });
            assert_eq!(place::read(&text), None);
            assert_eq!(read(&place::write(&after)), None);
            assert_eq!(read(&text), Some(Place { after, due }));
        }
    }
}
