//! Who may ask. The admin token opens everything under `/v1`, the consume token only `/v1/consume`; without a
//! token the API is off. Tokens are compared as digests in constant time, so that neither their bytes nor
//! their length can be guessed from how long a refusal takes.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{AUTHORIZATION, CACHE_CONTROL, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web;
use actix_web::{HttpRequest, ResponseError as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Admin;
use super::problem::{Kind, Problem};
use crate::listener::{Deadline, Extension};
use crate::unread;

/// Why a caller was refused: the label of its counter.
pub const REFUSALS: [&str; 2] = ["missing_token", "bad_token"];

/// What everybody may see. Whatever else there is, or will be, needs a token.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The part of the API that the consume token opens.
const CONSUME: &str = "/v1/consume";

/// The digests of the configured tokens.
pub(super) struct Tokens {
    admin: Option<[u8; 32]>,
    consume: Option<[u8; 32]>,
}

impl Tokens {
    /// From the configuration.
    pub(super) fn new(admin: Option<&SecretString>, consume: Option<&SecretString>) -> Self {
        let digest = |token: &SecretString| Sha256::digest(token.expose_secret()).into();
        Self {
            admin: admin.map(digest),
            consume: consume.map(digest),
        }
    }

    /// Whether these headers open this path.
    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Refused> {
        let consume = self.consume.filter(|_| is_below(path, CONSUME));
        if self.admin.is_none() && consume.is_none() {
            return Err(Refused::Off);
        }
        let given = bearer(headers)?;
        let opens = |token: Option<[u8; 32]>| token.is_some_and(|token| token.ct_eq(&given).into());
        // Both are looked at, whatever the first says.
        match opens(self.admin) | opens(consume) {
            true => Ok(()),
            false => Err(Refused::Bad),
        }
    }
}

/// Why a request is turned away.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// No token is configured for this path.
    Off,
    /// None was sent.
    Missing,
    /// It is not the right one, or not sent as one.
    Bad,
}

impl Refused {
    fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            Self::Missing => Some("missing_token"),
            Self::Bad => Some("bad_token"),
        }
    }

    fn problem(&self) -> Problem {
        match self {
            Self::Off => Problem::new(
                Kind::ApiOff,
                "the admin API is off: set HOOKGATE_ADMIN_TOKEN to 16 to 512 visible ASCII characters and restart",
            ),
            Self::Missing => Problem::new(
                Kind::Unauthorized,
                "send the header `Authorization: Bearer` with the value of HOOKGATE_ADMIN_TOKEN",
            ),
            Self::Bad => Problem::new(
                Kind::Unauthorized,
                "the token does not open this path; it is the value of HOOKGATE_ADMIN_TOKEN, or for /v1/consume of HOOKGATE_CONSUME_TOKEN",
            ),
        }
    }
}

/// The digest of the token that was sent.
fn bearer(headers: &HeaderMap) -> Result<[u8; 32], Refused> {
    let mut sent = headers.get_all(AUTHORIZATION);
    let (value, another) = (sent.next().ok_or(Refused::Missing)?, sent.next());
    let (scheme, token) = value
        .to_str()
        .ok()
        .and_then(|value| value.split_once(' '))
        .ok_or(Refused::Bad)?;
    match scheme.eq_ignore_ascii_case("bearer") && another.is_none() {
        true => Ok(Sha256::digest(token.trim()).into()),
        false => Err(Refused::Bad),
    }
}

/// Whether a path is `top` or beneath it.
fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Lets nobody through who may not, and nothing that needs a token into a cache.
pub(super) async fn guard(
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    if OPEN.contains(&routed(request.request())) {
        return next.call(request).await;
    }
    let mut answer = match admit(request.request()) {
        Ok(_admitted) => next.call(request).await?,
        Err(problem) => {
            let unread = request.extract::<web::Payload>().await?;
            request.into_response(unread::closing(problem.error_response(), unread))
        }
    };
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// The path by which a request is routed. That is the decoded one: judged by the path as it was sent, `/%76%31`
/// would be another door to `/v1`.
pub(super) fn routed(request: &HttpRequest) -> &str {
    request.match_info().as_str()
}

/// A request that was let in.
struct Admitted {
    /// Says so to a process that wants to end.
    _in_hand: TaskTrackerToken,
    /// Only now may its connection wait for what takes long.
    _extension: Option<Extension>,
}

fn admit(request: &HttpRequest) -> Result<Admitted, Problem> {
    let admin = request
        .app_data::<web::Data<Admin>>()
        .expect("the admin listener has its state");
    let checked = admin.tokens.check(routed(request), request.headers());
    checked.map_err(|refused| {
        if let Some(reason) = refused.reason() {
            admin.metrics.admin_refusals.with_label_values(&[reason]).inc();
        }
        refused.problem()
    })?;
    let deadline = request.conn_data::<Deadline>();
    Ok(Admitted {
        _in_hand: admin.in_hand.token(),
        _extension: deadline.map(|deadline| deadline.extend(admin.answer_timeout)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: &str = "admin-token-of-a-test";
    const CONSUME: &str = "consume-token-of-a-test";

    fn check(configured: [Option<&str>; 2], path: &str, sent: &[&str], expected: Result<(), Refused>) {
        let [admin, consume] = configured.map(|token| token.map(SecretString::from));
        let tokens = Tokens::new(admin.as_ref(), consume.as_ref());
        let mut headers = HeaderMap::new();
        for value in sent {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(
            tokens.check(path, &headers),
            expected,
            "{configured:?} {path} {sent:?}"
        );
    }

    #[test]
    fn each_token_opens_its_own_doors() {
        let both = [Some(ADMIN), Some(CONSUME)];
        let (admin, consume) = (format!("Bearer {ADMIN}"), format!("bearer {CONSUME}"));
        for path in ["/v1/consume", "/v1/consume/settle"] {
            check(both, path, &[&admin], Ok(()));
            check(both, path, &[&consume], Ok(()));
            check([None, Some(CONSUME)], path, &[&consume], Ok(()));
        }
        for path in ["/v1/events", "/v1/consumers", "/v1", "/v1/"] {
            check(both, path, &[&admin], Ok(()));
            check(both, path, &[&consume], Err(Refused::Bad));
            check([None, Some(CONSUME)], path, &[&consume], Err(Refused::Off));
            check([None, None], path, &[&admin], Err(Refused::Off));
        }
    }

    #[test]
    fn what_is_not_exactly_the_token_opens_nothing() {
        let one = [Some(ADMIN), None];
        check(one, "/v1/events", &[], Err(Refused::Missing));
        let right = format!("Bearer {ADMIN}");
        let wrong = [
            "",
            "Bearer",
            "Bearer ",
            ADMIN,
            &format!("Basic {ADMIN}"),
            &right[..right.len() - 1],
            &format!("{right}x"),
            &format!("Bearer x{ADMIN}"),
            &right.to_uppercase(),
            &format!("Bearer {CONSUME}"),
        ];
        for wrong in wrong {
            check(one, "/v1/events", &[wrong], Err(Refused::Bad));
        }
        check(one, "/v1/events", &[&right, &right], Err(Refused::Bad));
        check(one, "/v1/events", &["Bearer wrong", &right], Err(Refused::Bad));
    }
}
