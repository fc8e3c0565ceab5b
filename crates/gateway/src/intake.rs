//! The public listener's one route: from an HTTP request to a delivery, within limits of size and time, and
//! from an outcome to an answer, a count and one log line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use hookgate_signature::{Delivery, Headers};
use hookgate_webhook::UrlUse;

use crate::assembly::Sources;
use crate::body::Bodies;
use crate::config::Config;
use crate::identity::Aside;
use crate::metrics::{UNKNOWN_SOURCE, observe};
use crate::receiver::{Receipt, Received, Receiver, Source};
use crate::rejection::{self, Refused};
use crate::unread;

/// Returned with every answer, and taken from the balancer if it sends a plausible one.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// What the public listener needs.
pub struct Intake {
    /// The path.
    pub receiver: Arc<Receiver>,
    /// Endpoints by name.
    pub sources: Sources,
    /// Bodies in hand.
    pub bodies: Bodies,
    /// Set once the gateway shuts down.
    pub draining: AtomicBool,
}

/// `POST /webhooks/{source}`.
pub async fn webhook(
    request: HttpRequest,
    mut payload: web::Payload,
    intake: web::Data<Intake>,
) -> HttpResponse {
    let started = Instant::now();
    let source = intake.sources.get(request.match_info().query("source"));
    let result = intake.take(&request, source, &mut payload).await;
    let provider = source.map(|source| source.provider);
    let mut answer = match (&result, provider) {
        (Ok(Receipt::Events(received)), Some(provider)) => rejection::respond(provider, received),
        (Ok(Receipt::Handshake(answer)), Some(_)) => rejection::handshake(answer),
        (Err(refused), provider) => refused.respond(provider),
        (Ok(_), None) => Refused::UnknownSource.respond(None),
    };
    let request_id = request_id(&request);
    answer.headers_mut().insert(REQUEST_ID, request_id.clone());
    if intake.draining.load(Ordering::Relaxed) {
        answer
            .head_mut()
            .set_connection_type(actix_web::http::ConnectionType::Close);
    }
    let line = Line {
        source,
        status: answer.status(),
        request_id: &request_id,
        took: started.elapsed(),
    };
    intake.count(&line, &result);
    match result {
        Err(refused) if refused.leaves_body_unread() => unread::closing(answer, payload),
        Ok(_) | Err(_) => answer,
    }
}

/// Everything that is not the route.
pub async fn elsewhere(
    request: HttpRequest,
    payload: web::Payload,
    intake: web::Data<Intake>,
) -> HttpResponse {
    let mut answer = Refused::UnknownSource.respond(None);
    let request_id = request_id(&request);
    answer.headers_mut().insert(REQUEST_ID, request_id.clone());
    let line = Line {
        source: None,
        status: answer.status(),
        request_id: &request_id,
        took: Duration::ZERO,
    };
    intake.count(&line, &Err(Refused::UnknownSource));
    unread::closing(answer, payload)
}

/// What the counters and the log line say of an answer.
struct Line<'a> {
    source: Option<&'a Arc<Source>>,
    status: StatusCode,
    request_id: &'a HeaderValue,
    took: Duration,
}

impl Intake {
    /// Takes deliveries for these sources.
    pub fn new(config: &Config, receiver: Arc<Receiver>, sources: Sources) -> Self {
        let bodies = Bodies::new(config.client.request_timeout);
        Self {
            receiver,
            sources,
            bodies,
            draining: AtomicBool::new(false),
        }
    }

    async fn take(
        &self,
        request: &HttpRequest,
        source: Option<&Arc<Source>>,
        payload: &mut web::Payload,
    ) -> Result<Receipt, Refused> {
        let source = source.ok_or(Refused::UnknownSource)?;
        if request.method() != Method::POST {
            return Err(Refused::MethodNotAllowed);
        }
        // Before the body, which may take its time: an exchange of secrets meanwhile refuses nothing.
        let keys = source.keyring.valid();
        let body = self.bodies.read(request, payload, source.body_bytes_max).await?;
        let headers: Headers<'_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let signed = source.provider.knowledge().url != UrlUse::Unused;
        let url = signed.then(|| source.address.url(headers.text("host"), request.uri().query()));
        self.receiver
            .receive(
                source,
                &keys,
                Delivery {
                    method: "POST",
                    url: url.as_deref(),
                    headers,
                    body: body.bytes.clone(),
                },
            )
            .await
    }

    /// Counts and logs one answer.
    fn count(&self, line: &Line<'_>, result: &Result<Receipt, Refused>) {
        let metrics = &self.receiver.metrics;
        let source = line.source.map_or(UNKNOWN_SOURCE, |source| source.name.as_str());
        metrics
            .requests
            .with_label_values(&[source, line.status.as_str()])
            .inc();
        if line.source.is_some() {
            observe(&metrics.delivery_seconds.with_label_values(&[source]), line.took);
        }
        match result {
            // No outcome is counted where there was no event.
            Ok(Receipt::Handshake(_)) => {
                metrics.handshakes.with_label_values(&[source]).inc();
                line.log(source, None, "handshake", "");
            }
            Ok(Receipt::Events(received)) if received.is_empty() => line.log(source, None, "empty", ""),
            Ok(Receipt::Events(received)) => received.iter().for_each(|one| {
                let reason = one.aside.map_or("", Aside::reason);
                line.log(source, Some(one), one.handled.outcome(), reason);
            }),
            Err(refused) => {
                metrics
                    .deliveries
                    .with_label_values(&[source, refused.outcome()])
                    .inc();
                if refused.outcome() == "refused" {
                    metrics
                        .refusals
                        .with_label_values(&[source, refused.reason()])
                        .inc();
                }
                line.log(source, None, refused.outcome(), refused.reason());
            }
        }
    }
}

impl Line<'_> {
    /// One line a delivery. Never a body, a header, a path or an address: only configured names, verified
    /// ids and fixed words.
    fn log(&self, source: &str, received: Option<&Received>, outcome: &str, reason: &str) {
        let key = received.map_or_else(|| source.to_owned(), |one| one.key.to_string());
        let separator = if reason.is_empty() { "" } else { " " };
        tracing::info!(
            target: "hookgate::delivery",
            source,
            provider = self.source.map_or("", |source| source.provider.name()),
            event.id = received.map_or("", Received::id),
            outcome,
            reason,
            status = self.status.as_u16(),
            duration_ms = self.took.as_millis() as u64,
            request.id = self.request_id.to_str().unwrap_or_default(),
            "{key} {outcome}{separator}{reason}"
        );
    }
}

/// The balancer's request id if it is short and harmless, else one of ours.
fn request_id(request: &HttpRequest) -> HeaderValue {
    let harmless = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len())
            && bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    match request.headers().get(&REQUEST_ID).filter(harmless) {
        Some(given) => given.clone(),
        None => HeaderValue::from_str(&format!("{:032x}", rand::random::<u128>()))
            .expect("hex digits are a header value"),
    }
}
