//! What is known about the providers, for people: one fact a line, the table, and the page of the documentation. All
//! three come from the same facts, so they cannot disagree.

use std::fmt::Write as _;
use std::time::Duration;

use hookgate_signature::Tolerance;
use hookgate_webhook::{Provider, Success, UrlUse};
use serde::Serialize;

/// Facts about a provider; Markdown, empty where there is nothing to say.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// As in configuration and keys.
    pub name: &'static str,
    /// As people write it.
    pub title: &'static str,
    /// Where the signature stands.
    pub header: String,
    /// What is signed.
    pub signed: String,
    /// The algorithm.
    pub signature: String,
    /// What the secret is.
    pub key: &'static str,
    /// How old and how far ahead a signed time may be.
    pub tolerance: String,
    /// How much of its URL it signs.
    pub url: &'static str,
    /// Where the id stands.
    pub id: String,
    /// Whether the id is authentic.
    pub id_is_signed: bool,
    /// Where the type stands.
    pub event_type: &'static str,
    /// Where the object's id stands.
    pub object: &'static str,
    /// Where its time stands.
    pub time: &'static str,
    /// Where the account stands.
    pub account: &'static str,
    /// Where it says live or test.
    pub mode: &'static str,
    /// What it takes for success.
    pub success: &'static str,
    /// What a bad signature is answered.
    pub refusal_status: u16,
    /// Whether a 4xx is final, or worse.
    pub client_error_is_final: bool,
    /// How long it waits.
    pub answer_budget: String,
    /// Its schedule of retries.
    pub retries: &'static str,
    /// For how long it can send an id again.
    pub resend: String,
    /// When it stops sending.
    pub gives_up: &'static str,
    /// The largest body it sends.
    pub body_max: String,
    /// Whether one delivery can carry several events.
    pub batches: bool,
    /// What it sends that is no event.
    pub handshake: &'static str,
    /// Types of which `hookgate send` has samples.
    pub samples: Vec<&'static str>,
    /// Where the facts are from.
    pub sources: &'static [&'static str],
}

/// Everything about one provider.
pub fn facts(provider: Provider) -> Facts {
    let known = provider.knowledge();
    let scheme = known.scheme.describe();
    Facts {
        name: known.name,
        title: known.title,
        header: scheme.header,
        signed: scheme.signed,
        signature: scheme.signature,
        key: scheme.key,
        tolerance: tolerance(known.tolerance),
        url: match known.url {
            UrlUse::Unused => "",
            UrlUse::Query => "its query is signed",
            UrlUse::Whole => "it is signed, character by character as registered: set `public_url`",
        },
        id: match known.places.id {
            "" => "none: SHA-256 of body and type".to_owned(),
            place => place.to_owned(),
        },
        id_is_signed: known.id_is_signed,
        event_type: known.places.event_type,
        object: known.places.object,
        time: known.places.time,
        account: known.places.account,
        mode: known.places.mode,
        success: match known.success {
            Success::Ok => "200",
            Success::OkAccepted => "200, `[accepted]` in the body",
            Success::NoContent => "204",
        },
        refusal_status: known.refusal_status,
        client_error_is_final: known.client_error_is_final,
        answer_budget: match known.answer_budget_is_published {
            true => span(known.answer_budget),
            false => format!("{} (assumed)", span(known.answer_budget)),
        },
        retries: known.retries_in_words,
        resend: resend(known.automatic_retries, known.manual_resend),
        gives_up: known.gives_up,
        body_max: known.body_bytes_max.map(bytes).unwrap_or_default(),
        batches: known.batches,
        handshake: known.handshake,
        samples: provider.sample_types().collect(),
        sources: known.sources,
    }
}

