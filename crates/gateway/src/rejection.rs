//! The only place where outcomes become HTTP. The sender gets a status, a fixed word and a short sentence
//! that says what to do; the operator gets the chain in the log, once, where it is handled.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use hookgate_signature::Refusal;
use hookgate_webhook::{Answer, Knowledge, Provider, Success, Unreadable};
use serde::Serialize;

use crate::batch;
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
    /// More events than one delivery may carry.
    #[error("the delivery carries more than {} events, the limit", batch::EVENTS_MAX)]
    TooManyEvents,
    /// The body is compressed.
    #[error("send the body without Content-Encoding; signatures are checked over the bytes as sent")]
    UnsupportedEncoding,
    /// More bodies are in hand than fit.
    #[error("more deliveries are in hand than this replica can hold; send again")]
    Overloaded,
    /// The key that the sender names cannot be had now.
    #[error("the certificate that the delivery names cannot be fetched now; send again")]
    NoKey,
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
            Self::BodyTooLarge(_) | Self::TooManyEvents => "body_too_large",
            Self::UnsupportedEncoding => "unsupported_encoding",
            Self::Overloaded | Self::NoKey | Self::Interrupted => "unavailable",
        }
    }

    /// How it counts as a delivery: who is asked to send again was not refused.
    pub fn outcome(&self) -> &'static str {
        if matches!(self, Self::Overloaded | Self::NoKey | Self::Interrupted) {
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
            Self::Signature(_) | Self::Body(_) | Self::TooManyEvents | Self::NoKey | Self::Interrupted => {
                false
            }
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
            Self::BodyTooLarge(_) | Self::TooManyEvents => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Overloaded | Self::NoKey | Self::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The answer.
    pub fn respond(&self, provider: Option<Provider>) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status(provider));
        match self {
            Self::Overloaded | Self::NoKey | Self::Interrupted => {
                answer.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
            }
            Self::MethodNotAllowed => {
                answer.insert_header((ALLOW, "POST"));
            }
            // What was not read of the body must not be taken for the next request.
            Self::BodyTooLarge(_) | Self::RequestTimeout | Self::BodyCut | Self::UnsupportedEncoding => {
                answer.force_close();
            }
            Self::Signature(_) | Self::Body(_) | Self::TooManyEvents | Self::UnknownSource => {}
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
        Ok(()) => return success(knowledge, received),
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

/// The answer to a handshake: what the provider wants to hear, and nothing of ours.
pub fn handshake(answer: &Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, answer.content_type))
        .body(answer.body.clone())
}

/// What some providers look for in the body of a 200, wherever it stands there.
const ACCEPTED: &str = "[accepted]";

/// The bodies of the contract, their fields in its order, and what a provider needs besides.
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
    #[serde(rename = "notificationResponse", skip_serializing_if = "Option::is_none")]
    needed: Option<&'static str>,
}

#[derive(Serialize)]
struct Batch<'a> {
    received: bool,
    events: Vec<Element<'a>>,
    #[serde(rename = "notificationResponse", skip_serializing_if = "Option::is_none")]
    needed: Option<&'static str>,
}

#[derive(Serialize)]
struct Element<'a> {
    event_id: &'a str,
    duplicate: bool,
}

/// Success as the provider knows it; the same for a duplicate as for the first delivery.
fn success(knowledge: &Knowledge, received: &[Received]) -> HttpResponse {
    match knowledge.success {
        Success::Ok => accepted(knowledge.batches, received, None),
        Success::OkAccepted => accepted(knowledge.batches, received, Some(ACCEPTED)),
        Success::NoContent => HttpResponse::NoContent()
            .insert_header((CONTENT_TYPE, "application/json"))
            .finish(),
    }
}

