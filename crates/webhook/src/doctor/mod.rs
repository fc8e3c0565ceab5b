//! Why does this signature fail, and what would have made it pass?
//!
//! A doctor for one saved delivery. It changes one thing at a time, from likely and harmless to exotic, and verifies
//! the changed copy with [`Provider::verify`]: what it names as the cause is proven, not guessed. Where nothing fits,
//! it says so. The answer is one sentence that holds no secret, no signature and no text of the body.
//!
//! The work is bounded by [`TRIALS_MAX`] verifications of a body that the source would have accepted. No clock and no
//! I/O: who asks says what time it is.

mod body;
mod cause;
mod charset;
mod header;
mod json;
mod phrase;
mod secret;
mod sentence;
mod spelling;
mod trial;
mod url;

pub use body::BodyChange;
pub use cause::Cause;
pub use charset::Charset;
pub use header::{Kept, Rename};
pub use json::{Escapes, Layout, Style};
pub use secret::SecretChange;
pub use spelling::Spelling;
pub use trial::TRIALS_MAX;
pub use url::UrlChange;

use hookgate_signature::{BadSecret, Delivery, Refusal, Tolerance, Verified};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::Provider;
use trial::{Examination, Fit, Trial};

/// A source as it is configured.
#[derive(Clone, Copy)]
pub struct Endpoint<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who sends to it.
    pub provider: Provider,
    /// Its secrets.
    pub secrets: &'a [SecretString],
    /// How far its signed times may lie from the clock.
    pub tolerance: Tolerance,
    /// Its largest body, bytes.
    pub body_bytes_max: usize,
}

/// A saved delivery, and where it should have been accepted.
pub struct Case<'a> {
    /// The source that it was sent to.
    pub endpoint: Endpoint<'a>,
    /// The delivery as it was saved.
    pub delivery: Delivery<'a>,
    /// Path and query of its request line, if they were saved.
    pub target: Option<&'a str>,
    /// The other sources that are configured.
    pub others: &'a [Endpoint<'a>],
}

/// What the doctor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Why the delivery is refused as it is; `None` if its signature is good.
    pub refusal: Option<Refusal>,
    /// What is behind it.
    pub cause: Cause,
    /// The time, if that would be against it even then.
    pub also: Option<Refusal>,
    /// Which secret fits, from 0, as it is or changed as the cause says.
    pub slot: Option<usize>,
    /// All of it in one sentence.
    pub sentence: String,
    /// Length of the body.
    pub body_bytes: usize,
    /// SHA-256 of the body in hexadecimal, so that two people can compare what they hold.
    pub body_sha256: String,
    /// How many changed copies were verified.
    pub tried: usize,
}

impl Diagnosis {
    /// Whether the delivery would be accepted.
    pub fn is_ok(&self) -> bool {
        matches!(self.cause, Cause::Passes { .. })
    }
}

/// Examines a delivery at `now`, unix seconds.
///
/// # Errors
/// [`BadSecret`] if the source's own secrets are of no use to its provider.
pub fn diagnose(case: &Case<'_>, now: i64) -> Result<Diagnosis, BadSecret> {
    let endpoint = &case.endpoint;
    let keys = endpoint.provider.keys(endpoint.secrets, endpoint.tolerance)?;
    let (is, limit) = (case.delivery.body.len(), endpoint.body_bytes_max);
    let examination = Examination::new(case, now);
    let (refusal, found, fit) = if is > limit {
        (None, Cause::BodyTooLarge { is, limit }, Fit::default())
    } else {
        match endpoint.provider.verify(&keys, case.delivery.clone(), now) {
            Ok(verified) => (None, read(case, &verified, now), Fit::of_slot(verified.slot())),
            Err(refusal) => {
                let (cause, fit) = examination.explain(refusal);
                (Some(refusal), cause, fit)
            }
        }
    };
    let mut diagnosis = Diagnosis {
        refusal,
        cause: found,
        also: fit.also,
        slot: fit.slot,
        sentence: String::new(),
        body_bytes: is,
        body_sha256: hex(&Sha256::digest(&case.delivery.body)),
        tried: examination.tried(),
    };
    diagnosis.sentence = sentence::of(&diagnosis, case);
    Ok(diagnosis)
}

/// A signature that is good: what the delivery says, and for how long it stays good.
fn read(case: &Case<'_>, verified: &Verified<'_>, now: i64) -> Cause {
    let reading = match case.endpoint.provider.read(verified) {
        Ok(reading) => reading,
        Err(unreadable) => return Cause::Unreadable(unreadable),
    };
    let limit = match case.endpoint.tolerance {
        Tolerance::Past(limit) | Tolerance::Both(limit) => i64::try_from(limit.as_secs()).ok(),
        Tolerance::Off | Tolerance::OnRequest => None,
    };
    let ends = verified.signed_at().zip(limit);
    Cause::Passes {
        handshake: reading.handshake.is_some(),
        events: reading.events,
        seconds_left: ends.map(|(signed_at, limit)| signed_at.saturating_add(limit).saturating_sub(now)),
    }
}

impl Examination<'_> {
    /// The first change that makes the delivery pass; if there is none, what can be said without one.
    fn explain(&self, refusal: Refusal) -> (Cause, Fit) {
        let timely = matches!(
            refusal,
            Refusal::StaleTimestamp { .. } | Refusal::FutureTimestamp { .. }
        );
        if timely {
            // The signature is good: it was checked first.
            let slot = self.fits(&Trial::of(self.case)).and_then(|fit| fit.slot);
            return (self.time(refusal), Fit { slot, also: None });
        }
        let examined = match refusal {
            Refusal::BadSignature => self.body().or_else(|| self.secret()).or_else(|| self.url()),
            _ => None,
        };
        examined
            .or_else(|| self.header())
            .or_else(|| self.rewritten_body(refusal))
            .or_else(|| self.elsewhere())
            .or_else(|| self.secret_and_body(refusal))
            .unwrap_or_else(|| (self.unexplained(refusal), Fit::default()))
    }

    /// Whether another unit of time would make the moment a likely one.
    fn time(&self, refusal: Refusal) -> Cause {
        /// Nobody saves a delivery for longer.
        const YEARS_10: u64 = 10 * 365 * 24 * 3600;
        let now = self.now;
        match refusal {
            Refusal::FutureTimestamp { ahead, tolerance } => {
                let signed_at = now.saturating_add_unsigned(ahead.as_secs());
                match signed_at.div_euclid(1000).abs_diff(now) < YEARS_10 {
                    true => Cause::Milliseconds,
                    false => Cause::TooNew { ahead, tolerance },
                }
            }
            Refusal::StaleTimestamp { age, tolerance } => {
                let signed_at = now.saturating_sub_unsigned(age.as_secs());
                match signed_at > 0 && signed_at.saturating_mul(1000).abs_diff(now) < YEARS_10 {
                    true => Cause::Seconds,
                    false => Cause::TooOld { age, tolerance },
                }
            }
            Refusal::MissingSignature(_) | Refusal::MalformedSignature { .. } | Refusal::BadSignature => {
                Cause::Unknown
            }
        }
    }
}

/// Bytes in lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
