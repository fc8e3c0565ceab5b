//! `/v1/stats`: what happened in each minute, summed over replicas.

use actix_web::{HttpRequest, HttpResponse, get, web};
use hookgate_ledger::UnixMicros;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Admin;
use super::filter;
use super::input;
use super::problem::{Problem, Problems};
use crate::clock;
use crate::view::{MinuteView, moment};

/// The span that is shown unless the caller says otherwise, and at most: minutes of a day fit a page.
const SPAN_MICROS: i64 = 3_600_000_000;
const SPAN_MICROS_MAX: i64 = 24 * SPAN_MICROS;

/// Which minutes are meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StatsQuery {
    /// Minutes that begin at this time or later, as RFC 3339 or an age such as `2h`; an hour before `until` by default.
    since: Option<String>,
    /// Minutes that begin before this time , as RFC 3339 or an age such as `2h`; now by default. At most 24 hours after `since`.
    until: Option<String>,
    /// Of this source only.
    source: Option<String>,
}

/// Counts per minute and source.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatsView {
    /// Begin of the span.
    #[schema(format = DateTime)]
    since: String,
    /// End of the span.
    #[schema(format = DateTime)]
    until: String,
    /// Oldest first. A minute in which nothing happened is left out.
    minutes: Vec<MinuteView>,
}

/// What happened in each minute, summed over replicas; the current minute is not complete yet.
#[utoipa::path(
    tag = "stats",
    params(StatsQuery),
    responses((status = 200, description = "Counts per minute and source", body = StatsView), Problems)
)]
#[get("/v1/stats")]
pub(super) async fn show_stats(
    request: HttpRequest,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let query = input::query::<StatsQuery>(&request)?;
    let source = filter::source("source", query.source.as_deref())?;
    let (since, until) = span(&query)?;
    let minutes = admin
        .ask(|operations| async move { operations.stats(since, until, source.as_ref()).await })
        .await?;
    Ok(HttpResponse::Ok().json(StatsView {
        since: moment::show(since),
        until: moment::show(until),
        minutes: minutes.into_iter().map(MinuteView::from).collect(),
    }))
}

fn span(query: &StatsQuery) -> Result<(UnixMicros, UnixMicros), Problem> {
    let now = clock::unix_micros();
    let since = filter::moment("since", query.since.as_deref(), now)?;
    let until = filter::moment("until", query.until.as_deref(), now)?;
    let until = until.unwrap_or(now).0;
    let since = since.map_or(until.saturating_sub(SPAN_MICROS), |since| since.0);
    match until.saturating_sub(since) {
        1..=SPAN_MICROS_MAX => Ok((UnixMicros(since), UnixMicros(until))),
        _ => Err(Problem::value("until", "a time after since, by at most 24 hours")),
    }
}
