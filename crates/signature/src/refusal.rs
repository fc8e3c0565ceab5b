//! Why a delivery was refused. The words are the contract's: they appear in answers, metrics and logs.

use std::time::Duration;

/// The reason a signature was not accepted. Display is a short neutral sentence that is safe to send
/// back: it never contains the signature, the secret or the expected digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A required signature, id, timestamp or token is absent or empty; names its header, or its field.
    #[error("{0} is missing or empty; send what the provider signs unchanged, headers and body")]
    MissingSignature(&'static str),
    /// Present, but no usable candidate can be read from it.
    #[error("{header} cannot be read: {problem}")]
    MalformedSignature {
        /// The header at fault, or the field of the body.
        header: &'static str,
        /// What is wrong with it and what form is accepted.
        problem: &'static str,
    },
    /// Well-formed candidates, none of which matches any configured secret.
    #[error(
        "no signature matches a configured secret; check the endpoint's secret and that no proxy rewrites the body"
    )]
    BadSignature,
    /// The signature matches, its timestamp is older than the tolerance.
    #[error("signed {} s ago, {} s are allowed; check this machine's clock or resend", age.as_secs(), tolerance.as_secs())]
    StaleTimestamp {
        /// Age of the signature.
        age: Duration,
        /// The longest age allowed.
        tolerance: Duration,
    },
    /// The signature matches, its timestamp lies further ahead than the tolerance.
    #[error("signed {} s in the future, {} s are allowed; check this machine's clock", ahead.as_secs(), tolerance.as_secs())]
    FutureTimestamp {
        /// How far ahead of the receiver's clock.
        ahead: Duration,
        /// The furthest allowed.
        tolerance: Duration,
    },
}

impl Refusal {
    /// The contract's word for this refusal: the `error` of the answer and the `reason` of the counter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingSignature(_) => "missing_signature",
            Self::MalformedSignature { .. } => "malformed_signature",
            Self::BadSignature => "bad_signature",
            Self::StaleTimestamp { .. } => "stale_timestamp",
            Self::FutureTimestamp { .. } => "future_timestamp",
        }
    }

    /// All reasons, so that counters can be present at zero from the start.
    pub const REASONS: [&'static str; 5] = [
        "missing_signature",
        "malformed_signature",
        "bad_signature",
        "stale_timestamp",
        "future_timestamp",
    ];
}
