//! What callers send, read strictly: a name that does not exist, a value of the wrong form or a name given
//! twice is answered with a problem that names it and says what is accepted.

use std::future::{Ready, ready};
use std::ops::RangeInclusive;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use bytes::BytesMut;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use hookgate_webhook::{EventId, EventKey, SourceName};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::problem::{Kind, Problem};
use super::{Admin, json};

/// Longest body of a request, unless it is one that has more to say.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The one parameter that may be repeated; each of its values may also name several, separated by commas.
const REPEATABLE: &str = "state";

/// Reads the query.
///
/// # Errors
/// A [`Problem`] that names the parameter.
pub(super) fn query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Problem> {
    let mut values = Map::new();
    let pairs = request.query_string().split('&').filter(|pair| !pair.is_empty());
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decoded(name)?, decoded(value)?);
        if name == REPEATABLE {
            let parts = value.split(',').map(|part| Value::from(part.trim()));
            let list = values.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut()
                .into_iter()
                .for_each(|list| list.extend(parts.clone()));
        } else if values.insert(name.clone(), Value::from(value)).is_some() {
            return Err(Problem::value(name, "to be given once"));
        }
    }
    typed(Value::Object(values), Kind::UnknownParameter)
}

/// A part of a query: `+` is a space there.
fn decoded(text: &str) -> Result<String, Problem> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Problem::value("the query", "percent-encoded UTF-8")),
    }
}

/// A body on its way, and how long it may take to arrive.
pub(super) struct Sent {
    payload: web::Payload,
    timeout: Duration,
}

impl FromRequest for Sent {
    type Error = actix_web::Error;
    type Future = LocalBoxFuture<'static, Result<Self, Self::Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let admin = request.app_data::<web::Data<Admin>>();
        let timeout = admin.map_or(Duration::MAX, |admin| admin.body_timeout);
        let payload = web::Payload::from_request(request, payload);
        Box::pin(async move {
            let payload = payload.await?;
            Ok(Self { payload, timeout })
        })
    }
}

/// Reads the body as one JSON object.
///
/// # Errors
/// A [`Problem`] that names the field.
pub(super) async fn body<T: DeserializeOwned>(sent: Sent) -> Result<T, Problem> {
    long_body(sent, BODY_BYTES_MAX).await
}

/// The same of a body that may be so long.
///
/// # Errors
/// A [`Problem`] that names the field.
pub(super) async fn long_body<T: DeserializeOwned>(sent: Sent, bytes_max: usize) -> Result<T, Problem> {
    let reading = collect(sent.payload, bytes_max);
    let bytes = tokio::time::timeout(sent.timeout, reading).await.map_err(|_| {
        let timeout = humantime::format_duration(sent.timeout);
        let detail = format!("the body did not arrive within {timeout}: send it again, faster");
        Problem::new(Kind::RequestTimeout, detail)
    })??;
    match json::read(&bytes)? {
        object @ Value::Object(_) => typed(object, Kind::UnknownField),
        _ => Err(Problem::new(Kind::BadJson, "the body must be one JSON object")),
    }
}

