//! The providers: one enum arm and one file each.
//!
//! A file defines everything special about its provider: what is known about it, how a delivery is read, and, where
//! it is needed, what is signed, what a handshake is answered, and how a sample is signed.

mod adyen;
mod asaas;
mod coinbase_commerce;
mod custom;
mod discord;
mod github;
mod gitlab;
mod hubspot;
mod lemon_squeezy;
mod line;
mod linear;
mod mercado_pago;
mod paddle;
mod paypal;
mod razorpay;
mod revenuecat;
mod sendgrid;
mod shopify;
mod slack;
mod square;
mod standard_webhooks;
mod stripe;
mod svix;
mod twilio;
mod zoom;

pub use custom::{Custom, Description, Kind, Place};

use bytes::Bytes;
use hookgate_signature::{
    BadSecret, Challenge, Delivery, Headers, Keys, Refusal, Seal, Tolerance, Unsigned, Verified,
};
use secrecy::SecretString;

use crate::sample::{Sample, Template, UnknownType};
use crate::{Knowledge, Reading, Unreadable};

/// A provider whose deliveries hookgate understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Stripe.
    Stripe,
    /// Lemon Squeezy.
    LemonSqueezy,
    /// Mercado Pago.
    MercadoPago,
    /// Asaas.
    Asaas,
    /// RevenueCat with a static `Authorization`.
    Revenuecat,
    /// RevenueCat with HMAC signatures.
    RevenuecatHmac,
    /// Shopify.
    Shopify,
    /// GitHub.
    Github,
    /// Any sender that follows Standard Webhooks 1.0.0.
    StandardWebhooks,
    /// PayPal.
    Paypal,
    /// Slack.
    Slack,
    /// Twilio.
    Twilio,
    /// Adyen.
    Adyen,
    /// Discord.
    Discord,
    /// Linear.
    Linear,
    /// HubSpot.
    Hubspot,
    /// SendGrid.
    Sendgrid,
    /// LINE.
    Line,
    /// Svix and those who send through it.
    Svix,
    /// Paddle Billing.
    Paddle,
    /// Square.
    Square,
    /// GitLab with a secret token.
    Gitlab,
    /// GitLab with a signing token.
    GitlabSigned,
    /// Razorpay.
    Razorpay,
    /// Coinbase Commerce.
    CoinbaseCommerce,
    /// Zoom.
    Zoom,
    /// A sender that a configuration describes.
    Custom(Custom),
}

