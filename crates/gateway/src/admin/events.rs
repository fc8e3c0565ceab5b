//! `/v1/events`: search, one event, its body, and replay of what is done or was kept as a twin.

use actix_web::http::header::{CONTENT_DISPOSITION, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse, get, post, web};
use hookgate_ledger::{Change, StoredBody};

use super::Admin;
use super::change::{self, BulkRequest, BulkView, ChangeView, ReplayRequest};
use super::filter::{EventsQuery, Page};
use super::input::{self, EventName, EventPath};
use super::problem::{Problem, Problems};
use crate::view::{EventDetailView, ListingView};

/// Events, newest first.
#[utoipa::path(
    tag = "events",
    params(EventsQuery),
    responses(
        (status = 200, description = "One page", body = ListingView),
        Problems,
    )
)]
#[get("/v1/events")]
pub(super) async fn list_events(
    request: HttpRequest,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let page = input::query::<EventsQuery>(&request)?.page()?;
    listed(&admin, page).await
}

/// Answers one page.
pub(super) async fn listed(admin: &Admin, page: Page) -> Result<HttpResponse, Problem> {
    let listing = admin
        .ask(|operations| async move {
            operations
                .list(&page.filter, page.after.as_ref(), page.limit)
                .await
        })
        .await?;
    Ok(HttpResponse::Ok().json(ListingView::from(listing)))
}

/// One event with its headers, its runs, and what people did with it. Headers that may open something are
/// masked.
#[utoipa::path(
    tag = "events",
    params(EventName),
    responses(
        (status = 200, description = "The event", body = EventDetailView),
        Problems,
    )
)]
#[get("/v1/events/{source}/{id}")]
pub(super) async fn show_event(path: EventPath, admin: web::Data<Admin>) -> Result<HttpResponse, Problem> {
    let event = admin
        .ask(|operations| async move { operations.event(&path.0).await })
        .await?;
    let event = event.ok_or_else(change::unknown_event)?;
    Ok(HttpResponse::Ok().json(EventDetailView::from(event)))
}

/// The body as it came, byte for byte.
#[utoipa::path(
    tag = "events",
    params(EventName),
    responses(
        (status = 200, description = "The raw bytes", body = Vec<u8>, content_type = "application/octet-stream"),
        Problems,
    )
)]
#[get("/v1/events/{source}/{id}/body")]
pub(super) async fn download_body(path: EventPath, admin: web::Data<Admin>) -> Result<HttpResponse, Problem> {
    let body = admin
        .ask(|operations| async move { operations.body(&path.0).await })
        .await?;
    match body.ok_or_else(change::unknown_event)? {
        StoredBody::Pruned => Err(change::pruned()),
        // Somebody else wrote these bytes: no browser is to show or run them.
        StoredBody::Raw(bytes) => Ok(HttpResponse::Ok()
            .content_type("application/octet-stream")
            .insert_header((CONTENT_DISPOSITION, r#"attachment; filename="body.bin""#))
            .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
            .body(bytes)),
    }
}

/// Runs a finished event again, or one that was kept as a twin, under a new id for its target.
#[utoipa::path(
    tag = "events",
    params(EventName),
    request_body = ReplayRequest,
    responses(
        (status = 200, description = "It is queued", body = ChangeView),
        Problems,
    )
)]
#[post("/v1/events/{source}/{id}/replay")]
pub(super) async fn replay_event(
    path: EventPath,
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::replay(&admin, path.0, input::body::<ReplayRequest>(payload).await?).await
}

/// Runs many finished events again, one step at a time; twins only if the filter's `state` names them.
#[utoipa::path(
    tag = "events",
    request_body = BulkRequest,
    responses(
        (status = 200, description = "One step is done", body = BulkView),
        Problems,
    )
)]
#[post("/v1/events/replay")]
pub(super) async fn replay_events(
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    change::many(&admin, Change::Replay, input::body::<BulkRequest>(payload).await?).await
}
