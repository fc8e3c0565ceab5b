//! A circuit breaker in front of a store. Only the first few requests of an outage pay its time-out; after
//! that everybody is told at once, and a background probe finds out when the store is back. No request is
//! ever the guinea pig.
//!
//! ```text
//! closed ── 3 failures in a row ──▶ open ── probe answers ──▶ closed
//! ```

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Failures in a row that open the circuit: one may be an accident of the network, three are a state.
const FAILURES_MAX: u32 = 3;

/// Pause between probes of an open circuit: recovery is noticed within a quarter of a second, and a dead
/// store sees four packets a second per replica.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// A minute of probes says once why it lasts.
const ROUNDS_PER_WARNING: u32 = 240;

/// The state of one circuit.
#[derive(Debug, Default)]
pub struct Breaker {
    open: AtomicBool,
    failures: AtomicU32,
}

impl Breaker {
    /// Whether calls should be refused now.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// Notes that the store answered.
    pub fn succeeded(&self) {
        self.failures.store(0, Ordering::Release);
    }

    /// Notes that the store could not answer. True for the one caller whose failure opened the circuit: it
    /// starts the probe.
    #[must_use]
    pub fn failed(&self) -> bool {
        let failures = self.failures.fetch_add(1, Ordering::AcqRel) + 1;
        failures >= FAILURES_MAX && !self.open.swap(true, Ordering::AcqRel)
    }

    /// Opens the circuit at once, e.g. when the very first probe fails. True as in [`Self::failed`].
    #[must_use]
    pub fn trip(&self) -> bool {
        !self.open.swap(true, Ordering::AcqRel)
    }

    /// Probes until the store answers, then closes the circuit. Says now and then why it does not.
    pub async fn recover<F, E>(self: Arc<Self>, stop: CancellationToken, probe: impl Fn() -> F)
    where
        F: Future<Output = Result<(), E>>,
        E: Display,
    {
        for round in 0_u32.. {
            if stop
                .run_until_cancelled(tokio::time::sleep(PROBE_INTERVAL))
                .await
                .is_none()
            {
                return;
            }
            match probe().await {
                Ok(()) => {
                    self.failures.store(0, Ordering::Release);
                    self.open.store(false, Ordering::Release);
                    return;
                }
                Err(error) if round % ROUNDS_PER_WARNING == 0 => tracing::warn!(%error, "still away"),
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_open_it_once() {
        let breaker = Breaker::default();
        assert!(!breaker.failed());
        assert!(!breaker.failed());
        breaker.succeeded();
        assert_eq!(
            [
                breaker.failed(),
                breaker.failed(),
                breaker.failed(),
                breaker.failed()
            ],
            [false, false, true, false]
        );
        assert!(breaker.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn it_closes_when_the_probe_answers_and_not_before() {
        let breaker = Arc::new(Breaker::default());
        assert!(breaker.trip());
        let probes = AtomicU32::new(0);
        let probe = || {
            let answered = probes.fetch_add(1, Ordering::Relaxed) == 2;
            async move { if answered { Ok(()) } else { Err("away") } }
        };
        Arc::clone(&breaker)
            .recover(CancellationToken::new(), probe)
            .await;
        assert!(!breaker.is_open());
        assert_eq!(probes.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn shutdown_ends_the_probing_of_a_dead_store() {
        let breaker = Arc::new(Breaker::default());
        assert!(breaker.trip());
        let stop = CancellationToken::new();
        stop.cancel();
        Arc::clone(&breaker)
            .recover(stop, || async { Err::<(), _>("away") })
            .await;
        assert!(breaker.is_open());
    }
}
