//! Waiting for what must come, without knowing when: never for a time, always for the thing itself.

use std::time::Duration;

use hookgate_harness::PATIENCE;
use tokio::time::{Instant, sleep};

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// Looks again and again until there is something to see.
///
/// # Panics
/// If there is nothing within [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(INTERVAL).await;
    }
}

/// As [`eventually`], for what is only true or false.
///
/// # Panics
/// As [`eventually`].
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, async || holds().await.then_some(())).await;
}
