//! `POST /v1/consume`: events for consumers that cannot be called. A batch is leased to whoever asks; with
//! `wait` the answer waits until there is something to give. The ledger lets nobody else have a leased event
//! until its lease ends, and then it comes again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_web::{HttpResponse, post, web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate_ledger::Job;
use hookgate_webhook::SourceName;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::input::in_time;
use super::problem::{Kind, Problem, Problems};
use super::pull::{Pull, Want};
use super::{Admin, input, lease};
use crate::target::target_id;
use crate::view::HeaderView;

/// Events of one batch, unless the consumer says otherwise, and at most.
const LIMIT: u32 = 10;
const LIMIT_MAX: u32 = 100;

/// Sources of one request at most.
const SOURCES_MAX: usize = 100;

/// How long a batch is leased, unless the consumer says otherwise.
const LEASE: Duration = Duration::from_secs(30);

/// The shortest lease: an answer has to reach the consumer, and its settlement us.
pub(super) const LEASE_MIN: Duration = Duration::from_secs(1);

/// The longest lease: so long an event waits for nobody if its consumer died.
pub(super) const LEASE_MAX: Duration = Duration::from_hours(1);

/// The longest wait for something to give: shorter than what most proxies wait for an answer.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// What a consumer wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumeRequest {
    /// Events of these sources; each is configured with `consumer = "pull"`.
    #[schema(min_items = 1, max_items = 100)]
    sources: Vec<String>,
    /// At most so many events, from 1 to 100; 10 by default.
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// How long they are leased, from `1s` to `1h`; `30s` by default.
    #[schema(example = "30s")]
    lease: Option<String>,
    /// How long to wait for the first event, up to `60s`; by default not at all.
    #[schema(example = "20s")]
    wait: Option<String>,
}

/// A leased batch; empty if nothing was due in time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Batch {
    /// The events, oldest due first.
    items: Vec<Item>,
}

/// One leased event.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Item {
    /// The right to settle it: opaque, for `/v1/consume/settle`.
    lease: String,
    /// The endpoint it came to.
    source: String,
    /// The provider's id.
    event_id: String,
    /// The id by which a consumer may deduplicate: stable over tries, new with each replay.
    webhook_id: String,
    /// The same, as the header that targets get.
    idempotency_key: String,
    /// The provider's type.
    event_type: Option<String>,
    /// Which run of the event this is, from 1; only rises: a fence.
    attempt: u32,
    /// How often it was replayed.
    generation: u32,
    /// Tries used up, with this one.
    tries: u32,
    /// The provider's headers; what may open something is masked.
    headers: Vec<HeaderView>,
    /// The raw body, in Base64.
    #[schema(content_encoding = "base64")]
    body_base64: String,
}

/// Leases events that are due, and waits for some if the consumer wants to.
#[utoipa::path(
    tag = "consume",
    request_body = ConsumeRequest,
    responses((status = 200, description = "A leased batch", body = Batch), Problems)
)]
#[post("/v1/consume")]
pub(super) async fn consume_events(
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let request = input::body::<ConsumeRequest>(payload).await?;
    let pull = admin.pull.clone().ok_or_else(super::no_ledger)?;
    let want = want(&pull, &request)?;
    let (answer, batch) = oneshot::channel();
    pull.begin(want, answer)?;
    let jobs = batch
        .await
        .map_err(|_| Problem::new(Kind::Unavailable, "the batch could not be leased; ask again"))??;
    Ok(HttpResponse::Ok().json(Batch {
        items: jobs.into_iter().map(Item::from).collect(),
    }))
}

fn want(pull: &Pull, request: &ConsumeRequest) -> Result<Want, Problem> {
    let limit = request.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::value(
            "limit",
            format!("a whole number from 1 to {LIMIT_MAX}"),
        ));
    }
    let sources: BTreeSet<_> = request
        .sources
        .iter()
        .map(|name| known(name, &pull.sources))
        .collect::<Result<_, _>>()?;
    if sources.is_empty() || request.sources.len() > SOURCES_MAX {
        return Err(Problem::value(
            "sources",
            format!("1 to {SOURCES_MAX} names of sources"),
        ));
    }
    Ok(Want {
        sources: sources.into_iter().collect(),
        limit,
        lease: in_time("lease", request.lease.as_deref(), LEASE_MIN..=LEASE_MAX)?.unwrap_or(LEASE),
        wait: in_time("wait", request.wait.as_deref(), Duration::ZERO..=WAIT_MAX)?.unwrap_or_default(),
    })
}

/// A source whose events are pulled. Those of others belong to somebody else.
fn known(name: &str, pulled: &BTreeMap<SourceName, Duration>) -> Result<SourceName, Problem> {
    let found = pulled.keys().find(|source| source.as_str() == name);
    found.cloned().ok_or_else(|| {
        let all: Vec<_> = pulled.keys().map(SourceName::as_str).collect();
        let allowed = match all.as_slice() {
            [] => "nothing, since no source has consumer = \"pull\"".to_owned(),
            all => format!("the sources with consumer = \"pull\": {}", all.join(", ")),
        };
        Problem::value("sources", allowed)
    })
}

impl From<Job> for Item {
    fn from(job: Job) -> Self {
        let id = target_id(&job.lease.key, job.lease.generation);
        Self {
            lease: lease::write(&job),
            source: job.lease.key.source.to_string(),
            event_id: job.lease.key.id.to_string(),
            webhook_id: id.clone(),
            idempotency_key: id,
            event_type: job.event_type,
            attempt: job.lease.attempt,
            generation: job.lease.generation,
            tries: job.tries,
            headers: job.headers.into_iter().map(HeaderView::masked).collect(),
            body_base64: STANDARD.encode(&job.body),
        }
    }
}
