//! Probes and metrics. Alive and ready are different questions; a store that is away
//! makes a replica degraded, not unready, because 503 with Retry-After beats a balancer without backends.

use std::sync::atomic::Ordering;

use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpResponse, Route, guard, web};
use serde::Serialize;

use super::Admin;
use super::problem::Problem;

#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    claims: &'static str,
    ledger: &'static str,
}

/// The routes of probes and metrics, which need no token.
pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/healthz", looking().to(healthz))
        .route("/healthz", web::to(refuse))
        .route("/readyz", looking().to(readyz))
        .route("/readyz", web::to(refuse))
        .route("/metrics", looking().to(metrics))
        .route("/metrics", web::to(refuse));
}

/// Some probes ask for the head alone.
fn looking() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// What answers to other methods.
async fn refuse() -> Result<HttpResponse, Problem> {
    Err(Problem::method("GET, HEAD".to_owned()))
}

async fn healthz() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(r#"{"status":"alive"}"#)
}

async fn readyz(admin: web::Data<Admin>) -> HttpResponse {
    let claims = admin.stores.claims.as_ref().map(|claims| claims.is_up());
    let ledger = admin.stores.ledger.as_ref().map(|ledger| ledger.is_up());
    let ready = admin.ready.load(Ordering::Acquire);
    let status = match (ready, claims == Some(false) || ledger == Some(false)) {
        (false, _) => "not ready",
        (true, true) => "degraded",
        (true, false) => "ready",
    };
    let mut answer = if ready {
        HttpResponse::Ok()
    } else {
        HttpResponse::ServiceUnavailable()
    };
    answer.json(Readiness {
        status,
        claims: word(claims),
        ledger: word(ledger),
    })
}

fn word(up: Option<bool>) -> &'static str {
    match up {
        None => "none",
        Some(true) => "up",
        Some(false) => "down",
    }
}

async fn metrics(admin: web::Data<Admin>) -> HttpResponse {
    match admin.metrics.render() {
        Ok(text) => HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"))
            .body(text),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be rendered");
            HttpResponse::InternalServerError().finish()
        }
    }
}
