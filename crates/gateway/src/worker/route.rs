//! Where the events of one source go, and under which rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_webhook::SourceName;

use super::gate::{Gate, Pass};
use crate::sink::Sink;

/// One source, its consumer, and its rules.
pub struct Route {
    /// Which source.
    pub source: SourceName,
    /// Who gets its events.
    pub sink: Sink,
    /// The gate before that consumer; other sources may share it.
    pub gate: Arc<Gate>,
    /// Tries before an event goes to the dead letters.
    pub attempts_max: u32,
    /// First delay between tries.
    pub retry_base: Duration,
    /// Its events on their way at the same time.
    pub concurrency: usize,
    /// How many are now.
    pub in_hand: AtomicUsize,
}

impl Route {
    /// How many more of its events may go.
    pub(super) fn room(&self) -> usize {
        self.concurrency
            .saturating_sub(self.in_hand.load(Ordering::Relaxed))
    }

    /// Takes a place, at the source's bound and at its gate.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        self.in_hand.fetch_add(1, Ordering::Relaxed);
        Place {
            route: Arc::clone(self),
            _pass: self.gate.enter(),
        }
    }
}

/// A place on a route; given back when dropped.
pub(super) struct Place {
    pub(super) route: Arc<Route>,
    _pass: Pass,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.route.in_hand.fetch_sub(1, Ordering::Relaxed);
    }
}
