//! What happens to a claimed event, chosen per source: kept for a worker, or posted to the user's service
//! before the answer.

mod forward;
mod inbox;
mod keeping;
mod meaning;
mod unfinished;
mod waiting;

use hookgate_claim::Lease;
use hookgate_ledger::NewEvent;
use hookgate_webhook::EventKey;

pub use forward::Forward;
pub use inbox::Inbox;
pub use meaning::{Closing, Right, Seen};
pub use unfinished::Unfinished;
pub use waiting::{Waited, Waiters, Witness};

use crate::identity::Aside;
use crate::metrics::{Metrics, OTHER_BODY};

/// How a source's events are handled.
pub enum Handler {
    /// Keep it; a worker does the rest.
    Inbox(Inbox),
    /// The user's service takes it now.
    Forward(Box<Forward>),
}

/// What we hold of the event's claim while it is handled.
#[derive(Debug)]
pub enum Hold {
    /// Our claim.
    Ours(Lease),
    /// Somebody works on it.
    Others,
    /// The claim store could not answer; a claim of ours may stand.
    Unknown(Option<Box<Lease>>),
    /// No claim store is configured.
    Unclaimed,
}

/// How handling ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Handled {
    /// Took effect, or is durably kept.
    Accepted,
    /// The target took it, but the ledger could not write that down yet: answered 200, not marked done.
    AcceptedUnrecorded,
    /// It was finished or durably kept before.
    Duplicate(DecidedBy),
    /// Somebody still works on it.
    InFlight,
    /// The target did not take it; the provider's next try runs at once.
    Failed,
    /// Nothing can be promised now.
    Unavailable,
}

/// The layer that knew a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// A done mark.
    Claim,
    /// The ledger's row.
    Ledger,
    /// The row of another event with the same content.
    Content,
}

impl Handler {
    /// Handles one event, or sets it aside. The hold may change hands while a copy waits.
    pub async fn handle(&self, event: &NewEvent, aside: Option<Aside>, hold: &mut Hold) -> Handled {
        match (self, aside) {
            (Self::Inbox(inbox), aside) => inbox.handle(event, aside).await,
            (Self::Forward(forward), None) => forward.handle(event, hold).await,
            (Self::Forward(forward), Some(aside)) => forward.set_aside(event, aside).await,
        }
    }
}

/// An id came again with another body. The first one is kept; the operator should know.
fn note_other_body(metrics: &Metrics, key: &EventKey) {
    tracing::warn!(event.key = %key, "{key} came again with another body; the first one is kept");
    metrics
        .ignored
        .with_label_values(&[key.source.as_str(), OTHER_BODY])
        .inc();
}
