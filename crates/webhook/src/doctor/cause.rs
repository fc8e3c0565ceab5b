//! The causes that the doctor knows. Each is a fact about the delivery, in words that hold nothing of it but names.

use std::time::Duration;

use super::{BodyChange, Kept, Rename, SecretChange, Spelling, UrlChange};
use crate::{Event, Provider, Unreadable};

/// What is behind a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Nothing is wrong.
    Passes {
        /// Its events.
        events: Vec<Event>,
        /// Whether it is a handshake and no event.
        handshake: bool,
        /// For how long it stays good, where a time is signed and judged.
        seconds_left: Option<i64>,
    },
    /// The signature is good, and no event can be read.
    Unreadable(Unreadable),
    /// The source answers 413 before it looks at a signature.
    BodyTooLarge {
        /// Its length.
        is: usize,
        /// The source's limit.
        limit: usize,
    },
    /// The signature is good and too old.
    TooOld {
        /// Its age.
        age: Duration,
        /// The longest allowed.
        tolerance: Duration,
    },
    /// The signature is good and from the future.
    TooNew {
        /// How far ahead.
        ahead: Duration,
        /// The furthest allowed.
        tolerance: Duration,
    },
    /// The signature is good, and its time counts milliseconds where seconds are expected.
    Milliseconds,
    /// The signature is good, and its time counts seconds where milliseconds are expected.
    Seconds,
    /// It fits another body.
    Body(BodyChange),
    /// It fits another secret.
    Secret(SecretChange),
    /// It fits another secret and another body.
    SecretAndBody(SecretChange, BodyChange),
    /// It fits the other source of this name.
    OtherSource(String),
    /// It is signed with this source's secret, as another provider signs.
    OtherProvider(Provider),
    /// It fits another URL.
    Url(UrlChange),
    /// A header occurs more than once; either value alone may fit.
    Repeated {
        /// The header.
        header: &'static str,
        /// Which of its values fits, if one does.
        fits: Option<Kept>,
    },
    /// It fits once headers have their own names again.
    Renamed {
        /// The header whose name is expected.
        header: &'static str,
        /// How the names were changed.
        rename: Rename,
    },
    /// It fits once the signature is spelt as the provider spells it.
    Spelling {
        /// The header.
        header: &'static str,
        /// How it is spelt.
        spelling: Spelling,
    },
    /// Made with another hash function than the provider's.
    Hash {
        /// The function.
        hash: &'static str,
        /// The header where the right one is expected.
        header: &'static str,
        /// Whether it fits the secret.
        fits: bool,
    },
    /// The header holds signatures under other keys alone.
    Version {
        /// The header.
        header: &'static str,
        /// The key that is expected.
        wanted: &'static str,
        /// The key that is there.
        found: String,
    },
    /// The signature is shorter or longer than one can be.
    Length {
        /// The header.
        header: &'static str,
        /// Characters that are there.
        is: usize,
        /// Characters that are expected.
        wanted: usize,
    },
    /// The header cannot be read otherwise.
    Malformed {
        /// The header.
        header: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The header is there and empty.
    Empty(&'static str),
    /// The header is not there.
    Missing(&'static str),
    /// The header is not there, and those of another provider are.
    LooksLike {
        /// The header.
        header: &'static str,
        /// The provider.
        provider: Provider,
    },
    /// The request said another length than the body has.
    ContentLength {
        /// What it said.
        said: usize,
        /// What it is.
        is: usize,
    },
    /// A header that the provider sends is not there, and may be part of what is signed.
    Dropped(&'static str),
    /// The key is named by the request, as a certificate that only the gateway fetches.
    NamedKey,
    /// Nothing fits.
    Unknown,
}

impl Cause {
    /// A word for machines.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passes { .. } => "passes",
            Self::Unreadable(_) => "unreadable",
            Self::BodyTooLarge { .. } => "body_too_large",
            Self::TooOld { .. } => "too_old",
            Self::TooNew { .. } => "too_new",
            Self::Milliseconds => "time_in_milliseconds",
            Self::Seconds => "time_in_seconds",
            Self::Body(_) => "other_body",
            Self::Secret(_) => "other_secret",
            Self::SecretAndBody(..) => "other_secret_and_body",
            Self::OtherSource(_) => "other_source",
            Self::OtherProvider(_) => "other_provider",
            Self::Url(_) => "other_url",
            Self::Repeated { .. } => "header_repeated",
            Self::Renamed { .. } => "header_renamed",
            Self::Spelling { .. } => "signature_spelling",
            Self::Hash { .. } => "other_hash",
            Self::Version { .. } => "other_version",
            Self::Length { .. } => "signature_length",
            Self::Malformed { .. } => "header_malformed",
            Self::Empty(_) => "header_empty",
            Self::Missing(_) => "header_missing",
            Self::LooksLike { .. } => "looks_like_other_provider",
            Self::ContentLength { .. } => "content_length",
            Self::Dropped(_) => "header_dropped",
            Self::NamedKey => "named_key",
            Self::Unknown => "unknown",
        }
    }
}
