//! Writes an event into the ledger, and says what that means for it. One append is both the dedupe and the enqueue, so
//! there is no second step to lose.

use std::sync::Arc;

use hookgate_ledger::{Alike, Appended, LedgerError, NewEvent, Queue};

use super::{Handled, note_other_body};
use crate::identity::Aside;
use crate::metrics::Metrics;
use crate::stores::GuardedLedger;

/// Keeps an event that nobody is to run, and counts it under the label, if it is new.
pub(super) async fn keep_finished(
    ledger: &Arc<GuardedLedger>,
    metrics: &Metrics,
    event: &NewEvent,
    reason: &'static str,
    label: &'static str,
) -> Handled {
    let handled = keep(ledger, metrics, event, Queue::Finished(reason)).await;
    if handled == Handled::Accepted {
        let labels = [event.key.source.as_str(), label];
        metrics.ignored.with_label_values(&labels).inc();
    }
    handled
}

/// Keeps an event that is somebody else's. Where there is no ledger its claim alone remembers that it was seen.
pub(super) async fn keep_aside(
    ledger: Option<&Arc<GuardedLedger>>,
    metrics: &Metrics,
    event: &NewEvent,
    aside: Aside,
) -> Handled {
    let Some(ledger) = ledger else {
        let labels = [event.key.source.as_str(), aside.label()];
        metrics.ignored.with_label_values(&labels).inc();
        return Handled::Accepted;
    };
    keep_finished(ledger, metrics, event, aside.reason(), aside.label()).await
}

/// Keeps an event. A duplicate may be answered 200 if somebody will see it through. A row that a forward left, from
/// before its source was an inbox, waits for a provider that is about to be told that all is well: it becomes ours.
pub(super) async fn keep(
    ledger: &Arc<GuardedLedger>,
    metrics: &Metrics,
    event: &NewEvent,
    queue: Queue,
) -> Handled {
    let appended = ledger.append(event.clone(), queue).await;
    match &appended {
        Ok(Appended::Accepted) => {}
        Ok(Appended::Alike(alike) | Appended::Twin(alike)) => {
            note_alike(metrics, event, *alike, matches!(appended, Ok(Appended::Twin(_))));
        }
        Ok(Appended::Duplicate { state, same_body }) => {
            if !same_body {
                note_other_body(metrics, &event.key);
            }
            if Handled::needs_adoption(*state) {
                return Handled::adopted(&ledger.adopt(&event.key).await);
            }
        }
        Err(LedgerError::Refused(cause)) => {
            tracing::error!(event.key = %event.key, %cause, "{} cannot be kept", event.key);
        }
        Err(_) => {}
    }
    Handled::appended(&appended)
}

/// Content of the event came before under another id.
pub(super) fn note_alike(metrics: &Metrics, event: &NewEvent, alike: Alike, suppressed: bool) {
    let (key, source) = (&event.key, event.key.source.as_str());
    if alike.body {
        tracing::warn!(event.key = %key, suppressed, "the body of {key} came before under another id, which nobody signs");
        metrics.replays_suspected.with_label_values(&[source]).inc();
    }
    if alike.twin && !suppressed {
        metrics.twins_shadow.with_label_values(&[source]).inc();
    }
}
