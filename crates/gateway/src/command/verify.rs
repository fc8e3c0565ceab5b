//! `hookgate verify`: verdicts for saved vectors, and a doctor for one saved request.

mod saved;
mod vectors;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use hookgate_ledger::UnixMicros;
use hookgate_signature::{Delivery, Scheme, Tolerance, Unsigned};
use hookgate_webhook::doctor::{Case, Cause, Diagnosis, Endpoint, diagnose};
use hookgate_webhook::{Event, Field, Sample, Sending};
use serde_json::json;

use self::saved::Saved;
use super::operations::safe;
use super::{Failure, print};
use crate::address::Address;
use crate::cli::ConfigFile;
use crate::clock;
use crate::config::{Config, SourceConfig};
use crate::view::moment;

/// Arguments of `hookgate verify`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["jsonl", "source"]))]
pub struct Verify {
    /// Vectors, one JSON object a line; prints one verdict a line, exit 1 if one differs from its "expect"
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
    /// Configured source that a saved request was sent to
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Its headers, one "Name: value" a line, or what curl -v printed
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
    /// Its body, byte for byte
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The whole request in one file: request line, headers, an empty line, the body byte for byte
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// The URL that it was sent to; by default what the configuration and the request line say
    #[arg(long, value_name = "URL", requires = "source")]
    url: Option<String>,
    /// Its method; by default that of the request line, else POST
    #[arg(long, value_name = "METHOD", requires = "source")]
    method: Option<String>,
    /// Judge at this time: unix seconds, RFC 3339, or an age such as 2h
    #[arg(long, value_name = "TIME", requires = "source")]
    at: Option<String>,
    /// Print the diagnosis as JSON
    #[arg(long, requires = "source")]
    json: bool,
    /// Also print headers that would pass for this body now; they are valid signatures
    #[arg(long, requires = "source")]
    sign: bool,
    #[command(flatten)]
    file: ConfigFile,
}

impl Verify {
    /// The examination of one saved request, head and body in one file.
    pub(super) fn sample(source: &str, request: &Path, at: Option<&str>, file: &ConfigFile) -> Self {
        Self {
            jsonl: None,
            source: Some(source.to_owned()),
            headers: None,
            body: None,
            request: Some(request.to_owned()),
            url: None,
            method: None,
            at: at.map(str::to_owned),
            json: false,
            sign: false,
            file: file.clone(),
        }
    }

    /// Judges, and fails if something is not as it should be.
    pub fn run(&self) -> Result<(), Failure> {
        match (&self.jsonl, &self.source) {
            (Some(path), _) => vectors::judge(path),
            (None, Some(source)) => self.examine(source),
            (None, None) => Err(Failure::usage("give --jsonl FILE or --source NAME")),
        }
    }

    fn saved(&self) -> Result<Saved, Failure> {
        match (&self.request, &self.headers, &self.body) {
            (Some(request), None, None) => Saved::of_request(&read(request)?).ok_or_else(|| {
                Failure::usage(format!("{}: no empty line ends its headers", request.display()))
            }),
            (None, Some(headers), Some(body)) => Ok(Saved::of_parts(&read(headers)?, read(body)?)),
            _ => Err(Failure::usage(
                "give --headers FILE and --body FILE, or --request FILE with both",
            )),
        }
    }

    fn examine(&self, name: &str) -> Result<(), Failure> {
        let now = self.moment()?;
        let config = Config::from_process(self.file.config.as_deref(), false)?;
        let (asked, others): (Vec<_>, Vec<_>) = config
            .sources
            .iter()
            .partition(|source| source.name.as_str() == name);
        let source = asked
            .first()
            .ok_or_else(|| Failure::usage(format!("no source {name} is configured")))?;
        let others: Vec<_> = others.into_iter().map(endpoint).collect();
        let saved = self.saved()?;
        let url = self.url.clone().unwrap_or_else(|| {
            let query = saved.target.as_deref().and_then(|target| target.split_once('?'));
            Address::of(&config, source).url(saved.value("host"), query.map(|(_, query)| query))
        });
        let method = self
            .method
            .as_deref()
            .or(saved.method.as_deref())
            .unwrap_or("POST");
        let case = Case {
            endpoint: endpoint(source),
            delivery: Delivery {
                method,
                url: Some(&url),
                headers: saved
                    .headers
                    .iter()
                    .map(|(name, value)| (&**name, &**value))
                    .collect(),
                body: saved.body.clone(),
            },
            target: saved.target.as_deref(),
            others: &others,
        };
        let diagnosis = diagnose(&case, now).map_err(Failure::usage)?;
        match self.json {
            true => print(&format!("{}\n", as_json(&diagnosis, name, now))),
            false => print(&safe::lines(in_words(&diagnosis, now).as_bytes())),
        }
        if self.sign {
            let now = clock::unix_seconds();
            print(&signed(source, &case, now).map_err(Failure::usage)?);
        }
        match diagnosis.is_ok() {
            true => Ok(()),
            false => Err(Failure::new("")),
        }
    }

    fn moment(&self) -> Result<i64, Failure> {
        let Some(text) = &self.at else {
            return Ok(clock::unix_seconds());
        };
        let read = moment::read(text, clock::unix_micros());
        let read = read.map(|UnixMicros(micros)| micros.div_euclid(1_000_000));
        text.parse().ok().or(read).ok_or_else(|| {
            Failure::usage(format!(
                "--at {text:?}: give unix seconds, RFC 3339 such as 2026-01-31T12:00:00Z, or an age such as 2h"
            ))
        })
    }
}

