//! Rows as both dialects give them, and what they mean. Integers are asked for as 64 bits wide.

use std::collections::BTreeMap;

use bytes::Bytes;
use hookgate_webhook::Field;

use crate::columns::{bytes, count, id, key, state};
use crate::twins::{self, Fate, Holder, Place, Verdict};
use crate::{Alike, Begun, Entry, Job, Lease, NewEvent, Path, State, Stored, headers};

/// A row that was leased.
#[derive(sqlx::FromRow)]
pub(crate) struct Leased {
    source: String,
    event_id: String,
    lease_owner: Vec<u8>,
    attempts: i64,
    generation: i64,
    tries: i64,
    provider: String,
    event_type: Option<String>,
    headers: String,
    body: Vec<u8>,
}

impl Leased {
    pub(crate) fn job(self) -> sqlx::Result<Job> {
        let lease = Lease {
            key: key(&self.source, &self.event_id)?,
            owner: id(&self.lease_owner)?,
            attempt: count(self.attempts)?,
            generation: count(self.generation)?,
        };
        Ok(Job {
            lease,
            provider: self.provider,
            event_type: self.event_type,
            tries: count(self.tries)?,
            headers: headers::read(&self.headers)?,
            body: Bytes::from(self.body),
        })
    }
}

/// The row of a forward, after it was written or was found.
#[derive(sqlx::FromRow)]
pub(crate) struct Met {
    state: String,
    lease_owner: Option<Vec<u8>>,
    lease_ended: bool,
    attempts: i64,
    generation: i64,
    same_body: bool,
    event_type: Option<String>,
    headers: String,
    delivery_id: Vec<u8>,
    /// Only of a row that was there before.
    is_linked: bool,
    /// Only if the lease is ours and the body another one.
    first_body: Option<Vec<u8>>,
}

impl Met {
    /// What it says to the one that asked. `None`: it may be had now.
    pub(crate) fn by(self, event: &NewEvent) -> sqlx::Result<Option<Begun>> {
        Ok(match state(&self.state)? {
            State::Failed => None,
            // A lease that has ended is nobody's, even if nobody has freed the row yet.
            State::Running
                if !self.lease_ended && self.lease_owner.as_deref() == Some(&event.delivery.to_bytes()) =>
            {
                Some(self.run(event)?)
            }
            State::Running => Some(Begun::Running),
            // Judged by an earlier try of this very delivery, whose answer was lost.
            State::Twin if self.delivery_id == event.delivery.to_bytes() => {
                Some(Begun::Twin(Alike::remembered(&event.content_keys, true)))
            }
            state @ (State::Queued
            | State::Done
            | State::Dead
            | State::Discarded
            | State::Parked
            | State::Twin) => Some(Begun::Settled {
                state,
                same_body: self.same_body,
            }),
        })
    }

    fn run(self, event: &NewEvent) -> sqlx::Result<Begun> {
        let lease = Lease {
            key: event.key.clone(),
            owner: event.delivery,
            attempt: count(self.attempts)?,
            generation: count(self.generation)?,
        };
        let stored = |body| {
            Ok::<_, sqlx::Error>(Box::new(Stored {
                event_type: self.event_type.as_deref().and_then(Field::parse),
                headers: headers::read(&self.headers)?,
                body: Bytes::from(body),
            }))
        };
        let alike = self.remembered(event);
        Ok(Begun::Run {
            lease,
            first: self.first_body.map(stored).transpose()?,
            alike,
        })
    }
}

impl Met {
    /// What was found alike by an earlier try, whose answer was lost.
    fn remembered(&self, event: &NewEvent) -> Alike {
        match self.is_linked && self.attempts == 1 {
            true => Alike::remembered(&event.content_keys, false),
            false => Alike::default(),
        }
    }
}

impl Begun {
    /// What the judgement over the event makes of its run. That it is alike is told once, with the first run.
    pub(crate) fn judged(self, verdict: Option<&Verdict>) -> Self {
        let Self::Run { lease, first, .. } = self else {
            return self;
        };
        match verdict.map(|verdict| (verdict.fate, verdict.alike)) {
            Some((Fate::Twin, alike)) => Self::Twin(alike),
            Some((Fate::Wait, _)) => Self::Running,
            Some((Fate::Run, alike)) if lease.attempt == 1 => Self::Run { lease, first, alike },
            Some((Fate::Run, _)) | None => Self::Run {
                lease,
                first,
                alike: Alike::default(),
            },
        }
    }
}

/// A content key and who holds it.
#[derive(sqlx::FromRow)]
pub(crate) struct KeyHeld {
    source: String,
    kind: String,
    content_key: String,
    event_id: String,
    provider_ms: Option<i64>,
    age_ms: i64,
    content_sha256: Option<Vec<u8>>,
}

impl KeyHeld {
    /// Nothing is known yet of how the holder stands.
    pub(crate) fn read(self) -> sqlx::Result<(Place, Holder)> {
        let place = Place {
            source: self.source,
            kind: self.kind,
            name: self.content_key,
        };
        let holder = Holder {
            event_id: self.event_id,
            provider_ms: self.provider_ms,
            age_ms: self.age_ms,
            sha256: self.content_sha256.as_deref().map(bytes).transpose()?,
            standing: twins::Standing::Void,
        };
        Ok((place, holder))
    }
}

/// What became of the holder of a key.
#[derive(sqlx::FromRow)]
pub(crate) struct Standing {
    state: String,
    path: String,
    provider: String,
    lease_ended: bool,
}

impl Standing {
    pub(crate) fn read(&self) -> sqlx::Result<twins::Standing> {
        let unknown = || sqlx::Error::Decode(format!("unknown path {:?}", self.path).into());
        let path = Path::parse(&self.path).ok_or_else(unknown)?;
        Ok(twins::Standing::of(
            state(&self.state)?,
            path,
            &self.provider,
            self.lease_ended,
        ))
    }
}

/// A row that is only looked at.
#[derive(sqlx::FromRow)]
pub(crate) struct Seen {
    state: String,
    attempts: i64,
    last_error: Option<String>,
    lease_ended: bool,
}

impl Seen {
    pub(crate) fn entry(self) -> sqlx::Result<Entry> {
        Ok(Entry {
            state: state(&self.state)?,
            attempts: count(self.attempts)?,
            last_error: self.last_error,
            lease_ended: self.lease_ended,
        })
    }
}

/// How far rows of a state are counted. A count of millions would take longer than a statement may.
pub(crate) const COUNT_MAX: i64 = 100_000;

/// Each state is counted in the partial index that holds it, in the order of that index, and only so far.
pub(crate) const DEPTH: &str = "
    SELECT state, count(*) FROM (
        SELECT state FROM webhook_events WHERE state IN ('queued', 'parked') ORDER BY source LIMIT $1
    ) AS waiting GROUP BY state
    UNION ALL SELECT 'running', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'running' ORDER BY source LIMIT $1) AS running
    UNION ALL SELECT 'dead', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'dead' ORDER BY processed_at LIMIT $1) AS dead
    UNION ALL SELECT 'failed', count(*) FROM (
        SELECT 1 FROM webhook_events WHERE state = 'failed' ORDER BY received_at LIMIT $1) AS failed";

/// Those states of which there are rows.
pub(crate) fn by_state(counts: Vec<(String, i64)>) -> sqlx::Result<BTreeMap<State, u64>> {
    let counts = counts.into_iter().filter(|&(_, number)| number > 0);
    counts
        .map(|(name, number)| Ok((state(&name)?, number.unsigned_abs())))
        .collect()
}
