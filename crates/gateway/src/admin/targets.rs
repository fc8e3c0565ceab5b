//! `/v1/targets`: where events go, and the switch by which a person holds them back. Never an address or a
//! secret: names, and what is known about them.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, get, post, web};
use hookgate_ledger::TargetRecord;
use serde::Serialize;
use utoipa::ToSchema;

use super::Admin;
use super::change::ReasonRequest;
use super::input;
use super::problem::{Kind, Problem, Problems};
use crate::view::TargetView;

/// All configured targets.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TargetList {
    /// By name.
    targets: Vec<TargetItem>,
}

/// A target, and what is known about it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TargetItem {
    #[serde(flatten)]
    target: TargetView,
    /// The sources of this replica whose events it gets. None: it is known from another replica, or from
    /// earlier times.
    sources: Vec<String>,
}

/// What became of a pause.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SwitchView {
    /// The target's name.
    name: String,
    /// Whether it is paused now.
    paused: bool,
    /// Whether this request changed that.
    changed: bool,
}

/// All targets, with pauses and outages.
#[utoipa::path(
    tag = "targets",
    responses((status = 200, description = "The targets", body = TargetList), Problems)
)]
#[get("/v1/targets")]
pub(super) async fn list_targets(admin: web::Data<Admin>) -> Result<HttpResponse, Problem> {
    let known = admin
        .ask(|operations| async move { operations.targets().await })
        .await?;
    Ok(HttpResponse::Ok().json(TargetList {
        targets: items(&admin.targets, known),
    }))
}

/// Holds a target's events back, on all replicas.
#[utoipa::path(
    tag = "targets",
    params(("name" = String, Path, description = "The target's name")),
    request_body = ReasonRequest,
    responses((status = 200, description = "It is paused", body = SwitchView), Problems)
)]
#[post("/v1/targets/{name}/pause")]
pub(super) async fn pause_target(
    name: web::Path<String>,
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let reason = input::body::<ReasonRequest>(payload).await?.reason()?;
    let name = configured(&admin, name.into_inner())?;
    let target = name.clone();
    let changed = admin
        .ask(|operations| async move { operations.pause(&target, &reason).await })
        .await?;
    Ok(HttpResponse::Ok().json(SwitchView {
        name,
        paused: true,
        changed,
    }))
}

/// Lets a target's events go again, on all replicas.
#[utoipa::path(
    tag = "targets",
    params(("name" = String, Path, description = "The target's name")),
    request_body = ReasonRequest,
    responses((status = 200, description = "It is not paused", body = SwitchView), Problems)
)]
#[post("/v1/targets/{name}/resume")]
pub(super) async fn resume_target(
    name: web::Path<String>,
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let reason = input::body::<ReasonRequest>(payload).await?.reason()?;
    let name = configured(&admin, name.into_inner())?;
    let target = name.clone();
    let changed = admin
        .ask(|operations| async move { operations.resume(&target, &reason).await })
        .await?;
    Ok(HttpResponse::Ok().json(SwitchView {
        name,
        paused: false,
        changed,
    }))
}

/// A name that this replica is configured with: a pause of another would hold back nothing.
fn configured(admin: &Admin, name: String) -> Result<String, Problem> {
    if admin.targets.contains_key(&name) {
        return Ok(name);
    }
    let all: Vec<_> = admin.targets.keys().map(String::as_str).collect();
    let allowed = match all.as_slice() {
        [] => "nothing, since no target is configured".to_owned(),
        all => format!("one of {}", all.join(", ")),
    };
    let detail = "no target of this name is configured here";
    Err(Problem::new(Kind::UnknownTarget, detail).at("name", allowed))
}

/// The configured targets, and others that the ledger knows.
fn items(configured: &BTreeMap<String, Vec<String>>, known: Vec<TargetRecord>) -> Vec<TargetItem> {
    let ours = configured
        .keys()
        .map(|name| (name.clone(), unknown(name.clone())));
    let mut targets: BTreeMap<_, _> = ours.collect();
    targets.extend(known.into_iter().map(|record| (record.name.clone(), record)));
    let item = |(name, record): (String, TargetRecord)| TargetItem {
        target: record.into(),
        sources: configured.get(&name).cloned().unwrap_or_default(),
    };
    targets.into_iter().map(item).collect()
}

/// A target about which nothing is known.
fn unknown(name: String) -> TargetRecord {
    TargetRecord {
        name,
        paused: None,
        down_since: None,
    }
}