async fn collect(mut payload: web::Payload, bytes_max: usize) -> Result<BytesMut, Problem> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk =
            chunk.map_err(|_| Problem::new(Kind::BadJson, "the body ended before its announced length"))?;
        if bytes.len() + chunk.len() > bytes_max {
            return Err(Problem::new(
                Kind::BodyTooLarge,
                format!("the body is larger than {bytes_max} bytes: send several requests"),
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Values as what they are meant to be. `unknown` is the kind of problem that a superfluous name is.
fn typed<T: DeserializeOwned>(values: Value, unknown: Kind) -> Result<T, Problem> {
    serde_path_to_error::deserialize(values).map_err(|error| {
        let path = error.path().to_string();
        explained(&path, &error.inner().to_string(), unknown)
    })
}

/// What the deserializer says, in our words: `unknown field `x`, expected one of `a`, `b``, `missing field `x``,
/// or what it found and what it wanted.
fn explained(path: &str, said: &str, unknown: Kind) -> Problem {
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    let within = |name: String| match path {
        "." | "?" => name,
        path => format!("{path}.{name}"),
    };
    if let Some((_, expected)) = said
        .split_once("unknown field ")
        .and_then(|(_, rest)| rest.split_once(", "))
    {
        let allowed = expected.replace('`', "");
        let allowed = allowed.trim_start_matches("expected ").to_owned();
        let detail = format!("{path} does not exist here: expected {allowed}");
        return Problem::new(unknown, detail).at(path, allowed);
    }
    if said.starts_with("missing field") {
        return Problem::value(within(quoted(said)), "to be given");
    }
    let allowed = said
        .rsplit_once("expected ")
        .map_or("another form", |(_, expected)| expected);
    Problem::value(path, allowed)
}

/// A duration such as `30s`, if one is given.
///
/// # Errors
/// [`Problem`] that names the field, if it is none or out of range.
pub(super) fn in_time(
    field: &str,
    text: Option<&str>,
    range: RangeInclusive<Duration>,
) -> Result<Option<Duration>, Problem> {
    let parse = |text| {
        humantime::parse_duration(text)
            .ok()
            .filter(|found| range.contains(found))
    };
    let refuse = || {
        let shown = |duration: &Duration| humantime::format_duration(*duration).to_string();
        let allowed = format!(
            "a duration from {} to {}, such as 30s",
            shown(range.start()),
            shown(range.end())
        );
        Problem::value(field, allowed)
    };
    text.map(|text| parse(text).ok_or_else(refuse)).transpose()
}

/// How a path names an event.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes paths; `EventPath` reads them")]
pub(super) struct EventName {
    /// The endpoint it came to.
    source: String,
    /// The provider's id, percent-encoded.
    id: String,
}

/// An event named by a path. `{source}/{id}` are segments 3 and 4 of it, percent-encoded; what they stand for
/// is taken byte for byte.
pub(super) struct EventPath(pub(super) EventKey);

impl FromRequest for EventPath {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let mut segments = request.uri().path().split('/').skip(3);
        let mut segment = |name| {
            let text = percent_decode_str(segments.next().unwrap_or_default()).decode_utf8();
            text.map_err(|_| Problem::value(name, "percent-encoded UTF-8"))
        };
        let key = || {
            let (source, id) = (segment("source")?, segment("id")?);
            Ok(EventKey {
                source: SourceName::parse(&source).map_err(|bad| Problem::value("source", bad.0))?,
                id: EventId::parse(&id).map_err(|bad| Problem::value("id", bad.0))?,
            })
        };
        ready({ key }().map(Self))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::test::TestRequest;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq, Eq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: Option<String>,
        state: Option<Vec<String>>,
    }

    fn sample(query: &str) -> Result<Sample, String> {
        let request = TestRequest::with_uri(&format!("/v1/events?{query}")).to_http_request();
        super::query(&request).map_err(|problem| format!("{} {problem}", problem.status_code()))
    }

    #[test]
    fn a_query_is_read_strictly() {
        let expected = Sample {
            name: Some("a b&c%/é".to_owned()),
            state: Some(["dead", "done", "queued"].map(str::to_owned).into()),
        };
        let text = "state=dead,+done&name=a+b%26c%25/%C3%A9&&state=queued";
        assert_eq!(sample(text), Ok(expected));
        assert!(sample("").is_ok());
        for (query, said) in [
            ("nam=x", "nam does not exist here: expected `name` or `state`"),
            ("name=a&name=b", "name is not accepted: expected to be given once"),
            (
                "name=%ff",
                "the query is not accepted: expected percent-encoded UTF-8",
            ),
        ] {
            let said = said.replace('`', "");
            assert_eq!(sample(query), Err(format!("400 Bad Request {said}")));
        }
    }

    #[test]
    fn an_event_is_named_byte_for_byte() {
        let read = |path: &str| {
            let request = TestRequest::with_uri(path).to_http_request();
            let read = EventPath::from_request(&request, &mut Payload::None).into_inner();
            read.map(|path| path.0.to_string())
                .map_err(|problem| problem.to_string())
        };
        for (path, key) in [
            ("/v1/events/stripe/evt_1", "stripe:evt_1"),
            ("/v1/events/stripe/a%2Fb%25c%2520/body", "stripe:a/b%c%20"),
            ("/v1/events/stripe/%F0%9F%98%80%20+", "stripe:😀 +"),
            ("/v1/events/stripe/%2E%2E?x", "stripe:.."),
        ] {
            assert_eq!(read(path), Ok(key.to_owned()));
        }
        for path in [
            "/v1/events/stripe/%ff",
            "/v1/events/Stripe/a",
            "/v1/events/stripe/%00",
            "/v1/events/stripe/",
        ] {
            assert!(
                read(path).is_err_and(|said| said.contains("is not accepted")),
                "{path}"
            );
        }
    }
}
