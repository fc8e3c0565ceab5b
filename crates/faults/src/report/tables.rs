//! The tables of the page.

use std::fmt::Write as _;
use std::time::Duration;

use crate::fault::{Fault, Victim};
use crate::oracle::{Figures, Reason};
use crate::outcome::Outcome;
use crate::settings::LEDGER_LIMIT;
use crate::totals::{Total, of_fault, of_pairs, of_victims};

const VICTIMS: [Victim; 6] = [
    Victim::Nobody,
    Victim::Replica,
    Victim::Worker,
    Victim::Redis,
    Victim::Ledger,
    Victim::BothStores,
];

/// What one looks for first.
pub(super) fn headline(outcomes: &[Outcome], total: &Total) -> String {
    let figures = &total.figures;
    let p99 = |victims: &[Victim]| ms(of_victims(outcomes, victims).figures.percentile(99));
    let ledger_max = LEDGER_LIMIT + Duration::from_millis(200);
    format!(
        "| | |\n|---|---|\n\
         | runs | {}, of which {} broke a rule |\n\
         | events | {} |\n\
         | answered 200 | {} |\n\
         | **lost** (answered 200, and not there or not done) | **{}** |\n\
         | **doubled at the ledger** | **{}** |\n\
         | deliveries, with copies and resends | {} |\n\
         | calls of the target after a first one | {}, every one explained ([below](#second-calls)) |\n\
         | 99 of 100 answers, nothing wrong | {} |\n\
         | 99 of 100 answers, faults of replicas and workers | {} (limit 1 s) |\n\
         | 99 of 100 answers, faults of Redis | {} (limit 1 s) |\n\
         | 99 of 100 answers, faults of the ledger | {} (limit {}: the ledger's, and 200 ms) |",
        total.runs,
        total.failed,
        figures.events,
        figures.answered,
        figures.lost,
        figures.doubled,
        figures.sends,
        figures.second_calls_in_all(),
        p99(&[Victim::Nobody]),
        p99(&[Victim::Replica, Victim::Worker]),
        p99(&[Victim::Redis]),
        p99(&[Victim::Ledger, Victim::BothStores]),
        ms(ledger_max),
    )
}

/// A table for each victim.
pub(super) fn faults(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for victim in VICTIMS {
        let of_victim = Fault::ALL.into_iter().filter(|fault| fault.victim() == victim);
        let rows: Vec<_> = of_victim
            .map(|fault| (fault, of_fault(outcomes, fault)))
            .filter(|(_, total)| total.runs > 0)
            .collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(text, "### {}\n\n{HEAD}", victim.title());
        for (fault, total) in &rows {
            let _ = writeln!(
                text,
                "| `{}`: {} {}",
                fault.name(),
                fault.description(),
                cells(total)
            );
        }
        text.push('\n');
    }
    text
}

/// One row a pair.
pub(super) fn pairs(outcomes: &[Outcome]) -> String {
    let pairs = outcomes.iter().filter(|outcome| outcome.run.faults.len() > 1);
    let mut text = format!("### Two at a time\n\n{HEAD}\n");
    let total = of_pairs(outcomes);
    for outcome in pairs {
        let total = Total::of(std::iter::once(outcome));
        let _ = writeln!(text, "| `{}` {}", outcome.run.name(), cells(&total));
    }
    let _ = writeln!(text, "| all pairs {}", cells(&total));
    text
}

const HEAD: &str = "\
| fault | runs | events | answered 200 | lost | doubled | second calls | p99 | max |
|---|---|---|---|---|---|---|---|---|";

fn cells(total: &Total) -> String {
    let Figures {
        events,
        answered,
        lost,
        doubled,
        ..
    } = &total.figures;
    let failed = match total.failed {
        0 => String::new(),
        failed => format!(" ({failed} failed)"),
    };
    format!(
        "| {}{failed} | {events} | {answered} | {lost} | {doubled} | {} | {} | {} |",
        total.runs,
        by_reason(&total.figures),
        ms(total.figures.percentile(99)),
        ms(total.figures.percentile(100)),
    )
}

/// As `12: refused 8, killed 4`.
fn by_reason(figures: &Figures) -> String {
    let reasons = figures.second_calls.iter();
    let reasons: Vec<_> = reasons
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    match figures.second_calls_in_all() {
        0 => "0".to_owned(),
        all => format!("{all}: {}", reasons.join(", ")),
    }
}

/// Each reason, how often it was one, and in words.
pub(super) fn reasons(total: &Total) -> String {
    let mut text = "| reason | calls | what happened before |\n|---|---|---|\n".to_owned();
    for reason in Reason::ALL {
        let count = total
            .figures
            .second_calls
            .get(&reason)
            .copied()
            .unwrap_or_default();
        if reason == Reason::Busy && count == 0 {
            continue;
        }
        let _ = writeln!(
            text,
            "| {reason} | {count} | {} |",
            super::prose::of_reason(reason)
        );
    }
    text
}

/// What is neither lost nor doubled, and yet worth knowing.
pub(super) fn beyond(total: &Total) -> String {
    let figures = &total.figures;
    format!(
        "\
Of these calls, {} met a target that had taken the event before, and took it again: its process died, stood still or lost
the ledger between the target's 2xx and the note of it. That is what \"at least once\" means, and what `Idempotency-Key`
and `Hookgate-Attempt` are for.

{} forwards were answered 200 because the target had taken them, while the ledger could not be told before somebody freed
the row, which says `failed` now. Nothing is lost by that; another copy from the provider would be forwarded once more.

{} deliveries were in the hands of a process while it was stopped. Nobody can answer those; they are left out of the times
above. {} deliveries got no answer at all: their process was killed, or gave none within the provider's patience of 5 s.
All of them were sent again, as providers do.",
        figures.taken_again, figures.unrecorded, figures.in_stopped_hands, figures.unanswered
    )
}

fn ms(time: Duration) -> String {
    match time.as_millis() {
        ms if ms >= 10_000 => format!("{:.1} s", time.as_secs_f64()),
        ms => format!("{ms} ms"),
    }
}
