//! Bytes as text that survives a URL, with a check sum: what was cut, typed or made for another purpose is
//! refused, and never taken for something else. It guards against accidents and not against forgers: nothing
//! that is sealed opens more than whoever holds it may do anyway.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hookgate_webhook::{EventId, EventKey, SourceName};
use sha2::{Digest as _, Sha256};

/// Bytes of the check sum.
const SUM_BYTES: usize = 4;

/// Some numbers and the key of an event as text, for one purpose.
pub fn seal(purpose: u8, numbers: &[u8], key: &EventKey) -> String {
    let source = key.source.as_str().as_bytes();
    let mut bytes = vec![purpose];
    bytes.extend(numbers);
    bytes.push(u8::try_from(source.len()).expect("a source name has at most 63 bytes"));
    bytes.extend(source);
    bytes.extend(key.id.as_str().as_bytes());
    bytes.extend(sum(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The same numbers and the same key; `None` if the text was not sealed so for this purpose.
pub fn open<const N: usize>(purpose: u8, text: &str) -> Option<([u8; N], EventKey)> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (content, found) = bytes.split_last_chunk::<SUM_BYTES>()?;
    if *found != sum(content) {
        return None;
    }
    let (numbers, rest) = content.strip_prefix(&[purpose])?.split_first_chunk()?;
    let (length, rest) = rest.split_first()?;
    let (source, id) = rest.split_at_checked(usize::from(*length))?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let key = EventKey {
        source: SourceName::parse(text(source)?).ok()?,
        id: EventId::parse(text(id)?).ok()?,
    };
    Some((*numbers, key))
}

fn sum(bytes: &[u8]) -> [u8; SUM_BYTES] {
    let digest = Sha256::digest(bytes);
    std::array::from_fn(|place| digest[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str, id: &str) -> EventKey {
        EventKey {
            source: SourceName::parse(source).unwrap(),
            id: EventId::parse(id).unwrap(),
        }
    }

    #[test]
    fn what_was_sealed_comes_back_exactly() {
        let long = "x".repeat(255);
        for id in ["evt_1", "a/b%2F? #&+", "😀", " ", &long] {
            let key = key("stripe-eu_2", id);
            let text = seal(b'x', &[0, 255, 7], &key);
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            );
            assert_eq!(open(b'x', &text), Some(([0, 255, 7], key)));
        }
    }

    #[test]
    fn what_was_cut_changed_or_made_for_another_purpose_does_not_open() {
        let text = seal(b'x', &[1], &key("stripe", "evt_1"));
        let opens = |purpose, text: &str| open::<1>(purpose, text).is_some();
        assert!(opens(b'x', &text) && !opens(b'y', &text));
        for length in 0..text.len() {
            assert!(!opens(b'x', &text[..length]), "{length}");
        }
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(!opens(b'x', &String::from_utf8(changed).unwrap()), "{at}");
        }
        for nonsense in [
            "",
            "=",
            "%",
            "nonsense",
            "é",
            &format!("{text}="),
            &format!(" {text}"),
        ] {
            assert!(!opens(b'x', nonsense), "{nonsense:?}");
        }
    }
}
