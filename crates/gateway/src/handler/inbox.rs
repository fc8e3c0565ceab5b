//! Keep it. One append is both the dedupe and the enqueue, so there is no second step to lose. A copy in
//! flight elsewhere changes nothing: the ledger knows.

use std::sync::Arc;

use hookgate_ledger::{Appended, LedgerError, NewEvent, Queue};

use super::{Handled, note_other_body};
use crate::metrics::{Metrics, NO_CONSUMER};
use crate::stores::GuardedLedger;

/// Appends events to the ledger.
pub struct Inbox {
    ledger: Arc<GuardedLedger>,
    queue: Queue,
    metrics: Arc<Metrics>,
}

impl Inbox {
    /// Without a consumer, events are kept as finished: they can be replayed when there is one.
    pub fn new(ledger: Arc<GuardedLedger>, has_consumer: bool, metrics: Arc<Metrics>) -> Self {
        let queue = if has_consumer {
            Queue::ForWorker
        } else {
            Queue::Finished(NO_CONSUMER)
        };
        Self {
            ledger,
            queue,
            metrics,
        }
    }

    /// A duplicate may be answered 200 if somebody will see it through. A row that a forward left, from before
    /// this source was an inbox, waits for a provider that is about to be told that all is well: it becomes ours.
    pub(super) async fn handle(&self, event: &NewEvent) -> Handled {
        let appended = self.ledger.append(event.clone(), self.queue).await;
        match &appended {
            Ok(Appended::Accepted) => {
                if self.queue == Queue::Finished(NO_CONSUMER) {
                    let labels = [event.key.source.as_str(), NO_CONSUMER];
                    self.metrics.ignored.with_label_values(&labels).inc();
                }
            }
            Ok(Appended::Duplicate { state, same_body }) => {
                if !same_body {
                    note_other_body(&self.metrics, &event.key);
                }
                if Handled::needs_adoption(*state) {
                    return Handled::adopted(&self.ledger.adopt(&event.key).await);
                }
            }
            Err(LedgerError::Refused(cause)) => {
                tracing::error!(event.key = %event.key, %cause, "{} cannot be kept", event.key);
            }
            Err(_) => {}
        }
        Handled::appended(&appended)
    }
}
