//! Who is whose twin: the judgement over events that were just written, by the keys that they claimed. The same for both
//! dialects, which only claim, look and write.
//!
//! An event suppresses another one only while it is finished or durably somebody's to run. The key of one that died, was
//! discarded or failed passes to the next, which then runs; and so does the key of one whose content was another, or
//! too long ago. A twin never takes a key. All this happens under the locks of the keys, so of two that come at once
//! the second one sees what became of the first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::content::{ContentKey, Sameness};
use crate::run::never_retrying;
use crate::{Alike, Appended, NewEvent, Path, State};

/// Where a key stands. In this order keys are claimed, so that no two transactions wait for each other in a circle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// An event that wants a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) event: &'a NewEvent,
    pub(crate) key: &'a ContentKey,
}

/// Who has a key, as the table says after it was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) event_id: String,
    pub(crate) provider_ms: Option<i64>,
    /// For how long.
    pub(crate) age_ms: i64,
    pub(crate) sha256: Option<[u8; 32]>,
    pub(crate) standing: Standing,
}

/// What may be expected of the holder of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is finished, or somebody will see it through.
    Kept,
    /// Its forward runs, and if that fails only the provider will try again.
    Forwarded,
    /// Nothing.
    Void,
}

/// What is to become of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As if nobody had asked.
    Run,
    /// It is a twin: nobody runs it.
    Twin,
    /// Whether it is one shows when the forward of its original has ended.
    Wait,
}

/// The judgement over one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) fate: Fate,
    pub(crate) alike: Alike,
    /// The original's id.
    pub(crate) twin_of: Option<String>,
}

/// The judgement over events that were written together, and the keys that pass to one of them.
pub(crate) struct Judgement<'a> {
    pub(crate) verdicts: Vec<(&'a NewEvent, Verdict)>,
    pub(crate) taken: BTreeMap<Place, Claim<'a>>,
}

impl Standing {
    /// Of a row. A forward that fails where the provider never tries again is handed to the workers, so it is kept.
    /// Nor does anybody wait for one whose lease has ended.
    pub(crate) fn of(state: State, path: Path, provider: &str, lease_ended: bool) -> Self {
        match (state, path) {
            (State::Queued | State::Parked | State::Done, _) | (State::Running, Path::Inbox) => Self::Kept,
            (State::Running, Path::Forward) if never_retrying().any(|name| name == provider) => Self::Kept,
            (State::Running, Path::Forward) if lease_ended => Self::Void,
            (State::Running, Path::Forward) => Self::Forwarded,
            (State::Dead | State::Discarded | State::Failed | State::Twin, _) => Self::Void,
        }
    }
}

impl Verdict {
    /// What an append tells of it. One that appends is never asked to wait.
    pub(crate) fn appended(&self) -> Appended {
        match self.fate {
            Fate::Twin => Appended::Twin(self.alike),
            Fate::Run | Fate::Wait if self.alike.any() => Appended::Alike(self.alike),
            Fate::Run | Fate::Wait => Appended::Accepted,
        }
    }
}

impl Claim<'_> {
    pub(crate) fn place(&self) -> Place {
        Place {
            source: self.event.key.source.as_str().to_owned(),
            kind: self.key.sameness.kind().to_owned(),
            name: self.key.name.clone(),
        }
    }

    pub(crate) fn provider_ms(&self) -> Option<i64> {
        self.event.provider_time.as_ref().map(|time| time.unix_ms)
    }

    /// Whether the holder is about the same.
    fn is_like(&self, holder: &Holder) -> bool {
        match self.key.sameness {
            Sameness::Body | Sameness::Object => true,
            Sameness::Content { sha256, window } => {
                holder.sha256 == Some(sha256) && self.is_near(holder, window)
            }
        }
    }

    /// By the provider's times; where neither has one, by when they came.
    fn is_near(&self, holder: &Holder, window: Duration) -> bool {
        let apart_ms = match (self.provider_ms(), holder.provider_ms) {
            (Some(ours), Some(theirs)) => ours.abs_diff(theirs),
            (None, None) => holder.age_ms.max(0).unsigned_abs(),
            (Some(_), None) | (None, Some(_)) => return false,
        };
        u128::from(apart_ms) <= window.as_millis()
    }

    fn held(&self, standing: Standing) -> Holder {
        Holder {
            event_id: self.event.key.id.as_str().to_owned(),
            provider_ms: self.provider_ms(),
            age_ms: 0,
            sha256: self.key.sameness.sha256(),
            standing,
        }
    }
}

