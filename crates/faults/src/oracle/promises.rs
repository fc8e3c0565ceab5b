//! What a 200 promised: the event is there, it is done, and it was there before the answer.

use super::{Breach, Stories};
use crate::evidence::{Call, Evidence, Harm, Key, Reply, Row, Send, Source};
use std::collections::BTreeMap;
use std::time::Duration;

/// A forward that its target took while the ledger could not write that down.
pub(super) const UNRECORDED_MAX: Duration = Duration::from_secs(8);

pub(super) const LOST: &str = "nothing that was answered 200 is lost";

pub(super) fn breaches(evidence: &Evidence, stories: &Stories<'_>) -> Vec<Breach> {
    let mut answers = BTreeMap::<&Key, Vec<(&Send, i64)>>::new();
    for send in evidence.sends.iter().chain(&evidence.echoes) {
        if let Reply::Answer {
            status: 200, unix_us, ..
        } = send.reply
        {
            answers.entry(&send.key).or_default().push((send, unix_us));
        }
    }
    let mut breaches = Vec::new();
    for key in &evidence.events {
        let calls = stories.get(key).map(Vec::as_slice).unwrap_or_default();
        match answers.get(key) {
            None => breaches.push(Breach::new("every event is answered 200", key.to_string())),
            Some(answers) => {
                breaches.extend(lost(evidence, key, calls));
                breaches.extend(too_early(evidence.rows.get(key), calls, answers));
            }
        }
    }
    let strangers = evidence.rows.keys().filter(|key| !evidence.events.contains(key));
    breaches.extend(strangers.map(|key| Breach::new("no row is nobody's", key.to_string())));
    breaches
}

fn lost(evidence: &Evidence, key: &Key, calls: &[&Call]) -> Option<Breach> {
    let Some(row) = evidence.rows.get(key) else {
        return Some(Breach::new(
            LOST,
            format!("{key} was answered 200 and has no row"),
        ));
    };
    if !calls.iter().any(|call| call.took_effect()) {
        return Some(Breach::new(
            LOST,
            format!("{key} is {} and no target took it", row.state),
        ));
    }
    if row.state == "done" || is_unrecorded(evidence, key) {
        return None;
    }
    let what = format!(
        "{key} was answered 200 and is {} after {} runs",
        row.state, row.attempts
    );
    Some(Breach::new("what was answered 200 is done", what))
}

/// Whether the target took it, as the 200 says, and only the note of it is missing: the ledger was away at that
/// moment, or the process was stopped beyond its lease.
pub(super) fn is_unrecorded(evidence: &Evidence, key: &Key) -> bool {
    let failed = evidence.rows.get(key).is_some_and(|row| row.state == "failed");
    let excused = |call: &Call| {
        let until = call.began + UNRECORDED_MAX;
        let mut harms = [Harm::LedgerAway, Harm::Stopped].into_iter();
        harms.any(|harm| evidence.suffered(&call.caller, harm, call.began, until))
            || evidence.was_too_busy(call)
    };
    let mut calls = evidence
        .calls
        .iter()
        .filter(|call| call.key == *key && call.took_effect());
    key.source == Source::Forward && failed && calls.any(excused)
}

/// An inbox answers when the row is there, a forward when the target took it.
fn too_early(row: Option<&Row>, calls: &[&Call], answers: &[(&Send, i64)]) -> Option<Breach> {
    let early = |(send, unix_us): &&(&Send, i64)| match send.key.source {
        Source::Inbox => row.is_some_and(|row| row.received_us > *unix_us),
        Source::Forward => !calls
            .iter()
            .any(|call| call.took_effect() && call.ended.is_some_and(|ended| ended <= send.until)),
    };
    let (send, _) = answers.iter().find(early)?;
    let what = format!(
        "{} was answered 200 by {} at {:?}",
        send.key, send.process, send.until
    );
    Some(Breach::new("no 200 comes before its reason", what))
}
