//! Where the secrets of a source stand, and how they are read: once at start, and again while the process
//! runs, from the same place. What the environment itself holds cannot change; what files hold can.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate_signature::Tolerance;
use hookgate_webhook::{Provider, SourceName};
use secrecy::{ExposeSecret, SecretString};

use super::reader::{self, Reader, Wrong};
use super::setting;

/// More often would be work without use.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Secrets that are valid now, and where they stand.
#[derive(Debug, Clone)]
pub(super) struct Secrets {
    /// One, or several during a rotation.
    pub(super) list: Vec<SecretString>,
    /// Where to look for others.
    pub(super) origin: SecretOrigin,
}

/// The place that a source's secrets come from.
#[derive(Debug, Clone)]
pub enum SecretOrigin {
    /// The environment, the published dev secret, or a pipe: they cannot change while we run.
    Fixed,
    /// A file with one secret a line.
    File {
        /// Its path.
        path: PathBuf,
        /// What names it, for sentences.
        setting: String,
    },
    /// The source's table of the configuration file: its `secrets`, or the file that it names.
    Table {
        /// The configuration file.
        path: PathBuf,
        /// The source.
        source: SourceName,
    },
}

/// What a source's table says of its secrets.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) secrets: Option<&'a Vec<SecretString>>,
    pub(super) secret_file: Option<&'a Path>,
}

/// The pause between two looks at files with secrets: `Some(None)` if there are to be none.
pub(super) fn interval(text: &str) -> Option<Option<Duration>> {
    match text {
        "off" => Some(None),
        interval => reader::duration_from(INTERVAL_MIN)(interval).map(Some),
    }
}

impl SecretOrigin {
    /// Whether other secrets may come from there while we run.
    pub fn can_change(&self) -> bool {
        !matches!(self, Self::Fixed)
    }

    /// Reads the secrets again; `None` if there is nothing to read. Blocks for as long as the files do.
    ///
    /// # Errors
    /// [`Wrong`] if they cannot be read or one of them is blank; its sentence holds no secret.
    pub fn read(&self) -> Result<Option<Vec<SecretString>>, Wrong> {
        let (list, origin) = match self {
            Self::Fixed => return Ok(None),
            Self::File { path, setting } => (from_file(path, setting)?, setting.clone()),
            Self::Table { path, source } => from_table(path, source)?,
        };
        none_blank(&list, origin)?;
        Ok(Some(list))
    }
}

/// Secrets: from the environment, its file, the table, the table's file; in dev the published one.
pub(super) fn read(
    reader: &Reader,
    dev: bool,
    name: &SourceName,
    provider: Provider,
    named: Named<'_>,
) -> Result<Secrets, Wrong> {
    let [variable, file_variable] = setting::secret_variables(name.as_str());
    let in_table = || SecretOrigin::Table {
        path: reader.path(),
        source: name.clone(),
    };
    let (list, place, origin) = if let Some(list) = reader.env().get(&variable) {
        (split(list, ','), variable, SecretOrigin::Fixed)
    } else if let Some(path) = reader.env().get(&file_variable) {
        let origin = SecretOrigin::File {
            path: path.into(),
            setting: file_variable.clone(),
        };
        (from_file(path.as_ref(), &file_variable)?, file_variable, origin)
    } else if let Some(secrets) = named.secrets {
        (
            secrets.clone(),
            format!("secrets of [sources.{name}]"),
            in_table(),
        )
    } else if let Some(path) = named.secret_file {
        let place = format!("secret_file of [sources.{name}]");
        (from_file(path, &place)?, place, in_table())
    } else if dev {
        (
            provider.dev_secrets(),
            "the dev secret".to_owned(),
            SecretOrigin::Fixed,
        )
    } else {
        return Err(Wrong::Combination(format!(
            "source {name} has no secret: set {variable} or {file_variable}"
        )));
    };
    none_blank(&list, place.clone())?;
    match provider.keys(&list, Tolerance::Off) {
        Ok(_) => Ok(Secrets {
            list,
            origin: origin.unless_a_pipe(),
        }),
        Err(bad) => Err(Wrong::Combination(format!("{place} of source {name}: {bad}"))),
    }
}