impl Facts {
    /// One fact a line: its name and what there is to say.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| text.to_owned();
        vec![
            ("name", text(self.name)),
            ("signature in", self.header.clone()),
            ("signed", self.signed.clone()),
            ("signature", self.signature.clone()),
            ("secret", text(self.key)),
            ("time check", self.tolerance.clone()),
            ("URL", text(self.url)),
            (
                "id",
                match (self.id_is_signed, self.id.starts_with("none")) {
                    (false, false) => format!("{} (not signed: replays are watched for)", self.id),
                    _ => self.id.clone(),
                },
            ),
            ("type", text(self.event_type)),
            ("object", text(self.object)),
            ("time", text(self.time)),
            ("account", text(self.account)),
            ("live or test", text(self.mode)),
            ("success", text(self.success)),
            ("bad signature", self.refusal_status.to_string()),
            (
                "4xx",
                text(if self.client_error_is_final {
                    "final or worse: told to come later with 503"
                } else {
                    ""
                }),
            ),
            ("answer within", self.answer_budget.clone()),
            ("retries", text(self.retries)),
            ("same id again for", self.resend.clone()),
            ("gives up", text(self.gives_up)),
            ("largest body", self.body_max.clone()),
            (
                "batches",
                text(if self.batches {
                    "several events in one delivery"
                } else {
                    ""
                }),
            ),
            ("handshake", text(self.handshake)),
            ("samples", self.samples.join(", ")),
            ("sources", self.sources.join("; ")),
        ]
    }
}

/// JSON, an array.
pub fn json(providers: &[Provider]) -> String {
    let facts: Vec<_> = providers.iter().copied().map(facts).collect();
    let json = serde_json::to_string_pretty(&facts).expect("facts are texts, numbers and lists");
    json + "\n"
}

/// The page `docs/providers.md`.
pub fn page() -> String {
    let mut page = String::from(HEAD);
    for provider in Provider::ALL {
        let facts = facts(provider);
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} | {} | {} | {} | {} | {} |",
            facts.name,
            facts.name,
            cell(&facts.header),
            cell(&facts.tolerance),
            cell(&facts.id),
            cell(facts.success),
            facts.answer_budget,
            facts.resend,
        );
    }
    for provider in Provider::ALL {
        let facts = facts(provider);
        let _ = write!(page, "\n## {}\n\n{}\n\n", facts.name, facts.title);
        for (name, value) in facts
            .lines()
            .into_iter()
            .skip(1)
            .filter(|(_, value)| !value.is_empty())
        {
            let _ = writeln!(page, "- **{name}**: {value}");
        }
    }
    page
}

const HEAD: &str = "\
# Providers

What hookgate knows about how each provider signs, identifies and retries its webhooks. This page is printed by
`hookgate providers --markdown`; `hookgate providers NAME` shows one provider, `--json` is for programs.

A source is called after its provider unless the configuration says otherwise: `STRIPE_WEBHOOK_SECRET` opens
`POST /webhooks/stripe`. Senders that are not in this list are described in the configuration: see
[custom-senders.md](custom-senders.md).

| provider | signature in | time check | id | success | answer within | same id again for |
|---|---|---|---|---|---|---|
";

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn tolerance(tolerance: Tolerance) -> String {
    match tolerance {
        Tolerance::Off => "none".to_owned(),
        Tolerance::Past(limit) => format!("{} past", span(limit)),
        Tolerance::Both(limit) => format!("{} both ways", span(limit)),
        Tolerance::OnRequest => "off unless set, then both ways".to_owned(),
    }
}

fn resend(automatic: Option<Duration>, manual: Option<Duration>) -> String {
    let both = [("by itself", automatic), ("by hand", manual)];
    let told: Vec<_> = both
        .into_iter()
        .filter_map(|(how, window)| Some(format!("{} {how}", span(window?))))
        .collect();
    match told.is_empty() {
        true => "never".to_owned(),
        false => told.join(", "),
    }
}

fn span(duration: Duration) -> String {
    let day = 24 * 3600;
    match duration.as_secs() {
        seconds if seconds > 0 && seconds % day == 0 => format!("{} d", seconds / day),
        seconds if seconds >= 3600 && seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

fn bytes(bytes: usize) -> String {
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} kB", bytes / 1000),
    }
}
