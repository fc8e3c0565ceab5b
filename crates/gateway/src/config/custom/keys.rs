//! Reads the tables that describe a sender, key by key: a message names the key and the accepted form, and never the
//! value, which may be a secret in the wrong place.

use std::time::Duration;

use hookgate_webhook::Place;

use crate::config::reader;

/// The keys of one table.
pub(super) struct Keys<'a> {
    name: &'static str,
    table: Option<&'a toml::Table>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(
        name: &'static str,
        value: Option<&'a toml::Value>,
        known: &[&str],
    ) -> Result<Self, String> {
        let table = match value {
            None => None,
            Some(value) => Some(
                value
                    .as_table()
                    .ok_or_else(|| format!("{name} is a table of settings"))?,
            ),
        };
        let keys = Self { name, table };
        keys.only(known, &format!("there are {}", known.join(", ")))?;
        Ok(keys)
    }

    pub(super) fn at(&self, key: &str, problem: &str) -> String {
        format!("{}.{key} is not accepted: {problem}", self.name)
    }

    pub(super) fn only(&self, known: &[&str], why: &str) -> Result<(), String> {
        let mut given = self.table.into_iter().flat_map(toml::Table::keys);
        match given.find(|key| !known.contains(&&***key)) {
            Some(key) => Err(format!("{}.{key} is not a setting here: {why}", self.name)),
            None => Ok(()),
        }
    }

    pub(super) fn without(&self, keys: &[&str], why: &str) -> Result<(), String> {
        let is_given = |key: &&&str| self.table.is_some_and(|table| table.contains_key(**key));
        match keys.iter().find(is_given) {
            Some(key) => Err(self.at(key, why)),
            None => Ok(()),
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a toml::Value> {
        self.table?.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(self.at(key, "expected a text in quotes, not empty")),
        }
    }

    /// A text that lives as long as the description.
    pub(super) fn kept(&self, key: &str) -> Result<Option<&'static str>, String> {
        Ok(self.text(key)?.map(|text| &*text.to_owned().leak()))
    }

    pub(super) fn header(&self, key: &str) -> Result<Option<&'static str>, String> {
        match self.text(key)? {
            Some(name) => header_name(name)
                .map(Some)
                .ok_or_else(|| self.at(key, "expected the name of a header")),
            None => Ok(None),
        }
    }

    pub(super) fn required_header(&self, key: &str) -> Result<&'static str, String> {
        self.header(key)?.ok_or_else(|| {
            format!(
                "{}.{key} is missing: the header that the signature or token stands in",
                self.name
            )
        })
    }

    pub(super) fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, String> {
        let given = match self.value(key) {
            None => return Ok(None),
            Some(toml::Value::Integer(number)) => number.to_string(),
            Some(value) => value.as_str().unwrap_or_default().to_owned(),
        };
        match choices.iter().find(|(name, _)| *name == given) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                Err(self.at(key, &format!("expected one of {}", names.join(", "))))
            }
        }
    }

    pub(super) fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => value
                .as_bool()
                .map(Some)
                .ok_or_else(|| self.at(key, "expected true or false")),
        }
    }

    pub(super) fn duration(&self, key: &str) -> Result<Option<Duration>, String> {
        let parsed = self.text(key)?.map(reader::duration_from(Duration::from_secs(1)));
        match parsed {
            None => Ok(None),
            Some(Some(duration)) => Ok(Some(duration)),
            Some(None) => Err(self.at(key, "expected a duration from 1s, e.g. 10s")),
        }
    }

    pub(super) fn place(&self, key: &str) -> Result<Option<Place>, String> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let place = match text.split_once(':') {
            Some(("header", name)) => header_name(name).map(Place::Header),
            Some(("body", path)) if path.split('.').all(|step| !step.is_empty()) => {
                Some(Place::Body(path.to_owned().leak()))
            }
            _ => None,
        };
        place.map(Some).ok_or_else(|| {
            self.at(
                key,
                "expected header:NAME, or body: and the way to a field of the JSON body, e.g. body:data.id",
            )
        })
    }
}

fn header_name(name: &str) -> Option<&'static str> {
    let parsed = actix_web::http::header::HeaderName::try_from(name).ok();
    parsed.map(|_| &*name.to_owned().leak())
}