/// Everything about one provider.
pub(crate) struct Definition {
    pub(crate) knowledge: Knowledge,
    /// The events of a verified delivery. Its errors never quote the body.
    pub(crate) read: fn(&Verified<'_>) -> Result<Reading, Unreadable>,
    /// Where parts of a body are signed, or a text that has to be worked out: what is said to be signed. It reads what
    /// nobody has verified, so it is bounded and yields only signed bytes and signatures.
    pub(crate) seals: Option<ReadsSeals>,
    /// Where the signed time stands in the body: reads it, unix seconds, once the signature is known to be good.
    pub(crate) signed_at: Option<ReadsTime>,
    /// Signs a sample where more than headers over the body are needed.
    pub(crate) sign: Option<fn(&Keys, &Sample, &Sending<'_>) -> Signed>,
    /// Samples, the most telling one first.
    pub(crate) samples: &'static [Template],
    /// Fills a sample in.
    pub(crate) sample: fn(&Template, u128, i64) -> Sample,
}

type ReadsSeals = fn(&Delivery<'_>) -> Result<Vec<Seal>, Refusal>;
type ReadsTime = fn(&Verified<'_>) -> Result<i64, Refusal>;

/// Where and when a sample is sent.
#[derive(Debug, Clone, Copy)]
pub struct Sending<'a> {
    /// The URL as registered with the provider.
    pub url: &'a str,
    /// The sender's clock, unix seconds.
    pub now: i64,
}

/// A sample as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Where it goes: the URL as registered, with what the provider adds to its query.
    pub url: String,
    /// All headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

/// No provider of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider; known are {}", Provider::ALL.map(|p| p.name()).join(", "))]
pub struct UnknownProvider;

impl Provider {
    /// Every provider that is built in, in the order of the documentation.
    pub const ALL: [Self; 26] = [
        Self::Stripe,
        Self::LemonSqueezy,
        Self::MercadoPago,
        Self::Asaas,
        Self::Revenuecat,
        Self::RevenuecatHmac,
        Self::Shopify,
        Self::Github,
        Self::StandardWebhooks,
        Self::Svix,
        Self::Paddle,
        Self::Paypal,
        Self::Square,
        Self::Slack,
        Self::Twilio,
        Self::Gitlab,
        Self::GitlabSigned,
        Self::Razorpay,
        Self::Adyen,
        Self::Discord,
        Self::Linear,
        Self::Hubspot,
        Self::Sendgrid,
        Self::Line,
        Self::CoinbaseCommerce,
        Self::Zoom,
    ];

    fn definition(self) -> &'static Definition {
        match self {
            Self::Custom(custom) => custom.definition(),
            Self::Stripe => &stripe::DEFINITION,
            Self::LemonSqueezy => &lemon_squeezy::DEFINITION,
            Self::MercadoPago => &mercado_pago::DEFINITION,
            Self::Asaas => &asaas::DEFINITION,
            Self::Revenuecat => &revenuecat::DEFINITION,
            Self::RevenuecatHmac => &revenuecat::HMAC_DEFINITION,
            Self::Shopify => &shopify::DEFINITION,
            Self::Github => &github::DEFINITION,
            Self::StandardWebhooks => &standard_webhooks::DEFINITION,
            Self::Svix => &svix::DEFINITION,
            Self::Paddle => &paddle::DEFINITION,
            Self::Square => &square::DEFINITION,
            Self::Gitlab => &gitlab::DEFINITION,
            Self::GitlabSigned => &gitlab::SIGNED_DEFINITION,
            Self::Razorpay => &razorpay::DEFINITION,
            Self::CoinbaseCommerce => &coinbase_commerce::DEFINITION,
            Self::Paypal => &paypal::DEFINITION,
            Self::Slack => &slack::DEFINITION,
            Self::Twilio => &twilio::DEFINITION,
            Self::Adyen => &adyen::DEFINITION,
            Self::Discord => &discord::DEFINITION,
            Self::Linear => &linear::DEFINITION,
            Self::Hubspot => &hubspot::DEFINITION,
            Self::Sendgrid => &sendgrid::DEFINITION,
            Self::Line => &line::DEFINITION,
            Self::Zoom => &zoom::DEFINITION,
        }
    }

    /// As in configuration, keys and labels, e.g. `stripe`.
    pub fn name(self) -> &'static str {
        self.knowledge().name
    }

    /// What is known about how it delivers.
    pub fn knowledge(self) -> &'static Knowledge {
        &self.definition().knowledge
    }

    /// Prepares the keys of an endpoint.
    ///
    /// # Errors
    /// [`BadSecret`] as [`Keys::new`].
    pub fn keys(self, secrets: &[SecretString], tolerance: Tolerance) -> Result<Keys, BadSecret> {
        Keys::new(self.knowledge().scheme, secrets, tolerance)
    }

    /// The keys of `hookgate dev`, which are published.
    pub fn dev_keys(self) -> Keys {
        let secrets: Vec<SecretString> = self.dev_secrets();
        self.keys(&secrets, self.knowledge().tolerance)
            .expect("a test prepares the dev secrets of every provider")
    }

    /// The secrets of `hookgate dev`, which are published.
    pub fn dev_secrets(self) -> Vec<SecretString> {
        let secrets = self.knowledge().dev_secrets;
        secrets.iter().copied().map(SecretString::from).collect()
    }

