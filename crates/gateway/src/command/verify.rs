//! `hookgate verify`: verdicts for saved vectors, and why one saved request fails.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use hookgate_signature::{Delivery, Headers, Keys};
use hookgate_webhook::vectors;

use super::{Failure, print};
use crate::cli::ConfigFile;
use crate::clock;
use crate::config::Config;

/// Arguments of `hookgate verify`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["jsonl", "source"]))]
pub struct Verify {
    /// Vectors, one JSON object a line; prints one verdict a line, exit 1 if one differs from its "expect"
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Configured source that a saved request was sent to
    #[arg(long, value_name = "NAME", requires_all = ["headers", "body"])]
    source: Option<String>,
    /// Its headers, one "Name: value" a line
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
    /// Its body, byte for byte
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    #[command(flatten)]
    file: ConfigFile,
}

impl Verify {
    /// Judges, and fails if something is not as it should be.
    pub fn run(&self) -> Result<(), Failure> {
        match (&self.jsonl, &self.source, &self.headers, &self.body) {
            (Some(path), ..) => judge(path),
            (None, Some(source), Some(headers), Some(body)) => self.diagnose(source, headers, body),
            _ => Err(Failure::usage(
                "give --jsonl FILE, or --source NAME --headers FILE --body FILE",
            )),
        }
    }

    fn diagnose(&self, name: &str, headers: &Path, body: &Path) -> Result<(), Failure> {
        let config = Config::from_process(self.file.config.as_deref(), false)?;
        let source = config.sources.iter().find(|source| source.name.as_str() == name);
        let source = source.ok_or_else(|| Failure::usage(format!("no source {name} is configured")))?;
        let knowledge = source.provider.knowledge();
        let keys =
            Keys::new(knowledge.scheme, &source.secrets, knowledge.tolerance).map_err(Failure::usage)?;
        let text = read(headers)?;
        let delivery = Delivery {
            method: "POST",
            url: None,
            headers: header_lines(&text),
            body: Bytes::from(read(body)?),
        };
        let verified = keys.verify(delivery, clock::unix_seconds());
        let verified =
            verified.map_err(|refusal| Failure::new(format!("{}: {refusal}", refusal.reason())))?;
        let events = source.provider.read(&verified);
        let events =
            events.map_err(|unreadable| Failure::new(format!("{}: {unreadable}", unreadable.reason())))?;
        for event in events {
            print(&format!(
                "ok: secret {} matches, event {}\n",
                verified.slot(),
                event.id
            ));
        }
        Ok(())
    }
}

fn judge(path: &Path) -> Result<(), Failure> {
    let text = read(path)?;
    let mut differing = 0;
    for (number, line) in text.lines().enumerate() {
        let at = |problem: &dyn std::fmt::Display| {
            Failure::new(format!("{} line {}: {problem}", path.display(), number + 1))
        };
        let line = line.map_err(|error| at(&error))?;
        if line.trim().is_empty() {
            continue;
        }
        let verdict = vectors::judge(&line).map_err(|bad| at(&bad))?;
        let json = serde_json::to_string(&verdict).map_err(|error| at(&error))?;
        print(&format!("{json}\n"));
        differing += u32::from(!verdict.as_expected);
    }
    if differing == 0 {
        Ok(())
    } else {
        Err(Failure::new(format!(
            "{differing} verdict(s) differ from their \"expect\""
        )))
    }
}

/// `Name: value` lines; a request line or an empty line is skipped.
fn header_lines(text: &[u8]) -> Headers<'_> {
    let lines = text.split(|b| *b == b'\n');
    lines
        .filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            let name = std::str::from_utf8(&line[..colon]).ok()?;
            Some((name, line[colon + 1..].trim_ascii()))
        })
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
