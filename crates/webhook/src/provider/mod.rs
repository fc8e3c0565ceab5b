//! The providers: one enum arm and one file each.

mod github;
mod shopify;
mod standard_webhooks;
mod stripe;

use std::time::Duration;

use hookgate_signature::{Scheme, Tolerance, Verified};

use crate::sample::{Sample, Template, UnknownType};
use crate::{Event, Unreadable};

/// A provider whose deliveries hookgate understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Stripe.
    Stripe,
    /// GitHub.
    Github,
    /// Shopify.
    Shopify,
    /// Any sender that follows Standard Webhooks 1.0.0.
    StandardWebhooks,
}

/// What is known about how a provider delivers. Facts only; the gateway decides what follows.
#[derive(Debug, Clone, Copy)]
pub struct Knowledge {
    /// As in configuration, keys and labels, e.g. `stripe`.
    pub name: &'static str,
    /// How it signs.
    pub scheme: Scheme,
    /// How far its signed timestamps may lie from the receiver's clock.
    pub tolerance: Tolerance,
    /// How long it waits for an answer; what we assume where it publishes none.
    pub answer_budget: Duration,
    /// For how long after an event it sends the same id again by itself; `None` if it never does.
    pub automatic_retries: Option<Duration>,
    /// For how long after an event a person can have it send the same id again; `None` where it offers no such thing.
    pub manual_resend: Option<Duration>,
    /// Whether it treats every 4xx as final, so that "try later" must be a 5xx.
    pub client_error_is_final: bool,
    /// HTTP status it wants for a bad signature: 400, or 401 where it demands that.
    pub refusal_status: u16,
    /// Largest body it sends, bytes; `None` where it publishes none.
    pub body_bytes_max: Option<usize>,
    /// Whether its event id is part of the signed bytes.
    pub id_is_signed: bool,
    /// Whether one delivery can carry several events.
    pub batches: bool,
    /// Header names that a target needs to verify the provider's signature itself and to read id and type.
    pub forwarded_headers: &'static [&'static str],
    /// A published secret for `hookgate dev`. Worthless by design.
    pub dev_secret: &'static str,
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
}

/// No provider of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider; known are {}", Provider::ALL.map(|p| p.name()).join(", "))]
pub struct UnknownProvider;

impl Provider {
    /// Every provider, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Stripe, Self::Github, Self::Shopify, Self::StandardWebhooks];

    /// As in configuration, keys and labels, e.g. `stripe`.
    pub fn name(self) -> &'static str {
        self.knowledge().name
    }

    /// What is known about how it delivers.
    pub fn knowledge(self) -> &'static Knowledge {
        match self {
            Self::Stripe => &stripe::KNOWLEDGE,
            Self::Github => &github::KNOWLEDGE,
            Self::Shopify => &shopify::KNOWLEDGE,
            Self::StandardWebhooks => &standard_webhooks::KNOWLEDGE,
        }
    }

    /// The events of a verified delivery: one, or several where the provider batches; never none without
    /// an error unless the provider documents an empty batch.
    ///
    /// # Errors
    /// [`Unreadable`] if no event can be read; its text never quotes the body.
    pub fn read(self, verified: &Verified<'_>) -> Result<Vec<Event>, Unreadable> {
        match self {
            Self::Stripe => stripe::read(verified),
            Self::Github => github::read(verified),
            Self::Shopify => shopify::read(verified),
            Self::StandardWebhooks => standard_webhooks::read(verified),
        }
    }

    /// An unsigned delivery as the provider would send it at `now_ms`, unix milliseconds: of the given
    /// type, else of the first of [`Provider::sample_types`]. Its ids follow from the serial.
    ///
    /// # Errors
    /// [`UnknownType`] if there is no sample of the type.
    pub fn sample(self, event_type: Option<&str>, serial: u128, now_ms: i64) -> Result<Sample, UnknownType> {
        let template = self
            .samples()
            .iter()
            .find(|template| event_type.is_none_or(|wanted| wanted == template.event_type))
            .ok_or_else(|| UnknownType(self.sample_types().collect::<Vec<_>>().join(", ")))?;
        Ok(match self {
            Self::Stripe => stripe::sample(template, serial, now_ms),
            Self::Github => github::sample(template, serial, now_ms),
            Self::Shopify => shopify::sample(template, serial, now_ms),
            Self::StandardWebhooks => standard_webhooks::sample(template, serial, now_ms),
        })
    }

    /// The types of which there are samples.
    pub fn sample_types(self) -> impl Iterator<Item = &'static str> {
        self.samples().iter().map(|template| template.event_type)
    }

    fn samples(self) -> &'static [Template] {
        match self {
            Self::Stripe => stripe::SAMPLES,
            Self::Github => github::SAMPLES,
            Self::Shopify => shopify::SAMPLES,
            Self::StandardWebhooks => standard_webhooks::SAMPLES,
        }
    }
}

impl std::str::FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        Self::ALL
            .into_iter()
            .find(|provider| provider.name() == name)
            .ok_or(UnknownProvider)
    }
}
