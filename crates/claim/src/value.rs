//! The value of a claim, and how it judges itself.
//!
//! A value carries its own life and lease, so a reader's settings never decide about another's claim:
//! `i:<epoch>:<ttl_ms>:<lease_ms>:<token>` while in flight, `d:<epoch>` when done. Its age is its own
//! `ttl_ms` minus what the store says is left, by the store's clock alone. Anything else under a key is
//! unreadable: it parses to nothing, and is never taken for done.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::claims::{Epoch, Terms};

/// What stands under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Somebody's claim.
    InFlight(InFlight),
    /// A done mark of this epoch.
    Done(Epoch),
}

/// A claim that is being worked on. Its token is nobody's business but its holder's: nothing shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InFlight {
    epoch: Epoch,
    ttl_ms: u64,
    lease_ms: u64,
    /// 128 random bits: no two claims of one key share a value.
    token: u128,
}

/// What a value means now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Finished under the present epoch.
    Done,
    /// Somebody works on it.
    InFlight {
        /// Since when.
        age: Duration,
    },
    /// Older than its lease, and still so while at most `left_ms_max` of its life is left.
    Expired {
        /// Since when somebody had it.
        age: Duration,
        /// Most life that is left at such an age.
        left_ms_max: i64,
    },
    /// A done mark of another epoch.
    Void,
}

impl InFlight {
    /// A claim under a fresh token.
    pub(crate) fn new(epoch: &Epoch, terms: Terms) -> Self {
        Self::with_token(epoch, terms, rand::random())
    }

