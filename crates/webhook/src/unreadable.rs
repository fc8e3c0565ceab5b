//! Why a verified delivery could not be read. The words are the contract's.

/// A verified body from which no event can be read. Display is safe to send back: it never quotes the
/// body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Not the format that the provider documents.
    #[error("the body cannot be read: {0}")]
    MalformedBody(String),
    /// The provider guarantees an id, and there is none.
    #[error("{0}")]
    MissingEventId(&'static str),
    /// There is an id, and it is not acceptable.
    #[error("the event id is not acceptable: {0}")]
    BadEventId(&'static str),
}

impl Unreadable {
    /// The contract's word: the `error` of the answer and the `reason` of the counter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MalformedBody(_) => "malformed_body",
            Self::MissingEventId(_) => "missing_event_id",
            Self::BadEventId(_) => "bad_event_id",
        }
    }

    /// All reasons, so that counters can be present at zero from the start.
    pub const REASONS: [&'static str; 3] = ["malformed_body", "missing_event_id", "bad_event_id"];
}
