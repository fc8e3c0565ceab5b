//! What people do with the ledger: look, search, and decide about events that a machine has finished with.
//!
//! ```text
//! done, twin ── replay ──▶ queued (next generation)      dead ── redrive ──▶ queued      dead ── discard ──▶ discarded
//! ```
//!
//! A twin is replayed by whoever finds that it was an honest event after all; of many, twins are meant only if the
//! filter says so.
//!
//! Each change is a compare-and-set on the state it starts from, and its audit row commits with it: of two
//! people who press the same button one changes something, and the log says who.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hookgate_webhook::{EventKey, SourceName};

use crate::{LedgerError, Path, Reason, State, StoredHeaders};

/// Events of one page, at most.
pub(crate) const PAGE_MAX: u32 = 1000;

/// Attempts and audit rows shown with one event, at most.
pub(crate) const HISTORY_MAX: i64 = 1000;

/// A moment of the database's clock: microseconds since 1970 UTC (SQLite knows milliseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub i64);

/// Which events are meant. Everything given must be true of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Received by this source.
    pub source: Option<SourceName>,
    /// Of exactly this type.
    pub event_type: Option<String>,
    /// About exactly this object.
    pub object_id: Option<String>,
    /// In one of these states; empty means any.
    pub states: Vec<State>,
    /// Received at this moment or later.
    pub since: Option<UnixMicros>,
    /// Received before this moment.
    pub until: Option<UnixMicros>,
    /// `last_error` contains this text, whatever its case (on SQLite: of ASCII letters). No character of it has
    /// a special meaning.
    pub error: Option<String>,
}

/// A place in the list of events, which is sorted by time of arrival and then by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Arrival of the event at that place.
    pub received_at: UnixMicros,
    /// Its key.
    pub key: EventKey,
}

/// One page of a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The events.
    pub events: Vec<EventSummary>,
    /// Where the next page begins: after this place. `None`: there is no more.
    pub next: Option<Cursor>,
}

/// An event without what it carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSummary {
    /// Identity.
    pub key: EventKey,
    /// Name of the provider.
    pub provider: String,
    /// The provider's account.
    pub account: Option<String>,
    /// `live` or `test`, where the provider says it.
    pub mode: Option<String>,
    /// The provider's type.
    pub event_type: Option<String>,
    /// Object the event is about.
    pub object_id: Option<String>,
    /// The provider's own time.
    pub provider_time: Option<UnixMicros>,
    /// When it came.
    pub received_at: UnixMicros,
    /// Whose it is to run.
    pub path: Path,
    /// State.
    pub state: State,
    /// Runs of this generation.
    pub attempts: u32,
    /// Runs that cost a try, since the last redrive.
    pub tries: u32,
    /// How often it was replayed.
    pub generation: u32,
    /// When it is due, if it waits.
    pub next_attempt_at: Option<UnixMicros>,
    /// The event that this one repeats under another id.
    pub twin_of: Option<String>,
    /// Why the last run failed, or why it finished without effect.
    pub last_error: Option<String>,
    /// When it came to rest.
    pub processed_at: Option<UnixMicros>,
    /// When retention emptied body and headers.
    pub pruned_at: Option<UnixMicros>,
    /// Length of the stored body.
    pub body_bytes: u64,
}

/// Everything about one event but its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDetail {
    /// What a list shows.
    pub summary: EventSummary,
    /// SHA-256 of the body as it came.
    pub body_sha256: [u8; 32],
    /// Headers as they came. They may hold secrets: whoever shows them masks those.
    pub headers: StoredHeaders,
    /// Its runs, oldest first; at most the latest 1,000.
    pub attempts: Vec<AttemptRecord>,
    /// What people did with it, oldest first; at most the latest 1,000.
    pub audit: Vec<AuditRecord>,
}

/// One run that came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Of which generation.
    pub generation: u32,
    /// Which run of it, from 1.
    pub attempt: u32,
    /// Begin.
    pub started_at: UnixMicros,
    /// End.
    pub finished_at: UnixMicros,
    /// `done`, `ignored`, `retry`, `dead`, `parked`, `failed` or `lost`.
    pub outcome: String,
    /// Why, if it did not take effect.
    pub error: Option<String>,
}

/// One thing that a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// When.
    pub at: UnixMicros,
    /// Who.
    pub actor: String,
    /// `replay`, `redrive`, `discard`, `pause` or `resume`.
    pub action: String,
    /// The generation that the event had afterwards.
    pub generation: Option<u32>,
    /// Why, in the person's words.
    pub detail: Option<String>,
}

/// A change that a person may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Run a finished event again, or a twin that nobody ran, under a new id for its target.
    Replay,
    /// Run a dead letter again, with all its tries.
    Redrive,
    /// Give a dead letter up for good.
    Discard,
}

impl Change {
    /// As the audit log says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Redrive => "redrive",
            Self::Discard => "discard",
        }
    }

    /// Whether it needs the body, which retention may have emptied.
    pub(crate) fn needs_body(self) -> bool {
        match self {
            Self::Replay | Self::Redrive => true,
            Self::Discard => false,
        }
    }

    /// The states that an event may be in. A change to many means the first, unless it names others of these.
    pub fn starts_from(self) -> &'static [State] {
        match self {
            Self::Replay => &[State::Done, State::Twin],
            Self::Redrive | Self::Discard => &[State::Dead],
        }
    }

    /// Those states in words.
    pub fn starts_from_in_words(self) -> String {
        let names: Vec<_> = self.starts_from().iter().map(|state| state.as_str()).collect();
        names.join(" or ")
    }
}

