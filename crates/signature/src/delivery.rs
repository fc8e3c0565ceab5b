//! One request as it came off the wire: nothing decoded, nothing trimmed, nothing believed.

use bytes::Bytes;

/// The headers of one request, names in any case, values as bytes.
///
/// A linear scan beats a map for the dozen headers a webhook carries, and it keeps repeats visible: a
/// signature header that occurs twice has no defined meaning and is refused by the schemes.
#[derive(Debug, Clone, Default)]
pub struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Headers<'a> {
    /// The only value of this header that is not empty; `None` if there is none.
    ///
    /// A header that is present but empty counts as missing, as in the SDKs of the providers.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Every value of this header, in order of arrival.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a [u8]> + 's {
        self.0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The value as text, if it is visible ASCII or UTF-8.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All headers in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.0.iter().copied()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// An unverified delivery: the raw material of every signature scheme.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// HTTP method; some schemes sign it.
    pub method: &'a str,
    /// The public URL as configured at the provider, where the scheme signs it.
    pub url: Option<&'a str>,
    /// Request headers.
    pub headers: Headers<'a>,
    /// The body, byte for byte.
    pub body: Bytes,
}
