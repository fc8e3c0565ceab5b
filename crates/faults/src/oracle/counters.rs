//! Counters of the replicas that lived to the end: they agree with what the provider heard from them, and say that
//! the fault was there.

use super::Breach;
use crate::evidence::{Counters, Evidence, Reply, Send, Source};
use crate::fault::Fault;

const AGREE: &str = "counters and answers agree";

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
    let sends = || {
        let all = evidence.sends.iter().chain(&evidence.echoes);
        all.filter(|send| send.process == counters.process && send.key.source == source)
    };
    let name = source.name();
    let counted = |outcome: &str| {
        counters.of(&format!(
            "hookgate_deliveries_total{{outcome=\"{outcome}\",source=\"{name}\"}}"
        ))
    };
    let heard = |outcome: &str| {
        sends()
            .filter(|send| self::outcome(send) == Some(outcome))
            .count() as f64
    };
    let unheard = sends().filter(|send| send.reply == Reply::Nothing).count() as f64;
    let mut breaches = Vec::new();
    for outcome in OUTCOMES {
        if counted(outcome) < heard(outcome) {
            let (counted, heard) = (counted(outcome), heard(outcome));
            let what = format!(
                "{} {name} {outcome}: {counted} counted, {heard} heard",
                counters.process
            );
            breaches.push(Breach::new(AGREE, what));
        }
    }
    let sum = |of: &dyn Fn(&str) -> f64| OUTCOMES.into_iter().map(of).sum::<f64>();
    let (all_counted, all_heard) = (sum(&counted), sum(&heard));
    if all_counted > all_heard + unheard {
        let what = format!(
            "{} {name}: {all_counted} counted, {all_heard} heard, {unheard} unheard",
            counters.process
        );
        breaches.push(Breach::new(AGREE, what));
    }
    let skipped: f64 = ["claim", "ledger", "content"]
        .map(|by| {
            counters.of(&format!(
                "hookgate_duplicates_skipped_total{{decided_by=\"{by}\",source=\"{name}\"}}"
            ))
        })
        .iter()
        .sum();
    if skipped != counted("duplicate") {
        let what = format!(
            "{} {name}: {} duplicates, {skipped} skipped",
            counters.process,
            counted("duplicate")
        );
        breaches.push(Breach::new(AGREE, what));
    }
    breaches
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
    let sum = |series: &str| {
        evidence
            .counters
            .iter()
            .map(|counters| counters.of(series))
            .sum::<f64>()
    };
    let fallbacks: f64 = [Source::Inbox, Source::Forward]
        .map(|source| {
            sum(&format!(
                "hookgate_claim_fallbacks_total{{source=\"{}\"}}",
                source.name()
            ))
        })
        .iter()
        .sum();
    let answered = |status: u16| {
        evidence
            .sends
            .iter()
            .any(|send| send.reply.status() == Some(status))
    };
    let mut breaches = Vec::new();
    for (holds, what) in [
        (
            !fault.must_fall_back() || fallbacks > 0.0,
            "no replica decided without Redis",
        ),
        (
            !must_be_unavailable(fault) || answered(503),
            "no event was answered 503",
        ),
        (
            fault != Fault::ReplicaClockAhead || answered(400),
            "no stale signature was refused",
        ),
    ] {
        if !holds {
            breaches.push(Breach::new("the fault leaves its traces", what));
        }
    }
    breaches
}

fn must_be_unavailable(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::LedgerDown | Fault::LedgerPaused | Fault::LedgerDiskFull | Fault::BothDown
    )
}
