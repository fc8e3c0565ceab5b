//! Chance, drawn from a run's seed and nothing else: the same seed gives a run the same events, the same victims and
//! the same moments. What the machine makes of them is its own.

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A stream of draws.
pub(crate) struct Draw(StdRng);

impl Draw {
    /// Each `purpose` has a stream of its own, so that one more draw here moves nothing there.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let salted = purpose.bytes().fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(StdRng::seed_from_u64(salted))
    }

    /// A place among so many.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count)
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&mut self, chance: u32) -> bool {
        self.0.random_range(0..100) < chance
    }

    /// A time in this range of milliseconds.
    pub(crate) fn ms(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.0.random_range(range))
    }

    /// A time in this range of milliseconds, short ones as likely as long ones.
    pub(crate) fn ms_of_any_size(&mut self, range: Range<f64>) -> Duration {
        let exponent = self.0.random_range(range.start.ln()..range.end.ln());
        Duration::from_secs_f64(exponent.exp() / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_another_purpose_something_else() {
        let of = |seed, purpose| {
            let mut draw = Draw::new(seed, purpose);
            [(); 8].map(|()| draw.below(1_000_000))
        };
        assert_eq!(of(7, "events"), of(7, "events"));
        assert_ne!(of(7, "events"), of(8, "events"));
        assert_ne!(of(7, "events"), of(7, "victims"));
    }
}
