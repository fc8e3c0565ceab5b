//! How old a signature of a source may be: the provider's limit, another one, or any age.

use std::time::Duration;

use hookgate_signature::Tolerance;
use hookgate_webhook::{Provider, SourceName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::reader::{self, Wrong};

/// Signed times count whole seconds.
const LEAST: Duration = Duration::from_secs(1);

/// The accepted form.
pub(super) const ACCEPTS: &str = "a duration of at least 1s, such as \"10m\", or \"off\"";

/// `tolerance` of a source's table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given {
    /// Any age.
    Off,
    /// This limit in place of the provider's.
    Limit(Duration),
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "off" => Ok(Self::Off),
            limit => reader::duration_from(LEAST)(limit)
                .map(Self::Limit)
                .ok_or_else(|| D::Error::custom("not a tolerance")),
        }
    }
}

/// The limit that holds for a source, with the directions of its provider.
pub(super) fn of(name: &SourceName, provider: Provider, given: Option<Given>) -> Result<Tolerance, Wrong> {
    let provided = provider.knowledge().tolerance;
    match given {
        None => Ok(provided),
        Some(_) if !provider.knowledge().signs_time() => Err(Wrong::Combination(format!(
            "source {name}: tolerance has no effect, since {} signs no time: take the setting out",
            provider.name()
        ))),
        Some(Given::Off) => Ok(Tolerance::Off),
        Some(Given::Limit(limit)) => Ok(provided.with_limit(limit)),
    }
}

/// As shown to people.
pub(super) fn shown(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Off | Tolerance::OnRequest => "off".to_owned(),
        Tolerance::Past(limit) | Tolerance::Both(limit) => humantime::format_duration(limit).to_string(),
    }
}
