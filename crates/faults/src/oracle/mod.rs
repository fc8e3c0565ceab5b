//! The oracle: compares what the provider heard, what the target saw, what the rows say and what the replicas
//! counted. Each rule has a name and a file, and a test that shows it a run in which the rule is broken.

mod calls;
mod counters;
mod effects;
mod figures;
mod promises;

use std::collections::BTreeMap;

pub(crate) use calls::Reason;
pub(crate) use figures::Figures;

use crate::evidence::{Call, Evidence, Key, Reply};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    /// Which.
    pub(crate) rule: &'static str,
    /// By what.
    pub(crate) what: String,
}

impl Breach {
    fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self {
            rule,
            what: what.into(),
        }
    }
}

/// What the oracle says about a run.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    /// Everything that is wrong; empty is what one wants.
    pub(crate) breaches: Vec<Breach>,
    /// What is worth adding up.
    pub(crate) figures: Figures,
}

/// Judges a run.
pub(crate) fn judge(evidence: &Evidence) -> Judgement {
    let stories = stories(evidence);
    let second = calls::second_calls(evidence, &stories);
    let breaches = [
        promises::breaches(evidence, &stories),
        effects::breaches(evidence, &stories),
        calls::breaches(evidence, &stories),
        second.unexplained.clone(),
        counters::breaches(evidence),
        aftermath(evidence),
    ]
    .concat();
    Judgement {
        figures: figures::count(evidence, &stories, &second, &breaches),
        breaches,
    }
}

/// The calls of each event, by their number.
type Stories<'a> = BTreeMap<&'a Key, Vec<&'a Call>>;

fn stories(evidence: &Evidence) -> Stories<'_> {
    let mut stories = Stories::new();
    for call in &evidence.calls {
        stories.entry(&call.key).or_default().push(call);
    }
    for calls in stories.values_mut() {
        calls.sort_by_key(|call| (call.attempt, call.began));
    }
    stories
}

/// Everything came to rest, copies of what is done change nothing, the fault was really there, and neither logs nor
/// probes say what they must not.
fn aftermath(evidence: &Evidence) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut breach = |rule, what: &str| breaches.push(Breach::new(rule, what));
    for left in &evidence.unfinished {
        breach("everything comes to rest", left);
    }
    for (key, replies) in echoes(evidence) {
        let told = replies.iter().any(|reply| is_duplicate(reply));
        if !told || !replies.iter().all(|reply| may_come_first(reply)) {
            let what = format!("copies of {key} heard {replies:?}");
            breach("a copy of what is done is a duplicate", &what);
        }
    }
    for call in evidence.calls.iter().skip(evidence.calls_before_echoes) {
        breach("a copy of what is done calls nobody", &format!("{call:?}"));
    }
    for finding in &evidence.findings {
        breach("logs, probes and endings are clean", finding);
    }
    // Of two faults one may keep the other from its prey.
    if let [_] = evidence.faults[..] {
        for missed in &evidence.missed {
            breach("the fault strikes", missed);
        }
    }
    breaches
}

/// What the copies of each event heard.
fn echoes(evidence: &Evidence) -> BTreeMap<&Key, Vec<&Reply>> {
    let mut echoes = BTreeMap::<_, Vec<_>>::new();
    for echo in &evidence.echoes {
        echoes.entry(&echo.key).or_default().push(&echo.reply);
    }
    echoes
}

fn is_duplicate(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::Answer {
            status: 200,
            duplicate: Some(true),
            ..
        }
    )
}

/// A replica may still believe that the ledger is away.
fn may_come_first(reply: &Reply) -> bool {
    is_duplicate(reply) || reply.status().is_none_or(|status| status == 503)
}

#[cfg(test)]
pub(crate) mod tests;