fn accepted(batch: bool, received: &[Received], needed: Option<&'static str>) -> HttpResponse {
    let duplicate = |one: &Received| matches!(one.handled, Handled::Duplicate(_));
    let answer = HttpResponse::Ok();
    match received {
        [one] if !batch => with_json(
            answer,
            &Single {
                received: true,
                duplicate: duplicate(one),
                event_id: one.key.id.as_str(),
                needed,
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
                    needed,
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

#[cfg(test)]
mod tests {
    use actix_web::body::MessageBody as _;
    use hookgate_webhook::{EventId, EventKey, SourceName};

    use super::*;
    use crate::handler::DecidedBy;

    const FRESH: Handled = Handled::Accepted;
    const KNOWN: Handled = Handled::Duplicate(DecidedBy::Ledger);

    fn received(handled: &[Handled]) -> Vec<Received> {
        let one = |(number, handled): (usize, &Handled)| Received {
            key: EventKey {
                source: SourceName::parse("any").unwrap(),
                id: EventId::parse(&format!("id_{number}")).unwrap(),
            },
            handled: *handled,
            aside: None,
        };
        handled.iter().enumerate().map(one).collect()
    }

    /// Status, content type and body.
    fn said(answer: HttpResponse) -> (u16, String, String) {
        let status = answer.status().as_u16();
        let of_type = answer
            .headers()
            .get(CONTENT_TYPE)
            .map(|value| value.to_str().unwrap().to_owned());
        let bytes = answer.into_body().try_into_bytes().unwrap_or_default();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        (status, of_type.unwrap_or_default(), text)
    }

    fn check(success: Success, batches: bool, handled: &[Handled], status: u16, body: &str) {
        let knowledge = Knowledge {
            success,
            batches,
            ..*Provider::Stripe.knowledge()
        };
        let answer = super::success(&knowledge, &received(handled));
        assert_eq!(
            said(answer),
            (status, "application/json".to_owned(), body.to_owned())
        );
    }

    #[test]
    fn success_is_said_as_the_provider_wants_to_hear_it_and_of_a_copy_no_less() {
        let one = |duplicate| format!(r#"{{"received":true,"duplicate":{duplicate},"event_id":"id_0""#);
        check(Success::Ok, false, &[FRESH], 200, &(one(false) + "}"));
        check(Success::Ok, false, &[KNOWN], 200, &(one(true) + "}"));
        let needed = r#","notificationResponse":"[accepted]"}"#;
        check(Success::OkAccepted, false, &[FRESH], 200, &(one(false) + needed));
        check(Success::OkAccepted, false, &[KNOWN], 200, &(one(true) + needed));
        check(Success::NoContent, false, &[FRESH], 204, "");
        check(Success::NoContent, true, &[KNOWN, FRESH], 204, "");
    }

    #[test]
    fn a_batch_lists_its_events_also_if_there_is_one_or_none() {
        let list = |events| format!(r#"{{"received":true,"events":[{events}]}}"#);
        check(Success::Ok, true, &[], 200, &list(""));
        check(
            Success::Ok,
            true,
            &[FRESH],
            200,
            &list(r#"{"event_id":"id_0","duplicate":false}"#),
        );
        let two = r#"{"event_id":"id_0","duplicate":true},{"event_id":"id_1","duplicate":false}"#;
        check(Success::Ok, true, &[KNOWN, FRESH], 200, &list(two));
    }

    #[test]
    fn the_worst_of_a_batch_answers_for_all() {
        let rows = [
            (&[FRESH, KNOWN][..], 200, ""),
            (&[FRESH, Handled::InFlight, KNOWN], 409, "in_flight"),
            (
                &[Handled::InFlight, Handled::Failed, FRESH],
                500,
                "handler_failed",
            ),
            (
                &[Handled::Failed, Handled::Unavailable, Handled::InFlight],
                503,
                "unavailable",
            ),
            (&[Handled::Unavailable, FRESH], 503, "unavailable"),
        ];
        for (handled, status, error) in rows {
            let (got, _, body) = said(respond(Provider::Stripe, &received(handled)));
            assert_eq!(got, status, "{handled:?}: {body}");
            assert!(body.contains(error), "{handled:?}: {body}");
            assert_eq!(got != 200, body.starts_with(r#"{"error""#), "{handled:?}: {body}");
        }
    }

    #[test]
    fn a_handshake_is_answered_with_what_the_provider_wants_to_hear() {
        let answer = Answer {
            status: 200,
            content_type: "text/plain",
            body: "challenge".to_owned(),
        };
        let heard = (200, "text/plain".to_owned(), "challenge".to_owned());
        assert_eq!(said(handshake(&answer)), heard);
    }
}