/// Those with keys, the earliest first by the provider's word: of some that came together, one that changed something
/// in between should be judged in between.
pub(crate) fn in_order<'a>(events: impl Iterator<Item = &'a NewEvent>) -> Vec<&'a NewEvent> {
    let mut events: Vec<_> = events.filter(|event| !event.content_keys.is_empty()).collect();
    events.sort_by_key(|event| {
        let time = event.provider_time.as_ref().map(|time| time.unix_ms);
        (time, event.key.clone())
    });
    events
}

/// The keys that these want, each by the first that does.
pub(crate) fn claims<'a>(events: &[&'a NewEvent]) -> BTreeMap<Place, Claim<'a>> {
    let mut claims = BTreeMap::new();
    for claim in events.iter().copied().flat_map(claims_of) {
        claims.entry(claim.place()).or_insert(claim);
    }
    claims
}

fn claims_of(event: &NewEvent) -> impl Iterator<Item = Claim<'_>> {
    event.content_keys.iter().map(move |key| Claim { event, key })
}

/// Judges events in their order. `held` says who has each of their keys; `forwards`, whether they are about to run
/// before they are answered, and so can be asked to wait.
pub(crate) fn judge<'a>(
    events: &[&'a NewEvent],
    mut held: BTreeMap<Place, Holder>,
    forwards: bool,
) -> Judgement<'a> {
    let mut judgement = Judgement {
        verdicts: Vec::with_capacity(events.len()),
        taken: BTreeMap::new(),
    };
    for &event in events {
        let (verdict, free) = judge_one(event, &held, forwards);
        let standing = match verdict.fate {
            Fate::Run if forwards => Standing::Forwarded,
            Fate::Run => Standing::Kept,
            Fate::Twin | Fate::Wait => Standing::Void,
        };
        for claim in free {
            let place = claim.place();
            let own = held
                .get(&place)
                .is_some_and(|holder| holder.event_id == event.key.id.as_str());
            if own || verdict.fate == Fate::Run {
                held.insert(place.clone(), claim.held(standing));
            }
            if !own && verdict.fate == Fate::Run {
                judgement.taken.insert(place, claim);
            }
        }
        judgement.verdicts.push((event, verdict));
    }
    judgement
}

/// The verdict, and the keys that are this event's, or free for it to take.
fn judge_one<'a>(
    event: &'a NewEvent,
    held: &BTreeMap<Place, Holder>,
    forwards: bool,
) -> (Verdict, Vec<Claim<'a>>) {
    let (mut fate, mut alike, mut free) = (Fate::Run, Alike::default(), Vec::new());
    // The original that suppresses outranks one that is only alike, and a twin one that shares no more than the body.
    let mut twin_of: Option<(u8, &str)> = None;
    for claim in claims_of(event) {
        let holder = held
            .get(&claim.place())
            .filter(|holder| holder.event_id != event.key.id.as_str());
        let Some(holder) = holder.filter(|holder| claim.is_like(holder)) else {
            free.push(claim);
            continue;
        };
        let suppresses = claim.key.suppresses;
        let is_body = claim.key.sameness == Sameness::Body;
        match holder.standing {
            Standing::Kept if suppresses => fate = Fate::Twin,
            Standing::Kept => {}
            Standing::Forwarded if suppresses && forwards => {
                fate = if fate == Fate::Run { Fate::Wait } else { fate };
            }
            Standing::Forwarded | Standing::Void => free.push(claim),
        }
        // A body that came before is worth knowing of whatever became of it.
        if holder.standing == Standing::Kept || is_body {
            alike.note(claim.key.sameness);
            let rank = 2 * u8::from(suppresses && holder.standing == Standing::Kept) + u8::from(!is_body);
            twin_of = twin_of.max(Some((rank, holder.event_id.as_str())));
        }
    }
    let verdict = Verdict {
        fate,
        alike,
        twin_of: twin_of.map(|(_, id)| id.to_owned()),
    };
    (verdict, free)
}

#[cfg(test)]
mod tests;
