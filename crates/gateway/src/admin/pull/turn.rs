//! Consumers of one replica look into the ledger one after the other, each in its turn, and share what a look
//! did not find. So there is one look at a time however many wait, and a crowd that is woken by one event asks
//! for it once: the path needs the same connections, and the same breaker.

use std::collections::HashMap;
use std::time::Duration;

use hookgate_ledger::{Job, LedgerError};
use hookgate_webhook::SourceName;
use tokio::time::Instant;

use super::Want;

/// Shortest pause after a look that found less than was wanted: as with a worker, under load each look finds a
/// few events instead of one.
const TURN_INTERVAL: Duration = Duration::from_millis(5);

/// What the looks so far have shown; whoever has it may look.
#[derive(Default)]
pub(super) struct Turn {
    /// When the last look began that found nothing, by source.
    empty: HashMap<SourceName, Instant>,
    /// When the last look began that the ledger did not answer.
    failed: Option<Instant>,
    /// Before when nobody looks.
    closed_until: Option<Instant>,
    /// When somebody last looked for events whose consumer died.
    pub(super) rescued: Option<Instant>,
}

/// A look, and what it found.
pub(super) struct Look {
    /// When it began: what came later it cannot have seen.
    pub(super) began: Instant,
    /// What was leased.
    pub(super) jobs: Vec<Job>,
}

impl Turn {
    /// What a look at these sources would say, if one has said it that began after this moment.
    pub(super) fn known(&self, sources: &[SourceName], after: Instant) -> Option<Result<Look, LedgerError>> {
        if self.failed.is_some_and(|began| began > after) {
            let cause = "another consumer has just asked in vain".to_owned();
            return Some(Err(LedgerError::Unavailable(cause)));
        }
        let began = sources.iter().map(|source| self.empty.get(source).copied());
        let began = began.min().flatten().filter(|began| *began > after)?;
        let jobs = Vec::new();
        Some(Ok(Look { began, jobs }))
    }

    /// Waits until it is time to look again.
    pub(super) async fn open(&self) {
        if let Some(until) = self.closed_until {
            tokio::time::sleep_until(until).await;
        }
    }

    /// Remembers what a look found for those who come next.
    pub(super) fn learn(&mut self, want: &Want, began: Instant, found: &Result<Vec<Job>, LedgerError>) {
        let full = found.as_ref().is_ok_and(|jobs| jobs.len() >= want.limit as usize);
        self.closed_until = (!full).then(|| began + TURN_INTERVAL);
        match found {
            Ok(jobs) if jobs.is_empty() => {
                let empty = want.sources.iter().map(|source| (source.clone(), began));
                self.empty.extend(empty);
            }
            Ok(_) => {}
            Err(_) => self.failed = Some(began),
        }
    }
}