impl SecretOrigin {
    /// A pipe is empty once it was read: that is no change of what came out of it.
    fn unless_a_pipe(self) -> Self {
        match &self {
            Self::File { path, .. } | Self::Table { path, .. } if !path.is_file() => Self::Fixed,
            Self::Fixed | Self::File { .. } | Self::Table { .. } => self,
        }
    }
}

/// An empty secret would let anybody in.
fn none_blank(list: &[SecretString], origin: String) -> Result<(), Wrong> {
    let blank = |secret: &SecretString| secret.expose_secret().trim().is_empty();
    if !list.is_empty() && !list.iter().any(blank) {
        return Ok(());
    }
    Err(Wrong::Value {
        origin,
        value: "(not shown)".to_owned(),
        accepts: "one or more secrets as the provider shows them, none empty".to_owned(),
    })
}

fn split(list: &str, separator: char) -> Vec<SecretString> {
    list.split(separator).map(|secret| secret.trim().into()).collect()
}

/// One secret a line; empty lines are skipped.
fn from_file(path: &Path, origin: &str) -> Result<Vec<SecretString>, Wrong> {
    let text = std::fs::read_to_string(path).map_err(|error| Wrong::Value {
        origin: origin.to_owned(),
        value: format!("{:?}", path.display().to_string()),
        accepts: format!("a readable file with one secret a line ({error})"),
    })?;
    Ok(secrets_of(&text))
}

/// One secret a line, except that a key in PEM is one secret from its first line to its last. Empty lines are skipped.
fn secrets_of(text: &str) -> Vec<SecretString> {
    let mut secrets = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut open = block.take();
        match &mut open {
            Some(pem) => *pem += &format!("\n{line}"),
            None if line.starts_with("-----BEGIN ") => open = Some(line.to_owned()),
            None => secrets.push(line.into()),
        }
        match open {
            Some(pem) if line.starts_with("-----END ") => secrets.push(pem.into()),
            still_open => block = still_open,
        }
    }
    // A block without its end is no key; whoever reads it says so.
    secrets.extend(block.map(SecretString::from));
    secrets
}

/// What the source's table says now, and what of it says so. Every other key is left unread: it counts from
/// the next start on, and is refused then if it is wrong.
fn from_table(path: &Path, name: &SourceName) -> Result<(Vec<SecretString>, String), Wrong> {
    let wrong = |problem: String| Wrong::File {
        path: path.to_owned(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file: toml::Table = text
        .parse()
        .map_err(|error| wrong(reader::located(&text, &error)))?;
    let table = file.get("sources").and_then(|sources| sources.get(name.as_str()));
    let key = |key| table.and_then(|table| table.get(key));
    if let Some(secrets) = key("secrets") {
        let list = secrets.as_array().and_then(|list| {
            let texts = list.iter().map(|secret| secret.as_str().map(SecretString::from));
            texts.collect::<Option<Vec<_>>>()
        });
        let expected = || wrong(format!("[sources.{name}]: secrets is not a list of texts"));
        return Ok((list.ok_or_else(expected)?, format!("secrets of [sources.{name}]")));
    }
    let origin = format!("secret_file of [sources.{name}]");
    match key("secret_file").and_then(toml::Value::as_str) {
        Some(file) => Ok((from_file(file.as_ref(), &origin)?, origin)),
        None => Err(wrong(format!(
            "[sources.{name}] has neither secrets nor secret_file any more"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_pem_is_one_secret_and_every_other_line_is_one() {
        let pem = "-----BEGIN PUBLIC KEY-----\nMFkw\nEwYH\n-----END PUBLIC KEY-----";
        let text = format!("\n  webhook-id  \r\n{}\n\nanother\n", pem.replace('\n', "\r\n"));
        let secrets = secrets_of(&text);
        let shown: Vec<_> = secrets.iter().map(SecretString::expose_secret).collect();
        assert_eq!(shown, ["webhook-id", pem, "another"]);
        let cut = secrets_of("-----BEGIN PUBLIC KEY-----\nMFkw\n");
        assert_eq!(cut.len(), 1, "a block without an end is not taken apart");
    }
}
