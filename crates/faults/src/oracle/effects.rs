//! Once: no event took effect twice at the ledger, and what the ledger calls done the target has taken.

use std::collections::BTreeMap;

use super::{Breach, Stories};
use crate::evidence::{Call, Evidence, Key, Reply, Source};

pub(super) const DOUBLED: &str = "nothing takes effect twice at the ledger";

pub(super) fn breaches(evidence: &Evidence, stories: &Stories<'_>) -> Vec<Breach> {
    let mut done = BTreeMap::<&Key, Vec<u32>>::new();
    for ((key, number), attempt) in &evidence.attempts {
        if attempt.outcome == "done" {
            done.entry(key).or_default().push(*number);
        }
    }
    let mut breaches = Vec::new();
    for (key, row) in &evidence.rows {
        let done = done.get(key).map(Vec::as_slice).unwrap_or_default();
        let calls = stories.get(key).map(Vec::as_slice).unwrap_or_default();
        if done.len() > 1 || row.generation > 0 {
            let what = format!("{key}: runs {done:?} are done, generation {}", row.generation);
            breaches.push(Breach::new(DOUBLED, what));
        }
        if (row.state == "done") != (done.len() == 1) {
            let what = format!("{key} is {}, and of its runs {done:?} are done", row.state);
            breaches.push(Breach::new("state and runs agree", what));
        }
        let heard = |number: &u32| {
            calls
                .iter()
                .any(|call| call.attempt == *number && call.took_effect())
        };
        if let Some(number) = done.iter().find(|number| !heard(number)) {
            let what = format!("{key}: run {number} is done, and no target took it");
            breaches.push(Breach::new("what is done was taken", what));
        }
    }
    breaches.extend(accepted_twice(evidence, stories));
    breaches
}

/// "Accepted" is said once: to the delivery that wrote the row, or of each call that the target took.
fn accepted_twice(evidence: &Evidence, stories: &Stories<'_>) -> Vec<Breach> {
    let mut accepted = BTreeMap::<&Key, usize>::new();
    for send in evidence.sends.iter().chain(&evidence.echoes) {
        if let Reply::Answer {
            status: 200,
            duplicate: Some(false),
            ..
        } = send.reply
        {
            *accepted.entry(&send.key).or_default() += 1;
        }
    }
    let taken = |key: &Key| {
        let calls = stories.get(key).map(Vec::as_slice).unwrap_or_default();
        calls.iter().filter(|call: &&&Call| call.took_effect()).count()
    };
    let too_often = accepted.into_iter().filter(|(key, count)| match key.source {
        Source::Inbox => *count > 1,
        Source::Forward => *count > taken(key),
    });
    too_often
        .map(|(key, count)| Breach::new(DOUBLED, format!("{key} was accepted {count} times")))
        .collect()
}
