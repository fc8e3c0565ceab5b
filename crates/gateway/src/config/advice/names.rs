//! Environment variables that look as if they were meant for us and have no effect. A misspelt key of the file is
//! refused; a variable cannot be, since others put variables into our environment too.

use std::collections::BTreeMap;

use hookgate_webhook::Provider;

use super::Advice;
use crate::config::{Config, SourceConfig, setting};

/// All of our own variables begin so, but for those of the stores and of secrets.
const PREFIX: &str = "HOOKGATE_";

/// Read by the command line.
const CONFIG: &str = "HOOKGATE_CONFIG";

/// Ends of the variables of secrets.
const SECRET_ENDS: [&str; 2] = ["_WEBHOOK_SECRET_FILE", "_WEBHOOK_SECRET"];

/// Longer names are not repeated.
const NAME_CHARS_MAX: usize = 64;

/// A variable without effect, and the name that was probably meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    name: String,
    meant: Option<String>,
}

/// Those in this environment.
pub(in crate::config) fn unknown_variables(
    env: &BTreeMap<String, String>,
    sources: &[SourceConfig],
) -> Vec<UnknownVariable> {
    let plain = |name: &str| {
        name.len() <= NAME_CHARS_MAX
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    env.iter()
        .filter(|(name, _)| plain(name))
        .filter_map(|(name, value)| unknown_secret(name, sources).or_else(|| unknown_setting(name, value)))
        .collect()
}

/// What there is to say about them.
pub(super) fn advice(config: &Config) -> Vec<Advice> {
    let said = config.unknown_variables.iter().map(|unknown| {
        let name = &unknown.name;
        let is_secret = SECRET_ENDS.iter().any(|end| name.ends_with(end));
        match &unknown.meant {
            Some(meant) if is_secret => Advice::warning(format!(
                "{name} opens no source, and has no effect: did you mean {meant}?"
            )),
            Some(meant) => Advice::warning(format!(
                "{name} is not a setting, and has no effect: did you mean {meant}?"
            )),
            None if is_secret => Advice::note(format!(
                "{name} opens no source, and has no effect: neither a provider nor a [sources.NAME] table has this name"
            )),
            None => Advice::note(format!(
                "{name} is not a setting, and has no effect: `hookgate config show` lists them"
            )),
        }
    });
    said.collect()
}

fn unknown_setting(name: &str, value: &str) -> Option<UnknownVariable> {
    let own = name.strip_prefix(PREFIX)?;
    if setting::is_variable(name) || name == CONFIG || is_service_link(name, value) {
        return None;
    }
    let known = setting::ALL.iter().map(|setting| setting.name).chain([CONFIG]);
    let meant = nearest(own, known.map(|known| (known.trim_start_matches(PREFIX), known)));
    Some(UnknownVariable {
        name: name.to_owned(),
        meant: meant.map(str::to_owned),
    })
}

fn unknown_secret(name: &str, sources: &[SourceConfig]) -> Option<UnknownVariable> {
    let end = SECRET_ENDS.iter().find(|end| name.ends_with(*end))?;
    let stem = name.strip_suffix(end)?;
    let opened = |source: &SourceConfig| {
        setting::secret_variables(source.name.as_str())
            .iter()
            .any(|known| known == name)
    };
    if sources.iter().any(opened) {
        return None;
    }
    let names = sources.iter().map(|source| source.name.as_str());
    let stems: Vec<_> = names
        .chain(Provider::ALL.iter().map(|provider| provider.name()))
        .map(|name| name.to_ascii_uppercase().replace('-', "_"))
        .collect();
    let meant = nearest(stem, stems.iter().map(|known| (known.as_str(), known.as_str())));
    Some(UnknownVariable {
        name: name.to_owned(),
        meant: meant.map(|stem| format!("{stem}{end}")),
    })
}

/// Kubernetes puts such variables into each pod for a service whose name begins with ours.
fn is_service_link(name: &str, value: &str) -> bool {
    let protocols = ["tcp://", "udp://", "sctp://"];
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_TCP")
        || name.contains("_UDP")
        || (name.ends_with("_PORT") && protocols.iter().any(|protocol| value.starts_with(protocol)))
}

/// The known name that is nearest to this one, if it is near: a letter in four wrong, or a last word missing or too
/// much.
fn nearest<'a>(name: &str, known: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let near = |(short, full): (&'a str, &'a str)| {
        let longer = |long: &str, short: &str| {
            long.strip_prefix(short)
                .is_some_and(|rest| rest.starts_with('_') && !rest[1..].contains('_'))
        };
        let distance = distance(name.as_bytes(), short.as_bytes());
        let close = distance <= (short.len() / 4).clamp(1, 3);
        (close || longer(short, name) || longer(name, short)).then_some((distance, full))
    };
    known
        .filter_map(near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, full)| full)
}

/// How many letters must be put in, left out, replaced or swapped with their neighbour.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, against) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != against);
            let mut best = replaced.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *against {
                best = best.min(before_last[column - 1] + 1);
            }
            next.push(best);
        }
        before_last = std::mem::replace(&mut last, next);
    }
    last[other.len()]
}
