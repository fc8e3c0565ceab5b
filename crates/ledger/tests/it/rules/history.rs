//! What can happen to one event, in any order.

use std::time::Duration;

use hookgate_ledger::{Change, OnFailure, Outcome};
use proptest::prelude::*;
use proptest::sample::select;

/// Steps of one history. More than one row can suffer without running out of tries.
const STEPS_MAX: usize = 40;

/// Deliveries of the event.
pub(super) const DELIVERIES: usize = 3;

/// The latest runs that somebody may still try to end. Older owners are no more late than these.
pub(super) const RUNS: usize = 4;

/// Steps that lie apart in time by none of the sums of these.
const PASSING: [Duration; 3] = [
    Duration::from_secs(300),
    Duration::from_secs(1_300),
    Duration::from_secs(73 * 3600),
];

const LEASES: [Duration; 2] = [Duration::from_secs(1_000), Duration::from_secs(2_000)];

/// Until the next try.
const PAUSES: [Duration; 2] = [Duration::ZERO, Duration::from_secs(500)];

/// For which a target was away.
const ABSENCES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_secs(100),
    Duration::from_secs(80 * 3600),
];

/// One thing that happens. A number says which of the deliveries, or how many runs ago.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Append(usize),
    AppendFinished(usize),
    Begin(usize, Duration),
    Adopt,
    Fetch(Duration),
    Heartbeat(usize, Duration),
    Settle(usize, Outcome),
    Release(usize, OnFailure),
    Rescue { tries_max: u32 },
    Change(Change),
    Pass(Duration),
}

/// Histories, and of which kind of provider: one that tries again by itself, or one that never does.
pub(super) fn histories() -> impl Strategy<Value = (bool, Vec<Step>)> {
    (any::<bool>(), prop::collection::vec(step(), 1..STEPS_MAX))
}

fn step() -> impl Strategy<Value = Step> {
    let delivery = 0..DELIVERIES;
    let run = || prop_oneof![4 => Just(0_usize), 1 => 1..RUNS];
    prop_oneof![
        2 => delivery.clone().prop_map(Step::Append),
        1 => delivery.clone().prop_map(Step::AppendFinished),
        4 => (delivery, select(&LEASES[..])).prop_map(|(delivery, lease)| Step::Begin(delivery, lease)),
        1 => Just(Step::Adopt),
        4 => select(&LEASES[..]).prop_map(Step::Fetch),
        2 => (run(), select(&LEASES[..])).prop_map(|(run, extend)| Step::Heartbeat(run, extend)),
        5 => (run(), outcome()).prop_map(|(run, outcome)| Step::Settle(run, outcome)),
        2 => (run(), on_failure()).prop_map(|(run, next)| Step::Release(run, next)),
        3 => (1..4_u32).prop_map(|tries_max| Step::Rescue { tries_max }),
        2 => select(&[Change::Replay, Change::Redrive, Change::Discard][..]).prop_map(Step::Change),
        5 => prop_oneof![4 => Just(PASSING[0]), 4 => Just(PASSING[1]), 1 => Just(PASSING[2])].prop_map(Step::Pass),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let after = select(&PAUSES[..]);
    let error = || "as told".to_owned();
    prop_oneof![
        2 => Just(Outcome::Done),
        1 => Just(Outcome::Ignored("no_effect".to_owned())),
        1 => Just(Outcome::Dead { error: error() }),
        2 => after.clone().prop_map(move |after| Outcome::Retry { after, error: error() }),
        1 => after.clone().prop_map(move |after| Outcome::Parked { after, error: error() }),
        1 => after.clone().prop_map(move |after| Outcome::GivenBack { after, reason: error() }),
        2 => (after, select(&ABSENCES[..]))
            .prop_map(move |(after, away_for)| Outcome::Postponed {
                after,
                error: error(),
                away_for,
                target: "default".to_owned(),
            }),
    ]
}

fn on_failure() -> impl Strategy<Value = OnFailure> {
    prop_oneof![
        Just(OnFailure::ProviderRetries),
        Just(OnFailure::WorkerRetries(Duration::from_secs(500))),
    ]
}
