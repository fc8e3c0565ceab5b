//! What people are shown of the ledger, as JSON: the command line and the admin API say the same in the same
//! words. Field names are a contract and stay. Times are RFC 3339 in UTC. No body, and of headers only those
//! that hold no secret.

mod headers;
pub mod knowledge;
pub mod moment;
pub mod place;
pub mod sealed;

use std::collections::BTreeMap;

use hookgate_ledger::{
    AttemptRecord, AuditRecord, EventDetail, EventSummary, Listing, MinuteStats, TargetRecord, UnixMicros,
};
use serde::Serialize;
use utoipa::ToSchema;

pub use headers::HeaderView;

/// One event, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EventView {
    /// Name of the source that received it.
    pub source: String,
    /// The provider's id of it.
    pub event_id: String,
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
    #[schema(format = DateTime)]
    pub provider_time: Option<String>,
    /// When it came.
    #[schema(format = DateTime)]
    pub received_at: String,
    /// `inbox` or `forward`.
    pub path: String,
    /// `queued`, `running`, `done`, `dead`, `discarded`, `parked`, `twin` or `failed`.
    pub state: String,
    /// Runs of this generation.
    pub attempts: u32,
    /// Runs that cost a try, since the last redrive.
    pub tries: u32,
    /// How often it was replayed.
    pub generation: u32,
    /// When it is due, if it waits.
    #[schema(format = DateTime)]
    pub next_attempt_at: Option<String>,
    /// The event that this one repeats under another id.
    pub twin_of: Option<String>,
    /// Why the last run failed, or why it finished without effect.
    pub last_error: Option<String>,
    /// When it came to rest.
    #[schema(format = DateTime)]
    pub processed_at: Option<String>,
    /// When retention emptied its body.
    #[schema(format = DateTime)]
    pub pruned_at: Option<String>,
    /// Length of the stored body.
    pub body_bytes: u64,
}

impl From<EventSummary> for EventView {
    fn from(event: EventSummary) -> Self {
        let shown = |moment: Option<UnixMicros>| moment.map(moment::show);
        Self {
            source: event.key.source.to_string(),
            event_id: event.key.id.as_str().to_owned(),
            provider: event.provider,
            account: event.account,
            mode: event.mode,
            event_type: event.event_type,
            object_id: event.object_id,
            provider_time: shown(event.provider_time),
            received_at: moment::show(event.received_at),
            path: event.path.as_str().to_owned(),
            state: event.state.as_str().to_owned(),
            attempts: event.attempts,
            tries: event.tries,
            generation: event.generation,
            next_attempt_at: shown(event.next_attempt_at),
            twin_of: event.twin_of,
            last_error: event.last_error,
            processed_at: shown(event.processed_at),
            pruned_at: shown(event.pruned_at),
            body_bytes: event.body_bytes,
        }
    }
}

/// One page of events, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ListingView {
    /// The events.
    pub events: Vec<EventView>,
    /// Given back as `cursor`, it brings the next page. Null: there is no more.
    pub next: Option<String>,
}

impl From<Listing> for ListingView {
    fn from(listing: Listing) -> Self {
        Self {
            events: listing.events.into_iter().map(EventView::from).collect(),
            next: listing.next.as_ref().map(place::write),
        }
    }
}

/// Everything about one event but its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EventDetailView {
    /// What a list shows.
    #[serde(flatten)]
    pub event: EventView,
    /// SHA-256 of the body as it came, in hexadecimal.
    pub body_sha256: String,
    /// The headers that were kept; values that may be secret are masked.
    pub headers: Vec<HeaderView>,
    /// Its runs, oldest first.
    pub attempt_log: Vec<AttemptView>,
    /// What people did with it, oldest first.
    pub audit_log: Vec<AuditView>,
}

impl From<EventDetail> for EventDetailView {
    fn from(detail: EventDetail) -> Self {
        Self {
            event: detail.summary.into(),
            body_sha256: hex(&detail.body_sha256),
            headers: detail.headers.into_iter().map(HeaderView::masked).collect(),
            attempt_log: detail.attempts.into_iter().map(AttemptView::from).collect(),
            audit_log: detail.audit.into_iter().map(AuditView::from).collect(),
        }
    }
}

/// One run that came to an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttemptView {
    /// Of which generation.
    pub generation: u32,
    /// Which run of it, from 1.
    pub attempt: u32,
    /// Begin.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// End.
    #[schema(format = DateTime)]
    pub finished_at: String,
    /// `done`, `ignored`, `retry`, `dead`, `parked`, `failed` or `lost`.
    pub outcome: String,
    /// Why, if it did not take effect.
    pub error: Option<String>,
}

impl From<AttemptRecord> for AttemptView {
    fn from(run: AttemptRecord) -> Self {
        Self {
            generation: run.generation,
            attempt: run.attempt,
            started_at: moment::show(run.started_at),
            finished_at: moment::show(run.finished_at),
            outcome: run.outcome,
            error: run.error,
        }
    }
}

/// One thing that a person did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditView {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// Who.
    pub actor: String,
    /// `replay`, `redrive` or `discard`.
    pub action: String,
    /// The generation that the event had afterwards.
    pub generation: Option<u32>,
    /// Why, in the person's words.
    pub detail: Option<String>,
}

impl From<AuditRecord> for AuditView {
    fn from(record: AuditRecord) -> Self {
        Self {
            at: moment::show(record.at),
            actor: record.actor,
            action: record.action,
            generation: record.generation,
            detail: record.detail,
        }
    }
}

/// What is known about a target besides its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TargetView {
    /// Its name.
    pub name: String,
    /// Whether a person paused it.
    pub paused: bool,
    /// Since when.
    #[schema(format = DateTime)]
    pub paused_at: Option<String>,
    /// By whom.
    pub paused_by: Option<String>,
    /// Why.
    pub paused_why: Option<String>,
    /// Since when workers have found it away.
    #[schema(format = DateTime)]
    pub down_since: Option<String>,
}

impl From<TargetRecord> for TargetView {
    fn from(target: TargetRecord) -> Self {
        let pause = target.paused;
        Self {
            name: target.name,
            paused: pause.is_some(),
            paused_at: pause.as_ref().map(|pause| moment::show(pause.at)),
            paused_by: pause.as_ref().map(|pause| pause.by.clone()),
            paused_why: pause.map(|pause| pause.why),
            down_since: target.down_since.map(moment::show),
        }
    }
}

/// Counts of one minute and source, summed over replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MinuteView {
    /// Begin of the minute.
    #[schema(format = DateTime)]
    pub minute: String,
    /// Which source.
    pub source: String,
    /// Counts by name.
    pub counts: BTreeMap<String, u64>,
}

impl From<MinuteStats> for MinuteView {
    fn from(stats: MinuteStats) -> Self {
        Self {
            minute: moment::show(stats.minute),
            source: stats.source,
            counts: stats.counts,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
