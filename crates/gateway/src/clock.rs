//! The only place that reads the system clock. Everything below the gateway is told what time it is, so
//! that tests can say so too. Leases are no business of this clock: they use the store's own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookgate_ledger::UnixMicros;

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
