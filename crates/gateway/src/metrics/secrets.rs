//! What is counted of secrets: which of them is still used, and what became of reading them again. The slots
//! of a source follow its list: they are there at zero as soon as a secret is, and go with it.

use prometheus::{IntCounter, IntCounterVec};

use super::Maker;

/// What becomes of reading secrets again.
pub const RELOAD_OUTCOMES: [&str; 3] = ["changed", "unchanged", "failed"];

/// The counters of secrets.
pub struct SecretMetrics {
    used: IntCounterVec,
    reloads: IntCounterVec,
}

impl SecretMetrics {
    pub(super) fn new(make: &Maker) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            used: make.counters(
                "secret_used_total",
                "Deliveries by the secret that verified them; slots are counted from 0 in the order of the list",
                &["source", "slot"],
            )?,
            reloads: make.counters(
                "secret_reloads_total",
                "Lists of secrets that were read again, by outcome; a failed one leaves the list before it valid",
                &["outcome"],
            )?,
        };
        for outcome in RELOAD_OUTCOMES {
            metrics.reloads.with_label_values(&[outcome]);
        }
        Ok(metrics)
    }

    /// The counters of a list of so many secrets, in its order.
    pub fn slots(&self, source: &str, count: usize) -> Vec<IntCounter> {
        let slot = |slot: usize| self.used.with_label_values(&[source, &slot.to_string()]);
        (0..count).map(slot).collect()
    }

    /// Takes the counters of slots away that a list had and its successor has not.
    pub fn forget_slots(&self, source: &str, slots: std::ops::Range<usize>) {
        for slot in slots {
            // One that is not there need not be taken away.
            let _ = self.used.remove_label_values(&[source, &slot.to_string()]);
        }
    }

    /// A list was read again.
    pub fn reloaded(&self, outcome: &'static str) {
        self.reloads.with_label_values(&[outcome]).inc();
    }
}
