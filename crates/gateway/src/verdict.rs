//! What a failed delivery means for the event: try again, hold it, or give it up.
//!
//! | the target | the event | tries |
//! |---|---|---|
//! | answers 2xx | is done | |
//! | answers 400, 410, 413, 414, 415, 422, 431, 501 or 505: this request will never be right | dies at once | |
//! | answers 429, 502, 503 or 504, refuses the connection, cannot be resolved | is held, at most 72 h in all | costs none |
//! | answers anything else, such as 3xx, 401, 403, 404, 408, 409, 500 | is tried again | costs one |
//! | gives no answer in time, or breaks the connection: it may have acted | is tried again | costs one |
//!
//! `Retry-After` is honoured with every status that is not final. A redirect is never followed: the event would
//! be shown to an address that nobody configured.

use std::time::Duration;

use crate::target::TargetFailure;

/// Statuses that say that the request itself will never be right.
const FINAL: [u16; 9] = [400, 410, 413, 414, 415, 422, 431, 501, 505];

/// Statuses that say that somebody is away or busy, and nothing about the event.
const AWAY: [u16; 4] = [429, 502, 503, 504];

/// A target that asks for more patience than this is asked again after it.
const PATIENCE_MAX: Duration = Duration::from_secs(24 * 3600);

/// What to do with an event that was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Try again; costs a try.
    Again {
        /// What the target asked for.
        not_before: Option<Duration>,
    },
    /// Hold it, since it could not be tried.
    Hold {
        /// What the target asked for.
        not_before: Option<Duration>,
    },
    /// Give it back at once: we broke off ourselves.
    GiveBack,
    /// Give it up.
    Never,
}

/// Judges a failure by the table above.
pub fn verdict(failure: &TargetFailure) -> Verdict {
    match failure {
        TargetFailure::Status { status, .. } if FINAL.contains(status) => Verdict::Never,
        TargetFailure::Status { status, retry_after } => {
            let not_before = retry_after.map(|asked| asked.min(PATIENCE_MAX));
            match AWAY.contains(status) {
                true => Verdict::Hold { not_before },
                false => Verdict::Again { not_before },
            }
        }
        TargetFailure::Unreachable => Verdict::Hold { not_before: None },
        TargetFailure::Timeout(_) | TargetFailure::Broken => Verdict::Again { not_before: None },
        TargetFailure::Interrupted => Verdict::GiveBack,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, seconds: Option<u64>) -> Verdict {
        verdict(&TargetFailure::Status {
            status,
            retry_after: seconds.map(Duration::from_secs),
        })
    }

    #[test]
    fn every_status_has_its_place_in_the_table() {
        for status in FINAL {
            assert_eq!(of(status, Some(1)), Verdict::Never, "{status}");
        }
        for status in AWAY {
            assert_eq!(of(status, None), Verdict::Hold { not_before: None }, "{status}");
        }
        for status in [
            301, 302, 307, 401, 403, 404, 405, 408, 409, 425, 451, 500, 508, 599,
        ] {
            assert_eq!(of(status, None), Verdict::Again { not_before: None }, "{status}");
        }
    }

    #[test]
    fn what_the_target_asks_for_is_honoured_within_reason() {
        let asked = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(
            of(503, Some(120)),
            Verdict::Hold {
                not_before: asked(120)
            }
        );
        assert_eq!(of(500, Some(7)), Verdict::Again { not_before: asked(7) });
        assert_eq!(
            of(429, Some(u64::MAX)),
            Verdict::Hold {
                not_before: asked(86_400)
            }
        );
    }

    #[test]
    fn only_what_certainly_did_not_happen_costs_no_try() {
        let judged = |failure| verdict(&failure);
        assert_eq!(
            judged(TargetFailure::Unreachable),
            Verdict::Hold { not_before: None }
        );
        assert_eq!(judged(TargetFailure::Interrupted), Verdict::GiveBack);
        for failure in [TargetFailure::Broken, TargetFailure::Timeout(Duration::ZERO)] {
            assert_eq!(judged(failure), Verdict::Again { not_before: None });
        }
    }
}
