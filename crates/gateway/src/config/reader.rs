//! Looks settings up: the environment first, then the TOML file, then the default. Keeps where each value
//! came from, so that an error and `config show` can say it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::setting::{self, Setting};

/// A value that is not accepted. The sentence names the setting, the value and the accepted form.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// One setting.
    #[error("{origin} = {value} is not accepted: expected {accepts}")]
    Value {
        /// Where it stands.
        origin: String,
        /// What stands there; redacted if secret.
        value: String,
        /// What would be accepted.
        accepts: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Combination(String),
    /// The file cannot be read.
    #[error("the configuration file {path}: {problem}")]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

/// Environment and file.
#[derive(Debug, Default)]
pub struct Reader {
    env: BTreeMap<String, String>,
    file: toml::Table,
    path: Option<PathBuf>,
}

impl Reader {
    /// Reads the environment of this process and, if given, a TOML file.
    ///
    /// # Errors
    /// As [`Reader::new`], and [`Wrong::Value`] for a setting that is no text. What else stands in an
    /// environment is not looked at.
    pub fn of_process(path: Option<&Path>) -> Result<Self, Wrong> {
        let mut env = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => drop(env.insert(name, value)),
                Err(_) if setting::is_variable(&name) => {
                    return Err(Wrong::Value {
                        origin: name,
                        value: "(not shown)".to_owned(),
                        accepts: "text in UTF-8".to_owned(),
                    });
                }
                Err(_) => {}
            }
        }
        Self::new(env, path)
    }

    /// Reads from this environment and, if given, a TOML file.
    ///
    /// # Errors
    /// [`Wrong::File`] if the file cannot be read, is not TOML, or has a key that no setting has: a
    /// misspelt setting must not be silently without effect.
    pub fn new(env: BTreeMap<String, String>, path: Option<&Path>) -> Result<Self, Wrong> {
        let Some(path) = path else {
            return Ok(Self {
                env,
                ..Self::default()
            });
        };
        let wrong = |problem: String| Wrong::File {
            path: path.to_owned(),
            problem,
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let not_toml = |error: toml::de::Error| wrong(located(&text, &error));
        let document = toml::de::DeTable::parse(&text).map_err(not_toml)?;
        let known = |key: &str| {
            matches!(key, "sources" | "targets") || setting::ALL.iter().any(|setting| setting.key() == key)
        };
        if let Some(unknown) = document.get_ref().keys().find(|key| !known(key.get_ref())) {
            let (line, key) = (line_at(&text, unknown.span().start), unknown.get_ref());
            return Err(wrong(format!(
                "line {line}: {key} is not a setting; `hookgate config show` lists them"
            )));
        }
        let file: toml::Table = text.parse().map_err(not_toml)?;
        Ok(Self {
            env,
            file,
            path: Some(path.to_owned()),
        })
    }

    /// The environment.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// The `[sources.*]` tables of the file.
    pub fn sources(&self) -> Option<&toml::Value> {
        self.file.get("sources")
    }

    /// The `[targets.*]` tables of the file.
    pub fn targets(&self) -> Option<&toml::Value> {
        self.file.get("targets")
    }

    /// The file's path for messages.
    pub fn path(&self) -> PathBuf {
        self.path.clone().unwrap_or_default()
    }

    /// The setting's text and where it stands; `None` if nobody set it.
    pub fn text(&self, setting: &Setting) -> Option<(String, String)> {
        if let Some(value) = self.env.get(setting.name) {
            return Some((value.clone(), setting.name.to_owned()));
        }
        let key = setting.key();
        let value = match self.file.get(&key)? {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some((value, format!("{key} in {}", self.path().display())))
    }

    /// The refusal of a value whose form was right, by somebody who knows more about it.
    pub fn refused(&self, setting: &Setting, problem: &dyn std::fmt::Display) -> Wrong {
        let origin = self
            .text(setting)
            .map_or_else(|| setting.name.to_owned(), |(_, origin)| origin);
        Wrong::Combination(format!("{origin}: {problem}"))
    }

    /// The parsed value, or `None` if nobody set it and it has no default.
    ///
    /// # Errors
    /// [`Wrong::Value`] if `parse` does not take it.
    pub fn optional<T>(
        &self,
        setting: &Setting,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Wrong> {
        let (text, origin) = match self.text(setting) {
            Some(found) => found,
            None if setting.default.is_empty() => return Ok(None),
            None => (setting.default.to_owned(), setting.name.to_owned()),
        };
        match parse(text.trim()) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(setting, origin, &text)),
        }
    }

    /// The parsed value of a setting that has a default.
    ///
    /// # Errors
    /// [`Wrong::Value`] if `parse` does not take it.
    pub fn value<T>(&self, setting: &Setting, parse: impl Fn(&str) -> Option<T>) -> Result<T, Wrong> {
        Ok(self
            .optional(setting, parse)?
            .expect("the setting has a default, which its own parser takes"))
    }
}

fn wrong(setting: &Setting, origin: String, text: &str) -> Wrong {
    let value = if setting.secret {
        "(not shown)".to_owned()
    } else {
        format!("{text:?}")
    };
    Wrong::Value {
        origin,
        value,
        accepts: setting.accepts.to_owned(),
    }
}

/// Where the TOML error is, without quoting the line: it may hold a secret.
pub(super) fn located(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(0, |span| line_at(text, span.start));
    format!("line {line}: {}", error.message())
}

fn line_at(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

/// Longer than anybody waits for anything, and short enough to be added to any moment without overflow.
const DURATION_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// A duration such as `100ms`, `2s`, `7d`, up to ten years.
pub(super) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text)
        .ok()
        .filter(|value| *value <= DURATION_MAX)
}

/// The least of a duration in which something has to happen: zero would mean "never" or "no limit".
pub(super) const MOMENT: Duration = Duration::from_millis(1);

/// A duration of at least `least`.
pub(super) fn duration_from(least: Duration) -> impl Fn(&str) -> Option<Duration> {
    move |text| duration(text).filter(|value| *value >= least)
}

/// A whole number from 1.
pub(super) fn positive<T: std::str::FromStr + PartialOrd + From<u8>>(text: &str) -> Option<T> {
    text.parse().ok().filter(|number| *number >= T::from(1))
}

/// `on` or `off`.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}
