//! What people decide: replay, redrive, discard, of one event or of many. Who and why are asked for each time
//! and written down with what was done.

use std::time::Duration;

use actix_web::HttpResponse;
use hookgate_ledger::{Bulk, Change, Changed, Reason};
use hookgate_webhook::EventKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Admin;
use super::cursor::{self, Place};
use super::filter::{self, BulkFilter};
use super::problem::{Kind, Problem};
use crate::clock;

/// Events a second that become due in a bulk change, at least and at most.
const RATE_MIN: f64 = 0.01;
const RATE_MAX: f64 = 10_000.0;

/// Who asks, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReasonRequest {
    /// Who asks, 1 to 100 characters; written down as `api:` and this.
    #[schema(min_length = 1, max_length = 100)]
    who: String,
    /// Why, 1 to 500 characters; written down.
    #[schema(min_length = 1, max_length = 500)]
    why: String,
}

/// A change to one event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRequest {
    /// Who asks, 1 to 100 characters; written down as `api:` and this.
    #[schema(min_length = 1, max_length = 100)]
    who: String,
    /// Why, 1 to 500 characters; written down.
    #[schema(min_length = 1, max_length = 500)]
    why: String,
    /// The generation that the caller has seen: with another one nothing is changed.
    generation: Option<u32>,
}

/// A replay of one event.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayRequest {
    /// Who asks, 1 to 100 characters; written down as `api:` and this.
    #[schema(min_length = 1, max_length = 100)]
    who: String,
    /// Why, 1 to 500 characters; written down.
    #[schema(min_length = 1, max_length = 500)]
    why: String,
    /// The generation that the caller has seen, as `GET` of the event shows it. With another one nothing is
    /// replayed: so who asks twice, or two who ask at once, replay it once.
    #[schema(required = true, value_type = u32)]
    generation: Option<u32>,
}

/// What a change did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangeView {
    /// The endpoint.
    source: String,
    /// The provider's id.
    event_id: String,
    /// What was done: `replay`, `redrive` or `discard`.
    change: &'static str,
    /// The generation that the event has now.
    generation: u32,
}

/// One step of a change to many events, oldest first. Repeat with `cursor` until `next` is null.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkRequest {
    /// Which events, by at least one of its fields. Either this or `all`.
    filter: Option<BulkFilter>,
    /// True: every event that is done, for a replay, or dead. Either this or `filter`.
    all: Option<bool>,
    /// Who asks, 1 to 100 characters; written down as `api:` and this.
    #[schema(min_length = 1, max_length = 100)]
    who: String,
    /// Why, 1 to 500 characters; written down.
    #[schema(min_length = 1, max_length = 500)]
    why: String,
    /// True: change nothing, only count.
    dry_run: Option<bool>,
    /// Events a second that become due, from 0.01 to 10,000; 50 by default. Not for discard.
    #[schema(minimum = 0.01, maximum = 10000)]
    rate: Option<f64>,
    /// Events of this step: from 1 to 500, and in a dry run to 10,000; by default as many as may be.
    #[schema(minimum = 1, maximum = 10000)]
    limit: Option<u32>,
    /// Where to go on: `next` of the step before.
    cursor: Option<String>,
}

/// What a step of a bulk change did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BulkView {
    /// Events changed; in a dry run, events that would be.
    events: u64,
    /// The cursor of the next step; null: all were seen.
    next: Option<String>,
}

impl ReasonRequest {
    /// What is written down.
    pub(super) fn reason(self) -> Result<Reason, Problem> {
        reason(&self.who, &self.why)
    }
}

/// Replays one event, of the generation that was seen.
pub(super) async fn replay(
    admin: &Admin,
    key: EventKey,
    request: ReplayRequest,
) -> Result<HttpResponse, Problem> {
    let ReplayRequest { who, why, generation } = request;
    let reason = reason(&who, &why)?;
    let generation = generation.ok_or_else(|| {
        Problem::value(
            "generation",
            "the event's `generation`, as GET /v1/events/{source}/{id} shows it",
        )
    })?;
    apply(admin, key, Change::Replay, Some(generation), reason).await
}

/// Changes one event.
pub(super) async fn one(
    admin: &Admin,
    key: EventKey,
    change: Change,
    request: ChangeRequest,
) -> Result<HttpResponse, Problem> {
    let reason = reason(&request.who, &request.why)?;
    apply(admin, key, change, request.generation, reason).await
}

