//! Rows as people's questions give them. Moments come as microseconds since 1970, integers as 64 bits wide.

use std::collections::BTreeMap;

use crate::columns::{bytes, count, key, state};
use crate::{
    AttemptRecord, AuditRecord, BulkStep, Cursor, EventDetail, EventSummary, Listing, MinuteStats, Path,
    Pause, TargetRecord, UnixMicros, headers,
};

/// An event without what it carried.
#[derive(sqlx::FromRow)]
pub(crate) struct SummaryRow {
    source: String,
    event_id: String,
    provider: String,
    account: Option<String>,
    mode: Option<String>,
    event_type: Option<String>,
    object_id: Option<String>,
    provider_time: Option<i64>,
    received_at: i64,
    path: String,
    state: String,
    attempts: i64,
    tries: i64,
    generation: i64,
    next_attempt_at: Option<i64>,
    twin_of: Option<String>,
    last_error: Option<String>,
    processed_at: Option<i64>,
    pruned_at: Option<i64>,
    body_bytes: i64,
}

impl SummaryRow {
    pub(crate) fn summary(self) -> sqlx::Result<EventSummary> {
        let state = state(&self.state)?;
        Ok(EventSummary {
            key: key(&self.source, &self.event_id)?,
            provider: self.provider,
            account: self.account,
            mode: self.mode,
            event_type: self.event_type,
            object_id: self.object_id,
            provider_time: self.provider_time.map(UnixMicros),
            received_at: UnixMicros(self.received_at),
            path: Path::parse(&self.path)
                .ok_or_else(|| sqlx::Error::Decode(format!("unknown path {:?}", self.path).into()))?,
            state,
            attempts: count(self.attempts)?,
            tries: count(self.tries)?,
            generation: count(self.generation)?,
            // The column keeps when a row was due; only of one that waits is that of interest.
            next_attempt_at: self.next_attempt_at.filter(|_| state.waits()).map(UnixMicros),
            twin_of: self.twin_of,
            last_error: self.last_error,
            processed_at: self.processed_at.map(UnixMicros),
            pruned_at: self.pruned_at.map(UnixMicros),
            body_bytes: self.body_bytes.unsigned_abs(),
        })
    }
}

/// A page of at most `limit` events, from rows of which one more may be there.
pub(super) fn listing(rows: Vec<SummaryRow>, limit: u32) -> sqlx::Result<Listing> {
    let limit = limit as usize;
    let more = rows.len() > limit;
    let events: Vec<EventSummary> = rows
        .into_iter()
        .take(limit)
        .map(SummaryRow::summary)
        .collect::<sqlx::Result<_>>()?;
    let place = |event: &EventSummary| Cursor {
        received_at: event.received_at,
        key: event.key.clone(),
    };
    let next = events.last().filter(|_| more).map(place);
    Ok(Listing { events, next })
}

/// What only the look at one event shows.
#[derive(sqlx::FromRow)]
pub(crate) struct DetailRow {
    #[sqlx(flatten)]
    summary: SummaryRow,
    body_sha256: Vec<u8>,
    headers: String,
}

impl DetailRow {
    /// Attempts and audit rows come newest first.
    pub(crate) fn detail(self, attempts: Vec<AttemptRow>, audit: Vec<AuditRow>) -> sqlx::Result<EventDetail> {
        let attempts = attempts.into_iter().rev().map(AttemptRow::record);
        let audit = audit.into_iter().rev().map(AuditRow::record);
        Ok(EventDetail {
            summary: self.summary.summary()?,
            body_sha256: bytes(&self.body_sha256)?,
            headers: headers::read(&self.headers)?,
            attempts: attempts.collect::<sqlx::Result<_>>()?,
            audit: audit.collect::<sqlx::Result<_>>()?,
        })
    }
}

/// A run that came to an end.
#[derive(sqlx::FromRow)]
pub(crate) struct AttemptRow {
    generation: i64,
    attempt: i64,
    started_at: i64,
    finished_at: i64,
    outcome: String,
    error: Option<String>,
}

impl AttemptRow {
    fn record(self) -> sqlx::Result<AttemptRecord> {
        Ok(AttemptRecord {
            generation: count(self.generation)?,
            attempt: count(self.attempt)?,
            started_at: UnixMicros(self.started_at),
            finished_at: UnixMicros(self.finished_at),
            outcome: self.outcome,
            error: self.error,
        })
    }
}

/// What a person did.
#[derive(sqlx::FromRow)]
pub(crate) struct AuditRow {
    at: i64,
    actor: String,
    action: String,
    generation: Option<i64>,
    detail: Option<String>,
}

impl AuditRow {
    fn record(self) -> sqlx::Result<AuditRecord> {
        Ok(AuditRecord {
            at: UnixMicros(self.at),
            actor: self.actor,
            action: self.action,
            generation: self.generation.map(count).transpose()?,
            detail: self.detail,
        })
    }
}

/// An event that was changed, or that would be.
#[derive(sqlx::FromRow)]
pub(crate) struct Touched {
    pub(crate) source: String,
    pub(crate) event_id: String,
    pub(crate) received_at: i64,
    /// The one that it has now.
    pub(crate) generation: i64,
}

impl Touched {
    pub(crate) fn generation(&self) -> sqlx::Result<u32> {
        count(self.generation)
    }

    fn place(&self) -> sqlx::Result<Cursor> {
        Ok(Cursor {
            received_at: UnixMicros(self.received_at),
            key: key(&self.source, &self.event_id)?,
        })
    }
}

/// A step of a bulk change: fewer events than were asked for are the last ones.
pub(super) fn step(touched: &[Touched], limit: u32) -> sqlx::Result<BulkStep> {
    let more = touched.len() >= limit as usize;
    Ok(BulkStep {
        events: touched.len() as u64,
        next: touched.last().filter(|_| more).map(Touched::place).transpose()?,
    })
}

/// A target.
#[derive(sqlx::FromRow)]
pub(crate) struct TargetRow {
    name: String,
    paused_at: Option<i64>,
    paused_by: Option<String>,
    paused_why: Option<String>,
    down_since: Option<i64>,
}

impl TargetRow {
    pub(super) fn record(self) -> TargetRecord {
        let (by, why) = (self.paused_by, self.paused_why);
        TargetRecord {
            name: self.name,
            paused: self.paused_at.map(|at| Pause {
                at: UnixMicros(at),
                by: by.unwrap_or_default(),
                why: why.unwrap_or_default(),
            }),
            down_since: self.down_since.map(UnixMicros),
        }
    }
}

/// One count of a minute and source.
#[derive(sqlx::FromRow)]
pub(crate) struct CountRow {
    minute: i64,
    source: String,
    name: String,
    count: i64,
}

/// Counts sorted by minute and source, put together.
pub(crate) fn by_minute(rows: Vec<CountRow>) -> Vec<MinuteStats> {
    let mut minutes: Vec<MinuteStats> = Vec::new();
    for row in rows {
        let count = row.count.unsigned_abs();
        let minute = UnixMicros(row.minute);
        match minutes.last_mut() {
            Some(last) if last.minute == minute && last.source == row.source => {
                last.counts.insert(row.name, count);
            }
            _ => minutes.push(MinuteStats {
                minute,
                source: row.source,
                counts: BTreeMap::from([(row.name, count)]),
            }),
        }
    }
    minutes
}
