//! `/v1/dead-letters`: events that were given up, until a person runs them again or gives them up for good.

use actix_web::{HttpRequest, HttpResponse, get, post, web};
use hookgate_ledger::Change;

use super::change::{self, BulkRequest, BulkView, ChangeRequest, ChangeView};
use super::filter::DeadLettersQuery;
use super::input::{self, EventName, EventPath};
use super::problem::{Problem, Problems};
use super::{Admin, events};
use crate::view::ListingView;

/// Dead letters, newest first.
#[utoipa::path(
    tag = "dead letters",
    params(DeadLettersQuery),
    responses(
        (status = 200, description = "One page", body = ListingView),
        Problems,
    )
)]
#[get("/v1/dead-letters")]
pub(super) async fn list_dead_letters(
    request: HttpRequest,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let page = input::query::<DeadLettersQuery>(&request)?.page()?;
    events::listed(&admin, page).await
}

/// Runs a dead letter again, with all its tries.
#[utoipa::path(
    tag = "dead letters",
    params(EventName),
    request_body = ChangeRequest,
    responses(
        (status = 200, description = "It is queued", body = ChangeView),
        Problems,
    )
)]
#[post("/v1/dead-letters/{source}/{id}/redrive")]
pub(super) async fn redrive_dead_letter(
    path: EventPath,
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::one(
        &admin,
        path.0,
        Change::Redrive,
        input::body::<ChangeRequest>(payload).await?,
    )
    .await
}

/// Gives a dead letter up for good.
#[utoipa::path(
    tag = "dead letters",
    params(EventName),
    request_body = ChangeRequest,
    responses(
        (status = 200, description = "It is discarded", body = ChangeView),
        Problems,
    )
)]
#[post("/v1/dead-letters/{source}/{id}/discard")]
pub(super) async fn discard_dead_letter(
    path: EventPath,
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::one(
        &admin,
        path.0,
        Change::Discard,
        input::body::<ChangeRequest>(payload).await?,
    )
    .await
}

/// Runs many dead letters again, one step at a time.
#[utoipa::path(
    tag = "dead letters",
    request_body = BulkRequest,
    responses(
        (status = 200, description = "One step is done", body = BulkView),
        Problems,
    )
)]
#[post("/v1/dead-letters/redrive")]
pub(super) async fn redrive_dead_letters(
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::many(
        &admin,
        Change::Redrive,
        input::body::<BulkRequest>(payload).await?,
    )
    .await
}

/// Gives many dead letters up for good, one step at a time.
#[utoipa::path(
    tag = "dead letters",
    request_body = BulkRequest,
    responses(
        (status = 200, description = "One step is done", body = BulkView),
        Problems,
    )
)]
#[post("/v1/dead-letters/discard")]
pub(super) async fn discard_dead_letters(
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::many(
        &admin,
        Change::Discard,
        input::body::<BulkRequest>(payload).await?,
    )
    .await
}
