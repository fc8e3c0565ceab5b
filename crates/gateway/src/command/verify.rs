//! `hookgate verify`: verdicts for saved vectors, and why one saved request fails.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use hookgate_signature::{Delivery, Headers, Keys, Refusal, Verified};
use hookgate_webhook::{Provider, vectors};

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
    /// The URL that it was sent to; by default the one that is configured as public
    #[arg(long, value_name = "URL")]
    url: Option<String>,
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
        let keys = source
            .provider
            .keys(&source.secrets, source.tolerance)
            .map_err(Failure::usage)?;
        let text = read(headers)?;
        let saved = Saved {
            provider: source.provider,
            keys: &keys,
            url: self.url.as_deref().or(source.public_url.as_deref()),
            headers: header_lines(&text),
            body: Bytes::from(read(body)?),
        };
        let now = clock::unix_seconds();
        let verified = match saved.verify(&saved.body, now) {
            Ok(verified) => verified,
            Err(refusal) => {
                saved.advise(refusal, now);
                return Err(Failure::new(format!("{}: {refusal}", refusal.reason())));
            }
        };
        let reading = source.provider.read(&verified);
        let reading =
            reading.map_err(|unreadable| Failure::new(format!("{}: {unreadable}", unreadable.reason())))?;
        for event in reading.events {
            print(&format!(
                "ok: secret {} matches, event {}\n",
                verified.slot(),
                event.id
            ));
        }
        Ok(())
    }
}

/// A delivery that somebody saved, and the keys it should fit.
struct Saved<'a> {
    provider: Provider,
    keys: &'a Keys,
    url: Option<&'a str>,
    headers: Headers<'a>,
    body: Bytes,
}

impl Saved<'_> {
    fn verify(&self, body: &Bytes, now: i64) -> Result<Verified<'_>, Refusal> {
        let delivery = Delivery {
            method: "POST",
            url: self.url,
            headers: self.headers.clone(),
            body: body.clone(),
        };
        self.provider.verify(self.keys, delivery, now)
    }

    /// Says what would have passed: the same signature at another time or over a slightly other body, and in
    /// any case the headers that a holder of the first secret would send for this body now.
    fn advise(&self, refusal: Refusal, now: i64) {
        let then = match refusal {
            Refusal::StaleTimestamp { age, .. } => now.saturating_sub_unsigned(age.as_secs()),
            Refusal::FutureTimestamp { ahead, .. } => now.saturating_add_unsigned(ahead.as_secs()),
            Refusal::MissingSignature(_) | Refusal::MalformedSignature { .. } | Refusal::BadSignature => now,
        };
        if then != now
            && let Ok(verified) = self.verify(&self.body, then)
        {
            let slot = verified.slot();
            print(&format!(
                "secret {slot} matches: only the time is against it, it was good at {then}\n"
            ));
        }
        for (body, change) in self.other_bodies() {
            if self.verify(&body, now).is_ok() {
                print(&format!(
                    "the signature fits {change}: save the body byte for byte\n"
                ));
            }
        }
        let id = self.headers.text("webhook-id").unwrap_or("msg_1");
        let passing = self.keys.sign(id, now, &self.body);
        if !passing.is_empty() {
            print("these headers would pass for this body now:\n");
        }
        for (name, value) in passing {
            print(&format!("  {name}: {value}\n"));
        }
    }

    /// The body as it may have been before an editor, a shell or a proxy had it.
    fn other_bodies(&self) -> Vec<(Bytes, &'static str)> {
        let body = &self.body;
        let without = |end: &[u8]| body.strip_suffix(end).map(Bytes::copy_from_slice);
        let unix: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\r').collect();
        let mut others = vec![
            (
                Bytes::from([body, &b"\n"[..]].concat()),
                "the body with a line break at its end",
            ),
            (Bytes::from(unix), "the body without carriage returns"),
        ];
        others.extend(without(b"\n").map(|body| (body, "the body without the line break at its end")));
        others.extend(without(b"\r\n").map(|body| (body, "the body without the line break at its end")));
        others
    }
}

fn judge(path: &Path) -> Result<(), Failure> {
    let text = read(path)?;
    let mut differing = Vec::new();
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
        if !verdict.as_expected {
            differing.push(format!("line {} ({})", number + 1, verdict.name));
        }
    }
    if differing.is_empty() {
        Ok(())
    } else {
        let (count, lines) = (differing.len(), differing.join(", "));
        Err(Failure::new(format!(
            "{count} verdict(s) differ from what their line expects: {lines}"
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