    /// Verifies a delivery at `now`, unix seconds, and signs what a handshake wants signed, if it may be.
    ///
    /// # Errors
    /// A [`Refusal`] that names the first thing wrong.
    pub fn verify<'a>(self, keys: &Keys, delivery: Delivery<'a>, now: i64) -> Result<Verified<'a>, Refusal> {
        let definition = self.definition();
        let verified = match definition.seals {
            None => keys.verify(delivery, now)?,
            Some(seals) => {
                let seals = seals(&delivery)?;
                keys.verify_seals(delivery, seals, now)?
            }
        };
        match (definition.signed_at, keys.tolerance()) {
            (None, _) | (Some(_), Tolerance::Off | Tolerance::OnRequest) => {}
            (Some(signed_at), tolerance) => tolerance.check(signed_at(&verified)?, now)?,
        }
        Ok(match self.challenge(&verified) {
            Some(challenge) => keys.answer(verified, &challenge),
            None => verified,
        })
    }

    /// What a verified handshake wants signed. Readers have no keys, so the answer travels with the proof that the
    /// delivery was verified.
    fn challenge(self, verified: &Verified<'_>) -> Option<Challenge> {
        match self {
            Self::Zoom => zoom::challenge(verified),
            _ => None,
        }
    }

    /// The domain that the certificate has to be for whose key signs, where deliveries name one.
    pub fn certificate_domain(self) -> Option<&'static str> {
        match self {
            Self::Paypal => Some(paypal::CERTIFICATE_DOMAIN),
            _ => None,
        }
    }

    /// Where the certificate stands whose key signed this delivery, where a provider names one and the place is one of
    /// the provider's own: safe to fetch over https, without following redirects. Its chain and its validity are for
    /// who fetches it to check; [`Keys::naming`] takes its key. `None` also for a place that is a stranger's.
    pub fn certificate_url<'a>(self, headers: &Headers<'a>) -> Option<&'a str> {
        match self {
            Self::Paypal => paypal::certificate_url(headers),
            _ => None,
        }
    }

    /// The events of a verified delivery: one, or several where the provider batches; never none without
    /// an error unless the provider documents an empty batch. Or a handshake and its answer.
    ///
    /// # Errors
    /// [`Unreadable`] if no event can be read; its text never quotes the body.
    pub fn read(self, verified: &Verified<'_>) -> Result<Reading, Unreadable> {
        match self {
            Self::Custom(custom) => custom.read(verified),
            built_in => (built_in.definition().read)(verified),
        }
    }

    /// An unsigned delivery as the provider would send it at `now_ms`, unix milliseconds: of the given
    /// type, else of the first of [`Provider::sample_types`]. Its ids follow from the serial.
    ///
    /// # Errors
    /// [`UnknownType`] if there is no sample of the type.
    pub fn sample(self, event_type: Option<&str>, serial: u128, now_ms: i64) -> Result<Sample, UnknownType> {
        let definition = self.definition();
        let template = definition
            .samples
            .iter()
            .find(|template| event_type.is_none_or(|wanted| wanted == template.event_type))
            .ok_or_else(|| UnknownType(self.sample_types().collect::<Vec<_>>().join(", ")))?;
        Ok((definition.sample)(template, serial, now_ms))
    }

    /// Signs a sample as the provider would.
    pub fn sign(self, keys: &Keys, sample: &Sample, sending: &Sending<'_>) -> Signed {
        if let Some(sign) = self.definition().sign {
            return sign(keys, sample, sending);
        }
        let own: Vec<_> = sample
            .headers
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let signatures = keys.sign_request(&Unsigned {
            id: &sample.id,
            now: sending.now,
            method: "POST",
            url: Some(sending.url),
            headers: &own,
            body: &sample.body,
        });
        Signed {
            url: sending.url.to_owned(),
            headers: sample.headers.iter().cloned().chain(signatures).collect(),
            body: sample.body.clone(),
        }
    }

    /// The types of which there are samples.
    pub fn sample_types(self) -> impl Iterator<Item = &'static str> {
        self.definition()
            .samples
            .iter()
            .map(|template| template.event_type)
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
