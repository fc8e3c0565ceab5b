//! The only place where outcomes become HTTP. The sender gets a status, a fixed word and a short sentence
//! that says what to do; the operator gets the chain in the log, once, where it is handled.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use hookgate_signature::Refusal;
use hookgate_webhook::{Provider, Unreadable};
use serde::Serialize;

use crate::handler::Handled;
use crate::receiver::Received;

/// Seconds a provider is asked to wait where it must try again.
const RETRY_AFTER_SECONDS: &str = "1";

/// Why a request was turned away before any of its events was claimed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Not authentic.
    #[error(transparent)]
    Signature(#[from] Refusal),
    /// Authentic, not readable.
    #[error(transparent)]
    Body(#[from] Unreadable),
    /// No such path.
    #[error("no source of this name is configured; the path is /webhooks/<source>")]
    UnknownSource,
    /// Not POST.
    #[error("send deliveries with POST")]
    MethodNotAllowed,
    /// The body did not come in time.
    #[error("the body did not arrive in time")]
    RequestTimeout,
    /// The body broke off.
    #[error("the body ended before its announced length")]
    BodyCut,
    /// The body is over the limit.
    #[error("the body is larger than {0} bytes, the limit of this source")]
    BodyTooLarge(usize),
    /// The body is compressed.
    #[error("send the body without Content-Encoding; signatures are checked over the bytes as sent")]
    UnsupportedEncoding,
    /// More bodies are in hand than fit.
    #[error("more deliveries are in hand than this replica can hold; send again")]
    Overloaded,
    /// The event's task ended without an outcome.
    #[error("the delivery could not be finished; send again")]
    Interrupted,
}

impl Refused {
    /// The contract's word: the `error` of the answer and the `reason` of the counter.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Signature(refusal) => refusal.reason(),
            Self::Body(unreadable) => unreadable.reason(),
            Self::UnknownSource => "unknown_source",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::BodyCut => "malformed_body",
            Self::BodyTooLarge(_) => "body_too_large",
            Self::UnsupportedEncoding => "unsupported_encoding",
            Self::Overloaded | Self::Interrupted => "unavailable",
        }
    }

    /// How it counts as a delivery: who is asked to send again was not refused.
    pub fn outcome(&self) -> &'static str {
        if matches!(self, Self::Overloaded | Self::Interrupted) {
            "unavailable"
        } else {
            "refused"
        }
    }

    /// Whether it was refused before its body was read to the end.
    pub fn leaves_body_unread(&self) -> bool {
        match self {
            Self::UnknownSource
            | Self::MethodNotAllowed
            | Self::RequestTimeout
            | Self::BodyCut
            | Self::BodyTooLarge(_)
            | Self::Overloaded
            | Self::UnsupportedEncoding => true,
            Self::Signature(_) | Self::Body(_) | Self::Interrupted => false,
        }
    }

    fn status(&self, provider: Option<Provider>) -> StatusCode {
        match self {
            Self::Signature(_) => provider
                .and_then(|provider| StatusCode::from_u16(provider.knowledge().refusal_status).ok())
                .unwrap_or(StatusCode::BAD_REQUEST),
            Self::Body(_) | Self::BodyCut => StatusCode::BAD_REQUEST,
            Self::UnknownSource => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Overloaded | Self::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The answer.
    pub fn respond(&self, provider: Option<Provider>) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status(provider));
        match self {
            Self::Overloaded | Self::Interrupted => {
                answer.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
            }
            Self::MethodNotAllowed => {
                answer.insert_header((ALLOW, "POST"));
            }
            // What was not read of the body must not be taken for the next request.
            Self::BodyTooLarge(_) | Self::RequestTimeout | Self::BodyCut | Self::UnsupportedEncoding => {
                answer.force_close();
            }
            Self::Signature(_) | Self::Body(_) | Self::UnknownSource => {}
        }
        with_json(
            answer,
            &Failure {
                error: self.reason(),
                detail: Some(&self.to_string()),
            },
        )
    }
}

/// The answer to a delivery whose events were all seen through. A batch is 200 only if all are safe.
pub fn respond(provider: Provider, received: &[Received]) -> HttpResponse {
    let worst = received
        .iter()
        .map(|one| one.handled)
        .max_by_key(|handled| severity(*handled));
    let knowledge = provider.knowledge();
    let error = match worst.map_or(Ok(()), settled) {
        Ok(()) => return accepted(knowledge.batches, received),
        Err(error) => error,
    };
    let status = match error {
        "in_flight" if !knowledge.client_error_is_final => StatusCode::CONFLICT,
        "handler_failed" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut answer = HttpResponse::build(status);
    if status != StatusCode::INTERNAL_SERVER_ERROR {
        answer.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
    }
    with_json(answer, &Failure { error, detail: None })
}

/// The bodies of the contract, their fields in its order.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct Single<'a> {
    received: bool,
    duplicate: bool,
    event_id: &'a str,
}

#[derive(Serialize)]
struct Batch<'a> {
    received: bool,
    events: Vec<Element<'a>>,
}

#[derive(Serialize)]
struct Element<'a> {
    event_id: &'a str,
    duplicate: bool,
}

fn accepted(batch: bool, received: &[Received]) -> HttpResponse {
    let duplicate = |one: &Received| matches!(one.handled, Handled::Duplicate(_));
    let answer = HttpResponse::Ok();
    match received {
        [one] if !batch => with_json(
            answer,
            &Single {
                received: true,
                duplicate: duplicate(one),
                event_id: one.key.id.as_str(),
            },
        ),
        events => {
            let element = |one| Element {
                event_id: Received::id(one),
                duplicate: duplicate(one),
            };
            with_json(
                answer,
                &Batch {
                    received: true,
                    events: events.iter().map(element).collect(),
                },
            )
        }
    }
}

/// Whether an event is finished or durably kept; else the contract's word for what it is.
fn settled(handled: Handled) -> Result<(), &'static str> {
    match handled {
        Handled::Accepted | Handled::AcceptedUnrecorded | Handled::Duplicate(_) => Ok(()),
        Handled::InFlight => Err("in_flight"),
        Handled::Failed => Err("handler_failed"),
        Handled::Unavailable => Err("unavailable"),
    }
}

fn severity(handled: Handled) -> u8 {
    match handled {
        Handled::Accepted | Handled::AcceptedUnrecorded | Handled::Duplicate(_) => 0,
        Handled::InFlight => 1,
        Handled::Failed => 2,
        Handled::Unavailable => 3,
    }
}

fn with_json(mut answer: actix_web::HttpResponseBuilder, body: &impl Serialize) -> HttpResponse {
    answer
        .insert_header((CONTENT_TYPE, "application/json"))
        .json(body)
}
