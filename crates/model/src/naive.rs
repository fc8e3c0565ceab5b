//! Receivers as they are often written. Each is the real protocol but for the one thing that it does the usual way,
//! and each must be refuted.

use std::sync::Arc;

use hookgate_claim::cell::{Attempt, Cell, Held, InFlight, Replaced, Value};
use hookgate_claim::{Claim, Ownership, Sight, Unavailable};
use hookgate_gateway::handler::{DecidedBy, Handled, Hold};

use crate::bounds::Mode;
use crate::check::{Check, Report, growing};
use crate::promises::Promise;
use crate::protocol::{Protocol, Real};

/// A protocol that is wrong, and in what.
pub struct Suspect {
    /// Short.
    pub name: &'static str,
    /// What it does otherwise.
    pub does: &'static str,
    /// Where that shows.
    pub mode: Mode,
    /// What it breaks.
    pub breaks: Promise,
    /// Its transitions.
    pub protocol: Arc<dyn Protocol>,
}

/// One TTL for both states: a claim in flight stands as long as a done mark does.
struct OneTtl;

impl Protocol for OneTtl {
    fn judge(&self, seen: &Held, ours: &InFlight) -> Attempt {
        match Real.judge(seen, ours) {
            Attempt::Replace { age, .. } => Attempt::InFlight { age },
            other => other,
        }
    }

    fn sight(&self, cell: &Cell) -> Sight {
        match cell.0.map(|held| held.value) {
            Some(Value::InFlight(_)) => Sight::InFlight,
            Some(Value::Done(_)) | None => Real.sight(cell),
        }
    }
}

/// A plain `DEL` after a failure, whoever owns the claim by now.
struct PlainDel;

impl Protocol for PlainDel {
    fn release_claim(&self, cell: &mut Cell, _: &InFlight) -> Ownership {
        *cell = Cell(None);
        Ownership::Kept
    }
}

/// 200 for a copy of an event that somebody is working on.
struct OkWhileInFlight;

impl Protocol for OkWhileInFlight {
    fn hold(&self, claimed: Result<Claim, Unavailable>) -> Result<Hold, Handled> {
        match claimed {
            Ok(Claim::InFlight { .. }) => Err(Handled::Duplicate(DecidedBy::Claim)),
            other => Real.hold(other),
        }
    }
}

/// The done mark is set inside the handler's `try`: when that fails, the handler has failed.
struct MarkInsideTry;

impl Protocol for MarkInsideTry {
    fn closed(&self, handled: Handled, heard: bool) -> Handled {
        match (handled, heard) {
            (Handled::Accepted, false) => Handled::Failed,
            _ => handled,
        }
    }

    fn finishes_later(&self) -> bool {
        false
    }
}

/// A takeover that trusts the age it saw, and does not look again while it replaces.
struct StaleAge;

impl Protocol for StaleAge {
    fn replace(&self, cell: &mut Cell, seen: &Value, claim: &InFlight, _: i64) -> Replaced {
        Real.replace(cell, seen, claim, i64::MAX)
    }
}

impl Suspect {
    /// A short way to break what it is said to break; nothing if it breaks nothing within the usual bounds.
    pub fn refuted(&self) -> Option<Report> {
        let report = |bounds| Check::new(bounds, Arc::clone(&self.protocol)).refute(self.breaks);
        let broke = |report: &Report| {
            report
                .broken
                .as_ref()
                .is_some_and(|(promise, _)| *promise == self.breaks)
        };
        growing(self.mode).map(report).find(broke)
    }
}

/// All of them.
pub fn receivers() -> Vec<Suspect> {
    let suspect = |name, does, breaks, protocol| Suspect {
        name,
        does,
        mode: Mode::ForwardAlone,
        breaks,
        protocol,
    };
    vec![
        suspect(
            "one TTL for both states",
            "a claim in flight is kept for as long as a done mark",
            Promise::StuckFrees,
            Arc::new(OneTtl),
        ),
        suspect(
            "plain DEL",
            "a claim is deleted after a failure without comparing whose it is",
            Promise::LateOwnerChangesNothing,
            Arc::new(PlainDel),
        ),
        suspect(
            "200 while in flight",
            "a copy is answered 200 as soon as somebody works on the event",
            Promise::NoEmptyPromise,
            Arc::new(OkWhileInFlight),
        ),
        suspect(
            "done mark inside the handler's try",
            "a mark that cannot be set counts as a failure of the handler",
            Promise::NoSecondEffectWithoutReason,
            Arc::new(MarkInsideTry),
        ),
        suspect(
            "takeover without recomputing the age",
            "a claim that was seen to have run out is replaced even if it was renewed meanwhile",
            Promise::TakenOverOnlyWhenOver,
            Arc::new(StaleAge),
        ),
    ]
}
