//! Prints the configuration as it was understood, secrets redacted.

use super::reader::Reader;
use super::setting;
use super::source::SourceConfig;
use super::tolerance;

/// One line per setting (name, value, where it stands), then one per source.
pub fn show(reader: &Reader, sources: &[SourceConfig]) -> String {
    let mut text = String::new();
    for setting in setting::ALL {
        let (value, origin) = match reader.text(setting) {
            Some((value, origin)) if setting.secret => (redacted(&value), origin),
            Some((value, origin)) => (value, origin),
            None if setting.default.is_empty() => ("-".to_owned(), "absent".to_owned()),
            None => (setting.default.to_owned(), "default".to_owned()),
        };
        text += &format!(
            "{:<28} {:<24} {:<28} {}\n",
            setting.name, value, origin, setting.meaning
        );
    }
    for source in sources {
        text += &format!(
            "source {:<21} provider {}, {}, {} secret(s), tolerance {}, target {}, handler timeout {}, claim lease {}, body up to {} bytes, {}\n",
            source.name.as_str(),
            source.provider.name(),
            source.handler.as_str(),
            source.secrets.len(),
            tolerance::shown(source.tolerance),
            if source.target.is_some() { "set" } else { "none" },
            humantime::format_duration(source.handler_timeout),
            humantime::format_duration(source.claim_lease),
            source.body_bytes_max,
            source.identity.shown(),
        );
    }
    text
}

/// Only the scheme of a URL is shown: user, password, host and path may all be confidential.
fn redacted(value: &str) -> String {
    match value.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://(redacted)"),
        None if value == "none" => value.to_owned(),
        None => "(redacted)".to_owned(),
    }
}
