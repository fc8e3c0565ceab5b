//! The model can fail: naive receivers and changed transitions are refuted, each by what it must break.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "all of this is test code, where a panic is the finding and the counter-examples are there to be read"
)]

use std::collections::BTreeSet;

use hookgate_model::promises::Promise;
use hookgate_model::{mutations, naive};

#[test]
fn every_naive_receiver_is_refuted() {
    for suspect in naive::receivers() {
        let report = suspect
            .refuted()
            .unwrap_or_else(|| panic!("{}: it broke nothing", suspect.name));
        let (promise, story) = report.broken.unwrap();
        println!(
            "{}: {}.\nBroken: {}\n{}\n",
            suspect.name,
            suspect.does,
            promise.name(),
            story.join("\n")
        );
    }
}

#[test]
fn every_changed_transition_breaks_a_promise() {
    let mut broken = BTreeSet::new();
    let mut survivors = Vec::new();
    for suspect in mutations::all() {
        let (name, does) = (suspect.name, suspect.does);
        match suspect.refuted() {
            Some(report) => {
                let steps = report.broken.map_or(0, |(_, story)| story.len());
                println!("{name} | {does} | {} | {steps}", suspect.breaks.name());
                broken.insert(suspect.breaks);
            }
            None => survivors.push(format!(
                "{name}: {does} (should break: {})",
                suspect.breaks.name()
            )),
        }
    }
    assert!(survivors.is_empty(), "not noticed:\n{}", survivors.join("\n"));
    let unbroken: Vec<_> = Promise::ALL
        .iter()
        .filter(|promise| !broken.contains(promise))
        .collect();
    assert!(
        unbroken.is_empty(),
        "no change breaks {unbroken:?}: what are they good for?"
    );
}
