//! The description of the API, collected from the routes themselves: what is not described cannot be reached,
//! and what is described is there.

use std::collections::BTreeSet;

use actix_web::{HttpRequest, HttpResponse, get, web};
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::auth;
use super::problem::{Kind, Problem, Problems};

/// What the document says beside its paths.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "hookgate admin API",
        description = "Search events, decide about them, hold targets back, and pull events. Every answer that is no success is a problem document (RFC 9457).",
    ),
    modifiers(&Tokens),
    security(("token" = [])),
)]
pub(super) struct Preface;

struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let mut bearer = Http::new(HttpAuthScheme::Bearer);
        bearer.description =
            Some("HOOKGATE_ADMIN_TOKEN; for /v1/consume also HOOKGATE_CONSUME_TOKEN".to_owned());
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// This document.
#[utoipa::path(
    tag = "api",
    responses((status = 200, description = "OpenAPI 3.1", body = Object), Problems)
)]
#[get("/v1/openapi.json")]
pub(super) async fn show_document(document: web::Data<Document>) -> HttpResponse {
    HttpResponse::Ok().json(document.get_ref())
}

/// What answers where no route does: the path is known with other methods, or not at all.
pub(super) async fn fallback(
    request: HttpRequest,
    document: web::Data<Document>,
) -> Result<HttpResponse, Problem> {
    let methods: BTreeSet<_> = document
        .paths
        .paths
        .iter()
        .filter(|(template, _)| fits(template, auth::routed(&request)))
        .flat_map(|(_, item)| {
            [("GET", &item.get), ("POST", &item.post)]
                .into_iter()
                .filter(|(_, operation)| operation.is_some())
                .map(|(method, _)| method)
        })
        .collect();
    match methods.is_empty() {
        false => Err(Problem::method(Vec::from_iter(methods).join(", "))),
        true => Err(Problem::new(
            Kind::NoSuchPath,
            "nothing is at this path; GET /v1/openapi.json lists what is, and ids are percent-encoded in paths",
        )),
    }
}

/// Whether a path is one of this template.
fn fits(template: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(found)) if wanted == found => {}
            (Some(wanted), Some(found)) if wanted.starts_with('{') && !found.is_empty() => {}
            _ => return false,
        }
    }
}
