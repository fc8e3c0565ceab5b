//! Counters of the replicas that lived to the end: they agree with what the provider heard from them, and say that
//! the fault was there.

use super::Breach;
use crate::evidence::{Counters, Evidence, Reply, Send, Source};
use crate::fault::Fault;

const AGREE: &str = "counters and answers agree";

const DECIDERS: [&str; 3] = ["claim", "ledger", "content"];

const OUTCOMES: [&str; 6] = [
    "accepted",
    "duplicate",
    "in_flight",
    "failed",
    "unavailable",
    "refused",
];

pub(super) fn breaches(evidence: &Evidence) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for counters in &evidence.counters {
        for source in [Source::Inbox, Source::Forward] {
            breaches.extend(disagreement(evidence, counters, source));
        }
    }
    breaches.extend(presence(evidence));
    breaches
}

/// Each outcome was counted at least as often as it was heard, and all of them together at most as often as the
/// process was asked: an answer that got lost was counted, too.
fn disagreement(evidence: &Evidence, counters: &Counters, source: Source) -> Vec<Breach> {
    let (process, name) = (&counters.process, source.name());
    let all = evidence.sends.iter().chain(&evidence.echoes);
    let sends: Vec<_> = all
        .filter(|send| send.process == *process && send.key.source == source)
        .collect();
    let heard = |outcome| {
        sends
            .iter()
            .filter(|send| self::outcome(send) == Some(outcome))
            .count() as f64
    };
    let counted = |outcome| counters.of(&series("deliveries_total", "outcome", outcome, source));
    let unheard = sends.iter().filter(|send| send.reply == Reply::Nothing).count() as f64;
    let mut breaches = Vec::new();
    for outcome in OUTCOMES {
        let (counted, heard) = (counted(outcome), heard(outcome));
        if counted < heard {
            let what = format!("{process} {name} {outcome}: {counted} counted, {heard} heard");
            breaches.push(Breach::new(AGREE, what));
        }
    }
    let (all_counted, all_heard) = (
        OUTCOMES.map(counted).iter().sum::<f64>(),
        OUTCOMES.map(heard).iter().sum::<f64>(),
    );
    if all_counted > all_heard + unheard {
        let what = format!("{process} {name}: {all_counted} counted, {all_heard} heard, {unheard} unheard");
        breaches.push(Breach::new(AGREE, what));
    }
    let skipped =
        DECIDERS.map(|by| counters.of(&series("duplicates_skipped_total", "decided_by", by, source)));
    let (skipped, duplicates) = (skipped.iter().sum::<f64>(), counted("duplicate"));
    if skipped != duplicates {
        let what = format!("{process} {name}: {duplicates} duplicates, {skipped} skipped");
        breaches.push(Breach::new(AGREE, what));
    }
    breaches
}

/// The name of a series with its labels, which are in alphabetical order.
fn series(metric: &str, label: &str, value: &str, source: Source) -> String {
    format!(
        "hookgate_{metric}{{{label}=\"{value}\",source=\"{}\"}}",
        source.name()
    )
}

/// The contract's word for an answer.
fn outcome(send: &Send) -> Option<&'static str> {
    match send.reply {
        Reply::Answer {
            status: 200,
            duplicate: Some(true),
            ..
        } => Some("duplicate"),
        Reply::Answer { status: 200, .. } => Some("accepted"),
        Reply::Answer { status: 409, .. } => Some("in_flight"),
        Reply::Answer { status: 500, .. } => Some("failed"),
        Reply::Answer { status: 503, .. } => Some("unavailable"),
        Reply::Answer { .. } => Some("refused"),
        Reply::Refused | Reply::Nothing => None,
    }
}

/// A fault that leaves no trace was none.
fn presence(evidence: &Evidence) -> Vec<Breach> {
    let [fault] = evidence.faults[..] else {
        return Vec::new();
    };
    let answered = |status: u16| {
        let mut sends = evidence.sends.iter();
        sends.any(|send| send.reply.status() == Some(status))
    };
    let missing = if fault.must_fall_back() && fallbacks(evidence) == 0.0 {
        "no replica decided without Redis"
    } else if must_be_unavailable(fault) && !answered(503) {
        "no event was answered 503"
    } else if fault == Fault::ReplicaClockAhead && !answered(400) {
        "no stale signature was refused"
    } else {
        return Vec::new();
    };
    vec![Breach::new("the fault leaves its traces", missing)]
}

/// How often a replica decided without Redis.
fn fallbacks(evidence: &Evidence) -> f64 {
    let of = |counters: &Counters| {
        let of_source = |source: Source| {
            counters.of(&format!(
                "hookgate_claim_fallbacks_total{{source=\"{}\"}}",
                source.name()
            ))
        };
        of_source(Source::Inbox) + of_source(Source::Forward)
    };
    evidence.counters.iter().map(of).sum()
}

fn must_be_unavailable(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::LedgerDown | Fault::LedgerPaused | Fault::LedgerDiskFull | Fault::BothDown
    )
}
