//! What goes wrong at the admin API, as problem documents (RFC 9457): each says what happened, to what, and
//! what is accepted instead. The ledger's own words stay in the log.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use hookgate_ledger::{LedgerError, State};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// Seconds a caller is asked to wait where the same request may succeed later.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// The kinds of problem, each with one status and one title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A query parameter that does not exist.
    UnknownParameter,
    /// A query parameter or a field with a value that is not accepted.
    BadValue,
    /// A cursor that this API did not give.
    MalformedCursor,
    /// A body that is no JSON.
    BadJson,
    /// A JSON field that does not exist.
    UnknownField,
    /// No token, or a wrong one.
    Unauthorized,
    /// No token is configured.
    ApiOff,
    /// Nothing is at this path.
    NoSuchPath,
    /// No such event.
    UnknownEvent,
    /// No such target.
    UnknownTarget,
    /// The path knows other methods.
    MethodNotAllowed,
    /// Retention has emptied the event.
    PayloadPruned,
    /// The event is in another state.
    WrongState,
    /// The event has another generation.
    OtherGeneration,
    /// The request's body took too long.
    RequestTimeout,
    /// The request's body is too large.
    BodyTooLarge,
    /// There is no ledger.
    NoLedger,
    /// The ledger, or this replica, cannot answer now.
    Unavailable,
    /// The search looked at too much.
    SearchTooSlow,
    /// The database refuses what it should not.
    Internal,
}

impl Kind {
    /// The word by which a program tells kinds apart: `code`, and the end of `type`.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::UnknownParameter => "unknown_parameter",
            Self::BadValue => "bad_value",
            Self::MalformedCursor => "malformed_cursor",
            Self::BadJson => "bad_json",
            Self::UnknownField => "unknown_field",
            Self::Unauthorized => "unauthorized",
            Self::ApiOff => "api_off",
            Self::NoSuchPath => "no_such_path",
            Self::UnknownEvent => "unknown_event",
            Self::UnknownTarget => "unknown_target",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::PayloadPruned => "payload_pruned",
            Self::WrongState => "wrong_state",
            Self::OtherGeneration => "other_generation",
            Self::RequestTimeout => "request_timeout",
            Self::BodyTooLarge => "body_too_large",
            Self::NoLedger => "no_ledger",
            Self::Unavailable => "unavailable",
            Self::SearchTooSlow => "search_too_slow",
            Self::Internal => "internal",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::UnknownParameter => "Unknown query parameter",
            Self::BadValue => "Value not accepted",
            Self::MalformedCursor => "Malformed cursor",
            Self::BadJson => "Body is not the expected JSON",
            Self::UnknownField => "Unknown field",
            Self::Unauthorized => "Token missing or wrong",
            Self::ApiOff => "The admin API is off",
            Self::NoSuchPath => "No such path",
            Self::UnknownEvent => "No such event",
            Self::UnknownTarget => "No such target",
            Self::MethodNotAllowed => "Method not allowed",
            Self::PayloadPruned => "The event's body is gone",
            Self::WrongState => "The event is in another state",
            Self::OtherGeneration => "The event has another generation",
            Self::RequestTimeout => "Request too slow",
            Self::BodyTooLarge => "Body too large",
            Self::NoLedger => "No ledger",
            Self::Unavailable => "Not available now",
            Self::SearchTooSlow => "Search too slow",
            Self::Internal => "Internal error",
        }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::UnknownParameter
            | Self::BadValue
            | Self::MalformedCursor
            | Self::BadJson
            | Self::UnknownField => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::ApiOff | Self::NoSuchPath | Self::UnknownEvent | Self::UnknownTarget | Self::NoLedger => {
                StatusCode::NOT_FOUND
            }
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::PayloadPruned | Self::WrongState | Self::OtherGeneration => StatusCode::CONFLICT,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            // Not the server's trouble: the same search would take as long again.
            Self::SearchTooSlow => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// One problem, on its way to the caller.
