//! Calls of the target: each is a run that the ledger allowed, and each one after the first has a reason that can be
//! seen: what the target answered before, or what was done to the process that called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::{Breach, Stories};
use crate::evidence::{Call, Evidence, Harm, Key};
use crate::settings::HANDLER_TIMEOUT;

/// Why a target was called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reason {
    /// It had answered something else than 2xx.
    Refused,
    /// The process that had called was killed before it could write down how that ended.
    Killed,
    /// It was stopped for longer than its lease.
    Stopped,
    /// It was told to end, and broke off.
    BrokenOff,
    /// The ledger could not be told how it ended.
    LedgerAway,
    /// There was no answer in time.
    TimedOut,
    /// The machine was so busy that a lease of a second was over before the note was taken. Only where that is
    /// to be expected.
    Busy,
}

impl Reason {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Self; 7] = [
        Self::Refused,
        Self::Killed,
        Self::Stopped,
        Self::BrokenOff,
        Self::LedgerAway,
        Self::TimedOut,
        Self::Busy,
    ];

    /// In one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Killed => "killed",
            Self::Stopped => "stopped",
            Self::BrokenOff => "broken-off",
            Self::LedgerAway => "ledger-away",
            Self::TimedOut => "timed-out",
            Self::Busy => "busy",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// All calls after a first one.
#[derive(Clone, Debug, Default)]
pub(super) struct SecondCalls {
    pub(super) by_reason: BTreeMap<Reason, usize>,
    pub(super) unexplained: Vec<Breach>,
    /// Of them, those that the target took although it had taken the event before.
    pub(super) taken_again: usize,
}

/// How long after a ledger came back a process may still believe that it is away: until its next probe, and the
/// end of a call that hangs.
const BELIEVED_AWAY: Duration = Duration::from_millis(1_500);

pub(super) fn second_calls(evidence: &Evidence, stories: &Stories<'_>) -> SecondCalls {
    let mut second = SecondCalls::default();
    for (key, calls) in stories {
        for (at, call) in calls.iter().enumerate().skip(1) {
            match reason(evidence, calls[at - 1], call) {
                Some(reason) => *second.by_reason.entry(reason).or_default() += 1,
                None => second.unexplained.push(unexplained(evidence, key, calls)),
            }
            let taken_before = calls[..at].iter().any(|call| call.took_effect());
            second.taken_again += usize::from(taken_before && call.took_effect());
        }
    }
    second
}

/// Why the first of two calls was not the last.
fn reason(evidence: &Evidence, first: &Call, then: &Call) -> Option<Reason> {
    let run = evidence.attempts.get(&(first.key.clone(), first.attempt));
    if run.is_some_and(|run| run.outcome == "done") {
        return None;
    }
    if first.answered.is_some() && !first.took_effect() {
        return Some(Reason::Refused);
    }
    let suffered = |harm, grace: Duration| {
        let from = first.began.saturating_sub(grace);
        evidence.suffered(&first.caller, harm, from, then.began)
    };
    let told = run.is_some_and(|run| run.error.contains("no answer within"));
    let waited = first.ended.map(|ended| ended.saturating_sub(first.began));
    let timed_out = told || waited.is_some_and(|waited| waited >= HANDLER_TIMEOUT);
    if suffered(Harm::Killed, Duration::ZERO) {
        Some(Reason::Killed)
    } else if suffered(Harm::Stopped, Duration::ZERO) {
        Some(Reason::Stopped)
    } else if suffered(Harm::Terminated, Duration::ZERO) {
        Some(Reason::BrokenOff)
    } else if timed_out {
        Some(Reason::TimedOut)
    } else if suffered(Harm::LedgerAway, BELIEVED_AWAY) {
        Some(Reason::LedgerAway)
    } else if evidence.was_too_busy(first) {
        Some(Reason::Busy)
    } else {
        None
    }
}

fn unexplained(evidence: &Evidence, key: &Key, calls: &[&Call]) -> Breach {
    let runs = evidence
        .attempts
        .range((key.clone(), 0)..=(key.clone(), u32::MAX));
    let runs: Vec<_> = runs
        .map(|((_, number), run)| format!("{number} {run:?}"))
        .collect();
    Breach::new(
        "every second call has a reason",
        format!("{key}: calls {calls:#?}, runs {runs:#?}"),
    )
}

pub(super) fn breaches(evidence: &Evidence, stories: &Stories<'_>) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (key, calls) in stories {
        let numbers: BTreeSet<_> = calls.iter().map(|call| call.attempt).collect();
        if numbers.len() < calls.len() {
            breaches.push(Breach::new("one run is one call", format!("{key}: {calls:#?}")));
        }
        let allowed = evidence.rows.get(key).map_or(0, |row| row.attempts);
        if numbers.last().is_some_and(|last| *last > allowed) {
            let what = format!("{key}: {allowed} runs, and calls {numbers:?}");
            breaches.push(Breach::new("every call is a run of the ledger", what));
        }
        breaches.extend(overlapping(evidence, calls));
    }
    breaches
}

/// Two calls of one event at one time, unless the first one's process was stopped, could not renew its lease, or had
/// given up waiting.
fn overlapping(evidence: &Evidence, calls: &[&Call]) -> Vec<Breach> {
    let pairs = calls.iter().enumerate().flat_map(|(at, one)| {
        let later = &calls[at + 1..];
        later.iter().map(move |other| (*one, *other))
    });
    let excused = |one: &Call, other: &Call| {
        matches!(
            reason(evidence, one, other),
            Some(Reason::Stopped | Reason::TimedOut | Reason::LedgerAway | Reason::Busy)
        )
    };
    pairs
        .filter(|(one, other)| one.overlaps(other) && !excused(one, other))
        .map(|(one, other)| {
            Breach::new(
                "calls of one event do not overlap",
                format!("{one:?} and {other:?}"),
            )
        })
        .collect()
}
