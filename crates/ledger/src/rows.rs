//! Rows as both dialects give them, and what they mean. Integers are asked for as 64 bits wide.

use std::collections::BTreeMap;

use bytes::Bytes;
use hookgate_webhook::Field;

use crate::columns::{count, id, key, state};
use crate::{Begun, Entry, Job, Lease, NewEvent, State, Stored, headers};

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
        Ok(Begun::Run {
            lease,
            first: self.first_body.map(stored).transpose()?,
        })
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
