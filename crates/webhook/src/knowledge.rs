//! What is known about how a provider delivers. Facts only; the gateway decides what follows.

use std::time::Duration;

use hookgate_signature::{Scheme, Tolerance};

/// What is known about how a provider delivers.
#[derive(Debug, Clone, Copy)]
pub struct Knowledge {
    /// As in configuration, keys and labels, e.g. `stripe`.
    pub name: &'static str,
    /// As people write it, e.g. `Mercado Pago`.
    pub title: &'static str,
    /// How it signs.
    pub scheme: Scheme,
    /// How far its signed timestamps may lie from the receiver's clock.
    pub tolerance: Tolerance,
    /// How much of the URL registered with it it signs.
    pub url: UrlUse,
    /// Where what identifies an event stands.
    pub places: Places,
    /// How long it waits for an answer; what we assume where it publishes none.
    pub answer_budget: Duration,
    /// Whether that budget is published.
    pub answer_budget_is_published: bool,
    /// What it takes for success.
    pub success: Success,
    /// For how long after an event it sends the same id again by itself; `None` if it never does.
    pub automatic_retries: Option<Duration>,
    /// For how long after an event a person can have it send the same id again; `None` where it offers no such thing.
    pub manual_resend: Option<Duration>,
    /// Its schedule of retries, in words.
    pub retries_in_words: &'static str,
    /// Failures, or what else, after which it stops sending, in words; empty where it publishes none.
    pub gives_up: &'static str,
    /// Whether it treats every 4xx as final, or does worse, so that "try later" must be a 5xx.
    pub client_error_is_final: bool,
    /// HTTP status it wants for a bad signature: 400, or 401 where it demands that.
    pub refusal_status: u16,
    /// Largest body it sends, bytes; `None` where it publishes none.
    pub body_bytes_max: Option<usize>,
    /// Whether its event id is part of the signed bytes.
    pub id_is_signed: bool,
    /// Where its body says what changed, apart from what is true of one delivery or one event alone: the name of a
    /// member, or several joined by dots. `None` where nothing is set apart so.
    pub content_path: Option<&'static str>,
    /// Whether one delivery can carry several events.
    pub batches: bool,
    /// What it sends that is no event and wants an answer of its own, in words; empty if nothing.
    pub handshake: &'static str,
    /// Header names that a target needs to verify the provider's signature itself and to read id and type.
    pub forwarded_headers: &'static [&'static str],
    /// Published secrets for `hookgate dev`: the key that signs, and labels beside it. Worthless by design.
    pub dev_secrets: &'static [&'static str],
    /// Where these facts are from.
    pub sources: &'static [&'static str],
}

impl Knowledge {
    /// Whether it tries again by itself after a failure.
    pub fn retries(&self) -> bool {
        self.automatic_retries.is_some()
    }

    /// Longest time after which it can send the same id again, by itself or by a person's hand.
    pub fn resend_window(&self) -> Duration {
        self.automatic_retries.max(self.manual_resend).unwrap_or_default()
    }

    /// Whether a time is signed, so that a tolerance has something to judge.
    pub fn signs_time(&self) -> bool {
        !matches!(self.tolerance, Tolerance::Off)
    }

    /// Whether its events say if they are live or a test.
    pub fn says_mode(&self) -> bool {
        !self.places.mode.is_empty()
    }

    /// Whether its events say to which account they belong.
    pub fn says_account(&self) -> bool {
        !self.places.account.is_empty()
    }
}

/// How much of the URL registered with it a provider signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlUse {
    /// Nothing.
    Unused,
    /// Something in its query.
    Query,
    /// All of it, character by character.
    Whole,
}

/// What a provider takes for success. A duplicate is answered as the first delivery was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    /// 200, whatever the body.
    Ok,
    /// 200 with `[accepted]` somewhere in the body.
    OkAccepted,
    /// 204 without a body.
    NoContent,
}

/// Where what identifies an event stands, in words for people; empty where the provider has no such thing.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// The id.
    pub id: &'static str,
    /// The type.
    pub event_type: &'static str,
    /// The id of the object.
    pub object: &'static str,
    /// The provider's time.
    pub time: &'static str,
    /// The account.
    pub account: &'static str,
    /// Live or test.
    pub mode: &'static str,
}
