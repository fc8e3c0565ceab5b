//! One warning a minute about one outage, so that a busy gateway does not drown its log.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock;

const INTERVAL_SECONDS: u64 = 60;

/// Says once a minute that something is due.
#[derive(Debug, Default)]
pub(crate) struct OnceAMinute(AtomicU64);

impl OnceAMinute {
    /// True for one caller a minute.
    pub(crate) fn due(&self) -> bool {
        let now = clock::since_epoch().as_secs();
        let before = self.0.load(Ordering::Relaxed);
        now.saturating_sub(before) >= INTERVAL_SECONDS
            && self
                .0
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}
