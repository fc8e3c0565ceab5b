//! A text that a sender wants signed, to see that we hold its secret.
//!
//! Whoever gets a text of his choice signed can write deliveries. So only [`Keys::answer`] signs one, which asks for a
//! delivery that was verified; a challenge is short and of few characters; and the scheme has to put a character that
//! no challenge has into all it signs, so that no answer is ever the signature of a delivery.
//!
//! [`Keys::answer`]: crate::Keys::answer

/// A text that may be signed: 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge(Box<str>);

impl Challenge {
    /// Characters of a challenge, at most. Those that are known have some twenty.
    pub const CHARS_MAX: usize = 64;

    /// The text, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=Self::CHARS_MAX).contains(&text.len()) && text.bytes().all(Self::may_hold);
        fits.then(|| Self(text.into()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a challenge may hold this byte.
    pub(crate) fn may_hold(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_short_and_of_few_characters() {
        let longest = "x".repeat(Challenge::CHARS_MAX);
        for text in ["a", "-", "qgg8vlvZRS6UYooatFL8Aw", "AZaz09_-", &longest] {
            assert_eq!(Challenge::parse(text).unwrap().as_str(), text);
        }
        let longer = "x".repeat(Challenge::CHARS_MAX + 1);
        for text in [
            "", &longer, "v0:1:{}", ":", "a b", "a.b", "a/b", "a=", "a\n", "a\0", "é", "{}", "\"", "+", "/",
        ] {
            assert_eq!(Challenge::parse(text), None, "{text:?}");
        }
    }
}
