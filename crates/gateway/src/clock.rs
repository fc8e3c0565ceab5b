//! The only place that reads the system clock. Everything below the gateway is told what time it is, so
//! that tests can say so too. Leases are no business of this clock: they use the store's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookgate_ledger::UnixMicros;

/// The clock by which the age of signatures is judged: the system's, or one that is set by hand, so that a
/// recorded delivery can be sent at the moment at which it was signed.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Hand>);

/// Sets a clock from outside.
#[derive(Debug, Clone)]
pub struct Hand(Arc<AtomicI64>);

impl Clock {
    /// A clock that stands at this moment, unix seconds, until its hand is moved.
    pub fn settable(unix_seconds: i64) -> (Self, Hand) {
        let hand = Hand(Arc::new(AtomicI64::new(unix_seconds)));
        (Self(Some(hand.clone())), hand)
    }

    /// Unix seconds.
    pub fn unix_seconds(&self) -> i64 {
        match &self.0 {
            None => unix_seconds(),
            Some(Hand(moment)) => moment.load(Ordering::Acquire),
        }
    }
}

impl Hand {
    /// Moves it; whoever asks from now on is told this moment, unix seconds.
    pub fn set(&self, unix_seconds: i64) {
        self.0.store(unix_seconds, Ordering::Release);
    }
}

/// Time since 1970 UTC; zero if the machine's clock stands before it.
#[expect(clippy::disallowed_methods, reason = "this is the one file that may")]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Unix microseconds, as the ledger counts.
pub fn unix_micros() -> UnixMicros {
    UnixMicros(i64::try_from(since_epoch().as_micros()).unwrap_or(i64::MAX))
}

/// Unix seconds.
pub fn unix_seconds() -> i64 {
    i64::try_from(since_epoch().as_secs()).unwrap_or(i64::MAX)
}
