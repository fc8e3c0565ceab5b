//! Whose bytes are these?
//!
//! This crate answers that one question and knows neither a provider's name nor JSON: it cannot parse
//! what it has not verified, because it cannot parse at all. A [`Delivery`] goes in as it came off the
//! wire; [`Keys::verify`] gives back a [`Verified`] or a [`Refusal`]. Nothing else can make a `Verified`,
//! so a function that takes one cannot be handed unverified bytes.
//!
//! The clock is passed in. Which scheme belongs to which provider stands in `hookgate-webhook`.

mod delivery;
mod keys;
mod refusal;
mod scheme;
mod secret;

pub use delivery::{Delivery, Headers, Repeated};
pub use keys::{BadSecret, Keys, Tolerance, Verified};
pub use refusal::Refusal;
pub use scheme::{BodyDigest, CANDIDATES_MAX, Encoding, Scheme, StandardWebhooks, TimestampedList};
