//! Keep it; a worker does the rest. A copy in flight elsewhere changes nothing: the ledger knows.

use std::sync::Arc;

use hookgate_ledger::{NewEvent, Queue};

use super::Handled;
use super::keeping::{keep, keep_aside, keep_finished};
use crate::identity::Aside;
use crate::metrics::{Metrics, NO_CONSUMER};
use crate::stores::GuardedLedger;

/// Appends events to the ledger.
pub struct Inbox {
    ledger: Arc<GuardedLedger>,
    has_consumer: bool,
    metrics: Arc<Metrics>,
}

impl Inbox {
    /// Without a consumer, events are kept as finished: they can be replayed when there is one.
    pub fn new(ledger: Arc<GuardedLedger>, has_consumer: bool, metrics: Arc<Metrics>) -> Self {
        Self {
            ledger,
            has_consumer,
            metrics,
        }
    }

    pub(super) async fn handle(&self, event: &NewEvent, aside: Option<Aside>) -> Handled {
        let (ledger, metrics) = (&self.ledger, &self.metrics);
        match aside {
            Some(aside) => keep_aside(Some(ledger), metrics, event, aside).await,
            None if self.has_consumer => keep(ledger, metrics, event, Queue::ForWorker).await,
            None => keep_finished(ledger, metrics, event, NO_CONSUMER, NO_CONSUMER).await,
        }
    }
}
