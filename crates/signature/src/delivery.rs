//! One request as it came off the wire: nothing decoded, nothing trimmed, nothing believed.

use std::fmt;

use bytes::Bytes;

use crate::Refusal;

/// The headers of one request, names in any case, values as bytes.
///
/// A linear scan beats a map for the dozen headers a webhook carries, and it keeps repeats visible: a
/// signature header that occurs twice has no defined meaning and is refused by the schemes.
#[derive(Clone, Default)]
pub struct Headers<'a>(Vec<(&'a str, &'a [u8])>);

/// A header that may occur once occurs with two or more values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the header occurs more than once")]
pub struct Repeated;

impl<'a> Headers<'a> {
    /// The first value of this header that is not empty; `None` if there is none.
    ///
    /// A header that is present but empty counts as missing, as in the SDKs of the providers.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// The only value of this header that is not empty; `None` if there is none.
    ///
    /// For headers on which something depends: no sender's documentation says which of two values counts,
    /// and a proxy, this gateway and a target would each choose their own.
    ///
    /// # Errors
    /// [`Repeated`] if there are several, equal or not.
    pub fn sole(&self, name: &str) -> Result<Option<&'a [u8]>, Repeated> {
        let mut values = self.all(name).filter(|value| !value.is_empty());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Repeated),
        }
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

    /// What a scheme asks for: the sole value of a header that it cannot do without.
    ///
    /// # Errors
    /// [`Refusal::MissingSignature`] without a value, [`Refusal::MalformedSignature`] with several.
    pub fn required(&self, header: &'static str) -> Result<&'a [u8], Refusal> {
        match self.sole(header) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(Refusal::MissingSignature(header)),
            Err(Repeated) => Err(Refusal::MalformedSignature {
                header,
                problem: "it occurs more than once; send it once",
            }),
        }
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Headers<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl fmt::Debug for Headers<'_> {
    /// Names only: values hold tokens, signatures and addresses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

/// An unverified delivery: the raw material of every signature scheme.
#[derive(Clone)]
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

impl fmt::Debug for Delivery<'_> {
    /// The body's length in its place: a body is somebody's data and belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A request that is about to be signed, as its sender sees it.
#[derive(Clone, Copy)]
pub struct Unsigned<'a> {
    /// The message id, where the scheme signs one.
    pub id: &'a str,
    /// The sender's clock, unix seconds.
    pub now: i64,
    /// HTTP method.
    pub method: &'a str,
    /// The URL it goes to, as registered with the sender.
    pub url: Option<&'a str>,
    /// Its other headers; a scheme may sign some of them.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
}
