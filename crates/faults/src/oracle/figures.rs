//! What is worth adding up over many runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::calls::{Reason, SecondCalls};
use super::{Breach, Stories, effects, promises};
use crate::evidence::{Evidence, Harm, Reply, Send};

/// The figures of a run, or of many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Events that the provider had.
    pub(crate) events: usize,
    /// Of them answered 200.
    pub(crate) answered: usize,
    /// Deliveries, copies and resends included.
    pub(crate) sends: usize,
    /// Deliveries that were answered 200 as duplicates.
    pub(crate) duplicates: usize,
    /// Answers by status.
    pub(crate) statuses: BTreeMap<u16, usize>,
    /// Deliveries whose connection broke, or that nobody answered in time.
    pub(crate) unanswered: usize,
    /// Events answered 200 and not there.
    pub(crate) lost: usize,
    /// Events that took effect twice at the ledger.
    pub(crate) doubled: usize,
    /// Forwards that the target took, as their 200 says, and whose row does not know it.
    pub(crate) unrecorded: usize,
    /// Calls of the target.
    pub(crate) calls: usize,
    /// Calls after the first, by reason.
    pub(crate) second_calls: BTreeMap<Reason, usize>,
    /// Calls that the target took although it had taken the event before.
    pub(crate) taken_again: usize,
    /// Times of answers, but for those below.
    pub(crate) latencies: Vec<Duration>,
    /// Deliveries in the hands of a process while it was stopped: nobody can answer those.
    pub(crate) in_stopped_hands: usize,
}

pub(super) fn count(
    evidence: &Evidence,
    stories: &Stories<'_>,
    second: &SecondCalls,
    breaches: &[Breach],
) -> Figures {
    let mut figures = Figures {
        events: evidence.events.len(),
        sends: evidence.sends.len(),
        lost: of_rule(breaches, promises::LOST),
        doubled: of_rule(breaches, effects::DOUBLED),
        calls: stories.values().map(Vec::len).sum(),
        second_calls: second.by_reason.clone(),
        taken_again: second.taken_again,
        ..Figures::default()
    };
    let mut answered = BTreeSet::new();
    for send in &evidence.sends {
        figures.add_send(send, is_in_stopped_hands(evidence, send));
        if send.reply.status() == Some(200) {
            answered.insert(&send.key);
        }
    }
    figures.answered = answered.len();
    let unrecorded = evidence
        .events
        .iter()
        .filter(|key| promises::is_unrecorded(evidence, key));
    figures.unrecorded = unrecorded.count();
    figures
}

fn of_rule(breaches: &[Breach], rule: &str) -> usize {
    breaches.iter().filter(|breach| breach.rule == rule).count()
}

fn is_in_stopped_hands(evidence: &Evidence, send: &Send) -> bool {
    evidence.suffered(&send.process, Harm::Stopped, send.at, send.until)
}

impl Figures {
    fn add_send(&mut self, send: &Send, in_stopped_hands: bool) {
        self.in_stopped_hands += usize::from(in_stopped_hands);
        match send.reply {
            Reply::Answer {
                status, duplicate, ..
            } => {
                *self.statuses.entry(status).or_default() += 1;
                self.duplicates += usize::from(duplicate == Some(true));
                if !in_stopped_hands {
                    self.latencies.push(send.until.saturating_sub(send.at));
                }
            }
            Reply::Nothing => self.unanswered += 1,
            Reply::Refused => {}
        }
    }

    /// Adds another run's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.answered += other.answered;
        self.sends += other.sends;
        self.duplicates += other.duplicates;
        self.unanswered += other.unanswered;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.unrecorded += other.unrecorded;
        self.calls += other.calls;
        self.taken_again += other.taken_again;
        self.in_stopped_hands += other.in_stopped_hands;
        self.latencies.extend(&other.latencies);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (reason, count) in &other.second_calls {
            *self.second_calls.entry(*reason).or_default() += count;
        }
    }

    /// The time within which so many of a hundred answers came.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or_default()
    }

    /// All calls after a first one.
    pub(crate) fn second_calls_in_all(&self) -> usize {
        self.second_calls.values().sum()
    }
}
