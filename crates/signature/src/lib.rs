//! Whose bytes are these?
//!
//! This crate answers that one question and knows neither a provider's name nor JSON: it cannot parse
//! what it has not verified, because it cannot parse at all. A [`Delivery`] goes in as it came off the
//! wire; [`Keys::verify`] gives back a [`Verified`] or a [`Refusal`]. Nothing else can make a `Verified`,
//! so a function that takes one cannot be handed unverified bytes.
//!
//! The clock is passed in. Which scheme belongs to which provider stands in `hookgate-webhook`.

mod algorithm;
mod challenge;
mod delivery;
mod key;
mod keys;
mod refusal;
mod scheme;
mod secret;

pub use algorithm::{Algorithm, Encoding, KeyForm};
pub use challenge::Challenge;
pub use delivery::{Delivery, Headers, Repeated, Unsigned};
pub use keys::{BadSecret, Keys, Tolerance, Verified};
pub use refusal::Refusal;
pub use scheme::{
    BadTemplate, BodyDigest, CANDIDATES_MAX, Described, Detached, Offered, Part, Scheme, Seal, SignedText,
    StandardWebhooks, Timestamp, TimestampedList, Token, Unit, Written, read_template,
};
