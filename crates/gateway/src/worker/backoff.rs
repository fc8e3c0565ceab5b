//! When an event is tried again. Doubling gives a target time, spreading keeps the events of an outage from
//! coming back as one storm.

use std::time::Duration;

/// Longest delay between tries.
const DELAY_MAX: Duration = Duration::from_secs(3600);

/// Longest delay while a target is away: when it is back, its events should not wait much longer.
const AWAY_MAX: Duration = Duration::from_secs(60);

/// The delay after the n-th try, drawn from `[d/2, d]` with d = base, 2 base, 4 base …, capped. `draw` lies
/// in [0, 1).
pub fn backoff(base: Duration, attempt: u32, draw: f64) -> Duration {
    let doubled = 1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    let ceiling = base.saturating_mul(doubled).min(DELAY_MAX);
    ceiling.div_f64(2.0) + ceiling.mul_f64(draw / 2.0)
}

/// The delay after the n-th run that found the target away.
pub(super) fn away(base: Duration, attempt: u32, draw: f64) -> Duration {
    backoff(base, attempt, draw).min(AWAY_MAX.mul_f64(0.5 + draw / 2.0))
}

/// No earlier than the target asked for, and not all at that very moment.
pub(super) fn honouring(asked: Duration, draw: f64) -> Duration {
    asked + asked.mul_f64(draw / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_spread_over_the_upper_half() {
        let seconds = |attempt, draw| backoff(Duration::from_secs(1), attempt, draw).as_secs_f64();
        for (attempt, ceiling) in [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0)] {
            assert_eq!(seconds(attempt, 0.0), ceiling / 2.0);
            assert!(seconds(attempt, 0.999_999) < ceiling);
            assert!(seconds(attempt, 0.999_999) > ceiling * 0.99);
        }
    }

    #[test]
    fn no_attempt_number_overflows() {
        for attempt in [0, 1, 31, 32, 33, 64, u32::MAX] {
            assert!(backoff(Duration::from_secs(7), attempt, 0.5) <= DELAY_MAX);
            assert!(backoff(Duration::MAX, attempt, 0.999) <= DELAY_MAX);
            assert!(away(Duration::MAX, attempt, 0.999) <= AWAY_MAX);
        }
    }

    #[test]
    fn events_of_an_outage_spread_also_when_the_delay_is_capped() {
        let base = Duration::from_secs(1);
        assert_eq!(away(base, 40, 0.0), Duration::from_secs(30));
        assert!(away(base, 40, 0.999) > Duration::from_secs(59));
        assert_eq!(honouring(Duration::from_secs(100), 0.5), Duration::from_secs(105));
    }
}