async fn apply(
    admin: &Admin,
    key: EventKey,
    change: Change,
    generation: Option<u32>,
    reason: Reason,
) -> Result<HttpResponse, Problem> {
    let asked = key.clone();
    let changed = admin
        .ask(|operations| async move { operations.change(&asked, change, generation, &reason).await })
        .await?;
    match changed {
        Changed::Done { generation } => Ok(HttpResponse::Ok().json(ChangeView {
            source: key.source.to_string(),
            event_id: key.id.to_string(),
            change: change.as_str(),
            generation,
        })),
        Changed::NotFound => Err(unknown_event()),
        Changed::WrongState(state) => Err(Problem::wrong_state(
            state,
            &change.starts_from_in_words(),
            past(change),
        )),
        Changed::Pruned => Err(pruned()),
        Changed::OtherGeneration(generation) => Err(Problem::new(
            Kind::OtherGeneration,
            format!("the event has generation {generation} by now: somebody was faster; look at it again"),
        )
        .at("generation", generation.to_string())),
    }
}

/// Makes one step of a change to many events.
pub(super) async fn many(
    admin: &Admin,
    change: Change,
    request: BulkRequest,
) -> Result<HttpResponse, Problem> {
    let reason = reason(&request.who, &request.why)?;
    let spacing = spacing(change, request.rate)?;
    let now = u64::try_from(clock::since_epoch().as_millis()).unwrap_or(u64::MAX);
    let read = |text: &str| cursor::read(text, now);
    let place = filter::cursor(request.cursor.as_deref(), read, "next")?;
    let begin = place.as_ref().map_or(now, |place| place.due.max(now));
    let dry_run = request.dry_run.unwrap_or_default();
    let bulk = Bulk {
        change,
        filter: chosen(change, request.filter, request.all)?,
        after: place.map(|place| place.after),
        limit: step(request.limit, dry_run)?,
        dry_run,
        first_in: Duration::from_millis(begin - now),
        spacing,
    };
    let step = admin
        .ask(|operations| async move { operations.change_many(&bulk, &reason).await })
        .await?;
    let took = spacing.mul_f64(step.events as f64).as_millis();
    let due = begin.saturating_add(u64::try_from(took).unwrap_or(u64::MAX));
    let next = step.next.map(|after| cursor::write(&Place { after, due }));
    Ok(HttpResponse::Ok().json(BulkView {
        events: step.events,
        next,
    }))
}

/// There is no such event.
pub(super) fn unknown_event() -> Problem {
    Problem::new(
        Kind::UnknownEvent,
        "no event of this source has this id; percent-encode the id in the path",
    )
}

/// Retention has emptied the event.
pub(super) fn pruned() -> Problem {
    Problem::new(
        Kind::PayloadPruned,
        "retention has emptied this event's body: there is nothing to run; HOOKGATE_RETENTION_BODY says how long bodies are kept",
    )
}

fn past(change: Change) -> &'static str {
    match change {
        Change::Replay => "replayed",
        Change::Redrive => "redriven",
        Change::Discard => "discarded",
    }
}

fn reason(who: &str, why: &str) -> Result<Reason, Problem> {
    Reason::read("api", who, why).map_err(|bad| Problem::value(bad.field, bad.to_string()))
}

fn chosen(
    change: Change,
    filter: Option<BulkFilter>,
    all: Option<bool>,
) -> Result<hookgate_ledger::Filter, Problem> {
    match (filter, all) {
        (Some(filter), None | Some(false)) if filter != BulkFilter::default() => {
            let states = filter.states(change.starts_from())?;
            filter.read("filter.", states)
        }
        (None, Some(true)) => BulkFilter::default().read("", Vec::new()),
        _ => Err(Problem::value(
            "filter",
            "a filter that names something, or \"all\": true for every event",
        )),
    }
}

fn step(limit: Option<u32>, dry_run: bool) -> Result<u32, Problem> {
    let most = Bulk::most(dry_run);
    match limit.unwrap_or(most) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Problem::value(
            "limit",
            format!("a whole number from 1 to {most}"),
        )),
    }
}

fn spacing(change: Change, rate: Option<f64>) -> Result<Duration, Problem> {
    match (change, rate) {
        (Change::Discard, Some(_)) => Err(Problem::value(
            "rate",
            "to be left out: what is discarded is not run",
        )),
        (Change::Discard, None) => Ok(Duration::ZERO),
        (Change::Replay | Change::Redrive, rate) => match rate.unwrap_or_else(|| Bulk::RATE.into()) {
            rate if (RATE_MIN..=RATE_MAX).contains(&rate) => Ok(Duration::from_secs_f64(rate.recip())),
            _ => Err(Problem::value(
                "rate",
                format!("events a second from {RATE_MIN} to {RATE_MAX}"),
            )),
        },
    }
}