/// What became of a change to one event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Changed {
    /// Done and written down. The generation is the one that the event has now.
    Done {
        /// Its generation.
        generation: u32,
    },
    /// There is no such event.
    NotFound,
    /// It is in another state than the change starts from.
    WrongState(State),
    /// Retention has emptied its body: there is nothing to run.
    Pruned,
    /// It has another generation than the caller has seen: somebody was faster.
    OtherGeneration(u32),
}

/// A change to many events, one bounded step of it. Steps go from the oldest event to the newest, so a caller
/// repeats with `after` until there is no next, and may stop anywhere.
#[derive(Debug, Clone)]
pub struct Bulk {
    /// What to do.
    pub change: Change,
    /// With which events. Its `states` choose among those that the change starts from; if it names none, the first
    /// of these is meant.
    pub filter: Filter,
    /// Only events after this place.
    pub after: Option<Cursor>,
    /// At most so many, and never more than [`Bulk::most`].
    pub limit: u32,
    /// Change nothing; only count.
    pub dry_run: bool,
    /// The first becomes due so long after now…
    pub first_in: Duration,
    /// …and each next one so much later: the rate at which a target gets them.
    pub spacing: Duration,
}

impl Bulk {
    /// Events changed in one step, at most: few enough that it holds no lock for long.
    const CHANGED_MAX: u32 = 500;

    /// Events counted in one step of a dry run, at most.
    const COUNTED_MAX: u32 = 10_000;

    /// Events a second that become due unless somebody says otherwise. A target that was just mended should not
    /// fall over what piled up meanwhile.
    pub const RATE: u32 = 50;

    /// The states of the events that are meant; none, if the change starts from none of those that were named.
    pub(crate) fn states(&self) -> Vec<State> {
        let possible = self.change.starts_from();
        match self.filter.states.is_empty() {
            true => possible[..1].to_vec(),
            false => possible
                .iter()
                .copied()
                .filter(|state| self.filter.states.contains(state))
                .collect(),
        }
    }

    /// Events of one step, at most.
    pub fn most(dry_run: bool) -> u32 {
        if dry_run {
            Self::COUNTED_MAX
        } else {
            Self::CHANGED_MAX
        }
    }
}

/// What a step of a bulk change did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct BulkStep {
    /// Events changed; in a dry run, events that would be.
    pub events: u64,
    /// Where to go on; `None` when all were seen.
    pub next: Option<Cursor>,
}

/// A body as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredBody {
    /// The raw bytes.
    Raw(Bytes),
    /// Retention has emptied it.
    Pruned,
}

/// What is known about a target besides its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRecord {
    /// Its name.
    pub name: String,
    /// The pause, if it is paused.
    pub paused: Option<Pause>,
    /// Since when workers have found it away.
    pub down_since: Option<UnixMicros>,
}

/// A pause that a person made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub at: UnixMicros,
    /// By whom.
    pub by: String,
    /// Why.
    pub why: String,
}

/// Counts of one minute and one source, summed over replicas, by what was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinuteStats {
    /// Begin of the minute.
    pub minute: UnixMicros,
    /// Which source.
    pub source: String,
    /// Counts by name.
    pub counts: BTreeMap<String, u64>,
}

/// The ledger as people use it. A question that takes too long is [`LedgerError::TooSlow`], which says nothing
/// against the ledger. It has connections of its own, few and with longer limits, so that no search
/// takes one from the path.
#[async_trait]
pub trait Operations: Send + Sync + 'static {
    /// One page of at most `limit` events (and never more than 1,000), newest first, beginning after `after`.
    async fn list(&self, filter: &Filter, after: Option<&Cursor>, limit: u32)
    -> Result<Listing, LedgerError>;

    /// Everything about one event but its body.
    async fn event(&self, key: &EventKey) -> Result<Option<EventDetail>, LedgerError>;

    /// Its body.
    async fn body(&self, key: &EventKey) -> Result<Option<StoredBody>, LedgerError>;

    /// Changes one event, and writes it down. With `generation` only if it still has that one.
    async fn change(
        &self,
        key: &EventKey,
        change: Change,
        generation: Option<u32>,
        reason: &Reason,
    ) -> Result<Changed, LedgerError>;

    /// Changes many events, and writes each down; what was pruned or is no longer in the right state is left
    /// out.
    async fn change_many(&self, bulk: &Bulk, reason: &Reason) -> Result<BulkStep, LedgerError>;

    /// Targets that any worker has named, by name.
    async fn targets(&self) -> Result<Vec<TargetRecord>, LedgerError>;

    /// Pauses a target on all replicas, and writes it down. False if it was paused already.
    async fn pause(&self, target: &str, reason: &Reason) -> Result<bool, LedgerError>;

    /// Lifts a pause, and writes it down. False if it was not paused.
    async fn resume(&self, target: &str, reason: &Reason) -> Result<bool, LedgerError>;

    /// Counts per minute and source, oldest first: of minutes that begin at `since` or later and before
    /// `until`.
    async fn stats(
        &self,
        since: UnixMicros,
        until: UnixMicros,
        source: Option<&SourceName>,
    ) -> Result<Vec<MinuteStats>, LedgerError>;
}