    /// A claim under this token, for whoever sees to it that no two claims of one key share theirs.
    pub fn with_token(epoch: &Epoch, terms: Terms, token: u128) -> Self {
        Self {
            epoch: *epoch,
            ttl_ms: terms.ttl_seconds().saturating_mul(1_000),
            lease_ms: u64::try_from(terms.lease.as_millis()).unwrap_or(u64::MAX),
            token,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn ttl_ms(&self) -> u64 {
        self.ttl_ms
    }

    /// Judges by the life that is left in milliseconds; negative: the store has no expiry for it, which no
    /// claim of ours has, so it counts as expired.
    fn stands(&self, left_ms: i64) -> Standing {
        let left = u64::try_from(left_ms).unwrap_or(0);
        let age_ms = self.ttl_ms.saturating_sub(left);
        let age = Duration::from_millis(age_ms);
        match age_ms < self.lease_ms && left_ms >= 0 {
            true => Standing::InFlight { age },
            false => Standing::Expired {
                age,
                left_ms_max: difference(self.ttl_ms, self.lease_ms),
            },
        }
    }
}

fn difference(a: u64, b: u64) -> i64 {
    let exact = i128::from(a) - i128::from(b);
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

impl Value {
    /// Reads exactly what [`Self::written`] writes. `None` for anything else, also for a later version's forms.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let value = match text.split_once(':')? {
            ("d", epoch) => Self::Done(parse_epoch(epoch)?),
            ("i", rest) => Self::InFlight(parse_in_flight(rest)?),
            _ => return None,
        };
        // Rust's number parsers also take `+1` and `01`; two spellings of one value must not both be ours.
        (value.written() == text).then_some(value)
    }

    /// What the value means under the present `epoch`. In-flight claims of any epoch go by their lease.
    pub fn stands(&self, epoch: &Epoch, left_ms: i64) -> Standing {
        match self {
            Self::InFlight(claim) => claim.stands(left_ms),
            Self::Done(of) if of == epoch => Standing::Done,
            Self::Done(_) => Standing::Void,
        }
    }

    /// As stored. Not `Display`: it holds the token.
    pub(crate) fn written(&self) -> String {
        match self {
            Self::InFlight(InFlight {
                epoch,
                ttl_ms,
                lease_ms,
                token,
            }) => {
                format!("i:{epoch}:{ttl_ms}:{lease_ms}:{token:032x}")
            }
            Self::Done(epoch) => format!("d:{epoch}"),
        }
    }
}

fn parse_in_flight(text: &str) -> Option<InFlight> {
    let mut parts = text.split(':');
    let claim = InFlight {
        epoch: parse_epoch(parts.next()?)?,
        ttl_ms: number(parts.next()?)?,
        lease_ms: number(parts.next()?)?,
        token: u128::from_str_radix(parts.next()?, 16).ok()?,
    };
    parts.next().is_none().then_some(claim)
}

fn parse_epoch(text: &str) -> Option<Epoch> {
    let (configured, timeline) = text.split_once('-')?;
    Some(Epoch {
        configured: number(configured)?,
        timeline: number(timeline)?,
    })
}

fn number<N: FromStr>(text: &str) -> Option<N> {
    text.parse().ok()
}

impl fmt::Debug for InFlight {
    /// Leaves the token out: who reads it in a log could close the claim.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("epoch", &self.epoch)
            .field("ttl_ms", &self.ttl_ms)
            .field("lease_ms", &self.lease_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WEEK_MS: u64 = 604_800_000;

    fn claim(ttl_ms: u64, lease_ms: u64) -> Value {
        Value::InFlight(InFlight {
            epoch: Epoch::default(),
            ttl_ms,
            lease_ms,
            token: 7,
        })
    }

    fn check(value: Value, left_ms: i64, expected: Standing) {
        assert_eq!(
            value.stands(&Epoch::default(), left_ms),
            expected,
            "{value:?} with {left_ms} ms left"
        );
    }

    #[test]
    fn a_value_is_written_as_the_contract_says() {
        let epoch = Epoch {
            configured: 3,
            timeline: 12,
        };
        let claim = InFlight {
            epoch,
            ttl_ms: WEEK_MS,
            lease_ms: 15_000,
            token: 0xabc,
        };
        assert_eq!(
            Value::InFlight(claim).written(),
            "i:3-12:604800000:15000:00000000000000000000000000000abc"
        );
        assert_eq!(Value::Done(epoch).written(), "d:3-12");
    }

    #[test]
    fn a_claim_expires_when_its_own_lease_is_over() {
        let millis = Duration::from_millis;
        let left_ms_max = 604_785_000;
        check(
            claim(WEEK_MS, 15_000),
            604_800_000,
            Standing::InFlight { age: millis(0) },
        );
        check(
            claim(WEEK_MS, 15_000),
            604_785_001,
            Standing::InFlight { age: millis(14_999) },
        );
        check(
            claim(WEEK_MS, 15_000),
            604_785_000,
            Standing::Expired {
                age: millis(15_000),
                left_ms_max,
            },
        );
        check(
            claim(WEEK_MS, 15_000),
            0,
            Standing::Expired {
                age: millis(WEEK_MS),
                left_ms_max,
            },
        );
    }

    #[test]
    fn more_life_than_the_value_says_is_age_zero() {
        check(
            claim(1_000, 500),
            9_999_999,
            Standing::InFlight { age: Duration::ZERO },
        );
    }

    #[test]
    fn a_claim_without_expiry_counts_as_expired() {
        let expired = Standing::Expired {
            age: Duration::from_secs(1),
            left_ms_max: 500,
        };
        check(claim(1_000, 500), -1, expired);
    }

    #[test]
    fn a_done_mark_holds_only_under_its_own_epoch() {
        check(Value::Done(Epoch::default()), -1, Standing::Done);
        check(
            Value::Done(Epoch {
                configured: 0,
                timeline: 1,
            }),
            1_000,
            Standing::Void,
        );
        check(
            Value::Done(Epoch {
                configured: 1,
                timeline: 0,
            }),
            1_000,
            Standing::Void,
        );
    }

    #[test]
    fn only_the_exact_form_is_read() {
        let claim = claim(1_000, 500).written();
        let spaced = format!(" {claim}");
        let longer = format!("{claim}:1");
        let texts = [
            "", "d", "d:", "d:1", "d:1-", "d:01-0", "d:+1-0", "d:1-0\n", "D:1-0", "done", "i:", "1",
        ];
        for text in texts
            .into_iter()
            .chain([&spaced[..], &longer, &claim.replace("500", "-500")])
        {
            assert_eq!(Value::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let epoch = (any::<u32>(), any::<u32>()).prop_map(|(c, t)| Epoch {
            configured: c,
            timeline: t,
        });
        (epoch, any::<u64>(), 1..u64::MAX, any::<u128>(), any::<bool>()).prop_map(
            |(epoch, ttl_ms, lease_ms, token, done)| match done {
                true => Value::Done(epoch),
                false => Value::InFlight(InFlight {
                    epoch,
                    ttl_ms,
                    lease_ms,
                    token,
                }),
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            prop_assert_eq!(Value::parse(value.written().as_bytes()), Some(value));
        }

        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Value::parse(&bytes);
        }

        #[test]
        fn near_misses_neither_panic_nor_change(text in "[di]:[0-9+-]{0,12}:?[0-9]{0,22}:?[0-9]{0,22}:?[0-9a-fA-F]{0,34}") {
            if let Some(value) = Value::parse(text.as_bytes()) {
                prop_assert_eq!(value.written(), text);
            }
        }

        #[test]
        fn judging_never_overflows(value in any_value(), left in any::<i64>()) {
            if let Standing::Expired { left_ms_max, .. } = value.stands(&Epoch::default(), left) {
                prop_assert!(left < 0 || left <= left_ms_max.max(0));
            }
        }
    }
}
