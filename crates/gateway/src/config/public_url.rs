//! The URL under which a source is registered with its provider. Some providers sign it, so it is kept
//! letter by letter as it was written: nothing is normalised.

use hookgate_webhook::{SourceName, UrlUse};
use reqwest::Url;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::reader::{Reader, Wrong};
use super::setting;
use super::source::SourceConfig;

/// The accepted form of a source's own URL.
pub(super) const ACCEPTS: &str =
    "the whole URL as it is registered, such as \"https://hooks.example.com/webhooks/square\"";

/// `public_url` of a source's table.
#[derive(Debug, Clone)]
pub(super) struct Registered(String);

impl<'de> Deserialize<'de> for Registered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match parsed(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(D::Error::custom("not a URL")),
        }
    }
}

/// The URL of a source: its own, or its path below the common one.
pub(super) fn of(
    reader: &Reader,
    name: &SourceName,
    own: Option<Registered>,
) -> Result<Option<String>, Wrong> {
    let base = reader.optional(&setting::PUBLIC_URL, base)?;
    let below = |base: String| format!("{base}/webhooks/{name}");
    Ok(own.map(|Registered(url)| url).or(base.map(below)))
}

/// A common beginning: neither user nor query, since it is shown and a path follows.
fn base(text: &str) -> Option<String> {
    let url = parsed(text)?;
    let plain = url.query().is_none() && url.username().is_empty() && url.password().is_none();
    plain.then(|| text.trim_end_matches('/').to_owned())
}

fn parsed(text: &str) -> Option<Url> {
    // The parser would leave out what a provider signs.
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let url: Url = text.parse().ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && url.has_host() && url.fragment().is_none();
    fits.then_some(url)
}

impl SourceConfig {
    /// Refuses a source whose provider signs the whole URL if nobody said which: guessing it from a request
    /// would let the sender choose. In dev the address of the request will do.
    ///
    /// # Errors
    /// [`Wrong::Combination`] that says what to set.
    pub fn public_url_known(&self, dev: bool) -> Result<(), Wrong> {
        if dev || self.public_url.is_some() || self.provider.knowledge().url != UrlUse::Whole {
            return Ok(());
        }
        let name = &self.name;
        Err(Wrong::Combination(format!(
            "source {name}: {} signs the URL that is registered with it: set HOOKGATE_PUBLIC_URL to its beginning, such as \
             https://hooks.example.com, or public_url of [sources.{name}] to the whole",
            self.provider.name()
        )))
    }
}
