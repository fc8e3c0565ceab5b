//! The protocol as it is keeps every promise, in every order of steps and faults within the bounds.

#![allow(
    clippy::print_stdout,
    reason = "the counts of a run are what one looks at these tests for"
)]

use std::sync::Arc;

use hookgate_model::bounds::{Bounds, Mode};
use hookgate_model::check::{Check, Report};
use hookgate_model::protocol::Real;
use hookgate_model::situations::Situation;

/// Threads of one check; checks run one after another, so that each has the machine.
const THREADS: usize = 2;

fn verify(bounds: Bounds) -> Report {
    let report = Check::new(bounds, Arc::new(Real)).verify(THREADS);
    println!("{report}");
    report
}

/// Every promise holds, nothing was left out, and the model went where it had to.
fn check(bounds: Bounds, states_min: usize, must_meet: &[Situation]) {
    let report = verify(bounds);
    if let Some((promise, story)) = &report.broken {
        panic!("{bounds}: broken: {}\n{}", promise.name(), story.join("\n"));
    }
    assert!(
        report.is_exhaustive,
        "{bounds}: the check did not come to its end"
    );
    assert!(
        report.unique_states >= states_min,
        "{bounds}: {} situations are too few; can the model still move?",
        report.unique_states
    );
    let missed: Vec<_> = must_meet
        .iter()
        .filter(|situation| !report.met.has(**situation))
        .collect();
    assert!(missed.is_empty(), "{bounds}: never met: {missed:?}");
}

/// What every mode must meet.
const EVERYWHERE: [Situation; 12] = [
    Situation::Delivery,
    Situation::TakeOver,
    Situation::TooLateToTakeOver,
    Situation::MetItself,
    Situation::Fallback,
    Situation::DuplicateByClaim,
    Situation::LateArrival,
    Situation::Answered200,
    Situation::AnsweredUnavailable,
    Situation::Crash,
    Situation::Pause,
    Situation::LateOwnerOfClaim,
];

fn and(more: &[Situation]) -> Vec<Situation> {
    EVERYWHERE.iter().chain(more).copied().collect()
}

const WITH_LEDGER: [Situation; 4] = [
    Situation::DuplicateByLedger,
    Situation::FailOver,
    Situation::LateOwnerOfRow,
    Situation::Rescue,
];

const FORWARDING: [Situation; 3] = [
    Situation::Waiter,
    Situation::FreedForWaiter,
    Situation::AnsweredInFlight,
];

#[test]
fn an_inbox_keeps_every_promise() {
    // It calls nobody while it holds a claim, so it renews none.
    let must_meet: Vec<_> = and(&WITH_LEDGER)
        .into_iter()
        .filter(|situation| *situation != Situation::LateOwnerOfClaim)
        .chain([Situation::Fetched])
        .collect();
    check(Bounds::of(Mode::Inbox), 1_000_000, &must_meet);
}

#[test]
fn a_forward_with_a_ledger_keeps_every_promise() {
    let must_meet = and(&[&WITH_LEDGER[..], &FORWARDING, &[Situation::AnsweredFailed]].concat());
    check(Bounds::of(Mode::Forward), 1_000_000, &must_meet);
}

#[test]
fn a_forward_with_redis_alone_keeps_every_promise_as_long_as_redis_keeps_its_data() {
    let must_meet = and(&[&FORWARDING[..], &[Situation::AnsweredFailed]].concat());
    check(Bounds::of(Mode::ForwardAlone), 25_000, &must_meet);
}

#[test]
fn a_forward_for_a_provider_that_never_tries_again_keeps_every_promise() {
    let bounds = Bounds {
        deliveries: 2,
        ..Bounds::of(Mode::ForwardSilent)
    };
    let must_meet = and(&[&WITH_LEDGER[..], &FORWARDING, &[Situation::Fetched]].concat());
    check(bounds, 200_000, &must_meet);
}

#[test]
fn a_rolling_change_from_forward_to_inbox_keeps_every_promise() {
    let bounds = Bounds {
        deliveries: 2,
        ..Bounds::of(Mode::Rolling)
    };
    check(bounds, 400_000, &Situation::ALL);
}