#[derive(Debug)]
pub(super) struct Problem {
    kind: Kind,
    detail: String,
    field: Option<String>,
    allowed: Option<String>,
    /// Methods that the path knows.
    methods: Option<String>,
}

/// A problem document, `application/problem+json`.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct Document<'a> {
    /// Names the kind: `urn:hookgate:problem:` and the code.
    r#type: String,
    /// What happened, the same for every problem of this kind.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What happened, to what, and what to do.
    detail: &'a str,
    /// The kind as one word.
    code: &'static str,
    /// The parameter or field that is not accepted; `filter.since` is a field within a field.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// What would be accepted there.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<&'a str>,
}

/// The problems that every operation may answer.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes answers; nobody makes one of these")]
pub(super) enum Problems {
    /// The request is not accepted
    #[response(status = "4XX", content_type = "application/problem+json")]
    Request(#[to_schema] Document<'static>),
    /// The gateway cannot answer now
    #[response(status = "5XX", content_type = "application/problem+json")]
    Server(#[to_schema] Document<'static>),
}

impl Problem {
    /// A problem with its sentence.
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            field: None,
            allowed: None,
            methods: None,
        }
    }

    /// A value that is not accepted, and what is.
    pub(super) fn value(field: impl Into<String>, allowed: impl Into<String>) -> Self {
        let (field, allowed) = (field.into(), allowed.into());
        Self::new(
            Kind::BadValue,
            format!("{field} is not accepted: expected {allowed}"),
        )
        .at(field, allowed)
    }

    /// Names what is not accepted, and what would be.
    pub(super) fn at(mut self, field: impl Into<String>, allowed: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self.allowed = Some(allowed.into());
        self
    }

    /// Nobody is to try this path with that method.
    pub(super) fn method(methods: String) -> Self {
        let mut problem = Self::new(Kind::MethodNotAllowed, format!("this path knows only {methods}"));
        problem.methods = Some(methods);
        problem
    }

    /// An event that is in no state that a change starts from.
    pub(super) fn wrong_state(state: State, needed: &str, verb: &str) -> Self {
        let detail = format!("the event is {state}; only {needed} events can be {verb}");
        Self::new(Kind::WrongState, detail).at("state", needed)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.kind.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = HttpResponse::build(self.status_code());
        match self.kind {
            Kind::Unavailable => {
                answer.insert_header((RETRY_AFTER, RETRY_AFTER_SECONDS));
            }
            Kind::Unauthorized => {
                answer.insert_header((WWW_AUTHENTICATE, r#"Bearer realm="hookgate""#));
            }
            // What was not read of the body must not be taken for the next request.
            Kind::BodyTooLarge | Kind::RequestTimeout => {
                answer.force_close();
            }
            _ => {}
        }
        if let Some(methods) = &self.methods {
            answer.insert_header((ALLOW, methods.as_str()));
        }
        answer.content_type("application/problem+json").json(Document {
            r#type: format!("urn:hookgate:problem:{}", self.kind.code()),
            title: self.kind.title(),
            status: self.status_code().as_u16(),
            detail: &self.detail,
            code: self.kind.code(),
            field: self.field.as_deref(),
            allowed: self.allowed.as_deref(),
        })
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Unavailable(_) => {
                Self::new(Kind::Unavailable, "the ledger cannot answer now; try again")
            }
            LedgerError::Locked(_) => Self::new(
                Kind::Unavailable,
                "somebody else is changing this event now; try again",
            ),
            LedgerError::TooSlow(_) => Self::new(
                Kind::SearchTooSlow,
                "this looks at too many events: narrow it by source, type, object, or a shorter time from since to until",
            ),
            LedgerError::Refused(_) => Self::new(
                Kind::Internal,
                "the database refuses this request; the log says why",
            ),
            LedgerError::Unusable(_) | LedgerError::Migration(_) => Self::new(
                Kind::Unavailable,
                "the ledger cannot be used as configured; the log says why",
            ),
        }
    }
}