fn endpoint(source: &SourceConfig) -> Endpoint<'_> {
    Endpoint {
        name: source.name.as_str(),
        provider: source.provider,
        secrets: &source.secrets,
        tolerance: source.tolerance,
        body_bytes_max: source.body_bytes_max,
    }
}

/// The sentence first, then what two people compare.
fn in_words(diagnosis: &Diagnosis, now: i64) -> String {
    let verdict = diagnosis.refusal.map_or("ok", |refusal| refusal.reason());
    let at = moment::show(UnixMicros(now.saturating_mul(1_000_000)));
    let Diagnosis {
        sentence,
        body_bytes,
        body_sha256,
        tried,
        ..
    } = diagnosis;
    let verdict = match &diagnosis.cause {
        Cause::Unreadable(unreadable) => unreadable.reason(),
        Cause::BodyTooLarge { .. } => diagnosis.cause.word(),
        _ => verdict,
    };
    format!(
        "{sentence}\n\n  verdict  {verdict}\n  at       {now} ({at})\n  body     {body_bytes} bytes, SHA-256 {body_sha256}\n\
         \x20 tried    {tried} changed copies\n{}",
        read_from(&diagnosis.cause)
    )
}

/// What was read from the delivery, an event a line.
fn read_from(cause: &Cause) -> String {
    let Cause::Passes { events, .. } = cause else {
        return String::new();
    };
    events
        .iter()
        .map(|event| format!("  read     {}\n", fields(event)))
        .collect()
}

fn fields(event: &Event) -> String {
    let text = |field: &Option<Field>| field.as_ref().map(|field| field.as_str().to_owned());
    let id = if event.id_is_digest { "id (a digest)" } else { "id" };
    let all = [
        (id, Some(event.id.to_string())),
        ("type", text(&event.event_type)),
        ("object", text(&event.object_id)),
        ("account", text(&event.account)),
        ("mode", event.mode.as_str().map(str::to_owned)),
        (
            "time",
            event.provider_time.as_ref().map(|time| time.text.to_string()),
        ),
    ];
    let told = all
        .into_iter()
        .map(|(name, value)| format!("{name} {}", value.as_deref().unwrap_or("-")));
    told.collect::<Vec<_>>().join(", ")
}

fn as_json(diagnosis: &Diagnosis, source: &str, now: i64) -> serde_json::Value {
    let (events, seconds_left) = match &diagnosis.cause {
        Cause::Passes {
            events, seconds_left, ..
        } => (events.as_slice(), *seconds_left),
        _ => (&[][..], None),
    };
    let events = events
        .iter()
        .map(|event| json!({"id": event.id.as_str(), "type": event.event_type.as_ref().map(Field::as_str)}));
    json!({
        "ok": diagnosis.is_ok(),
        "source": source,
        "at": now,
        "sentence": diagnosis.sentence,
        "cause": diagnosis.cause.word(),
        "refusal": diagnosis.refusal.map(|refusal| refusal.reason()),
        "also": diagnosis.also.map(|refusal| refusal.reason()),
        "secret": diagnosis.slot,
        "events": events.collect::<Vec<_>>(),
        "seconds_left": seconds_left,
        "body_bytes": diagnosis.body_bytes,
        "body_sha256": diagnosis.body_sha256,
        "tried": diagnosis.tried,
    })
}

/// What a holder of the first secret would send with this body now.
fn signed(source: &SourceConfig, case: &Case<'_>, now: i64) -> Result<String, hookgate_signature::BadSecret> {
    let keys = source.provider.keys(&source.secrets, Tolerance::Off)?;
    let delivery = &case.delivery;
    if let Scheme::Token(token) = source.provider.knowledge().scheme {
        return Ok(format!(
            "nothing is signed: the {} header holds one of the secrets, which is not shown\n",
            token.header
        ));
    }
    let id = match source.provider.knowledge().scheme {
        Scheme::StandardWebhooks(scheme) => delivery.headers.text(scheme.id),
        _ => None,
    };
    let id = id
        .or_else(|| delivery.headers.text("webhook-id"))
        .unwrap_or("msg_1");
    let headers = match source.provider.knowledge().scheme {
        Scheme::Detached(_) => {
            let sample = Sample {
                id: id.to_owned(),
                event_type: "",
                headers: Vec::new(),
                body: Bytes::clone(&delivery.body),
            };
            let url = delivery.url.unwrap_or_default();
            source
                .provider
                .sign(&keys, &sample, &Sending { url, now })
                .headers
        }
        _ => {
            let own: Vec<_> = delivery
                .headers
                .iter()
                .filter_map(|(name, value)| Some((name, std::str::from_utf8(value).ok()?)))
                .collect();
            keys.sign_request(&Unsigned {
                id,
                now,
                method: delivery.method,
                url: delivery.url,
                headers: &own,
                body: &delivery.body,
            })
        }
    };
    if headers.is_empty() {
        return Ok(
            "no headers can be made: the secret can only verify, or the signature stands in the body\n"
                .to_owned(),
        );
    }
    let lines = headers.iter().map(|(name, value)| format!("  {name}: {value}\n"));
    Ok(format!(
        "these headers would pass for this body now:\n{}",
        lines.collect::<String>()
    ))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
