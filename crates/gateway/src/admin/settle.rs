//! `POST /v1/consume/settle`: how the runs of pulled events ended. Repeating a settlement says the same again.

use std::time::Duration;

use actix_web::{HttpResponse, post, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::consume::{LEASE_MAX, LEASE_MIN};
use super::input::in_time;
use super::lease::{self, Pulled};
use super::problem::{Kind, Problem, Problems};
use super::pull::{Became, Verdict};
use super::{Admin, input};

/// Settlements of one request.
const ITEMS_MAX: usize = 100;

/// Longest body. JSON may spell a character in twelve bytes, so that the longest settlement has some 6,600.
const BODY_BYTES_MAX: usize = 768 << 10;

/// Longest text about why something failed, in characters.
const ERROR_MAX: usize = 500;

/// The longest that an event may be put off.
const AFTER_MAX: Duration = Duration::from_hours(24);

/// How runs ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleRequest {
    /// The settlements, at most 100.
    #[schema(min_items = 1, max_items = 100)]
    items: Vec<Settlement>,
}

/// How one run ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settlement {
    /// The lease, as `/v1/consume` gave it.
    lease: String,
    /// How it ended.
    outcome: Ending,
    /// Why it failed, up to 500 characters; for `retry` and `dead`. Kept and shown: no secret, no body.
    #[schema(max_length = 500)]
    error: Option<String>,
    /// For `retry`: when to try again, else the usual back-off. For `release`: when to give it back, else at
    /// once. For `extend`: how long the lease lasts from now, from `1s` to `1h`.
    #[schema(example = "30s")]
    after: Option<String>,
}

/// The ways in which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ending {
    /// It took effect.
    Done,
    /// It failed; try again, or bury it if its tries are used up.
    Retry,
    /// It will never succeed: to the dead letters.
    Dead,
    /// It was not tried: give it back, which costs no try.
    Release,
    /// It goes on: keep the lease.
    Extend,
}

/// What became of the settlements, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SettleView {
    /// One for each settlement.
    items: Vec<SettledView>,
}

/// What became of one settlement.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SettledView {
    /// The lease that was settled.
    lease: String,
    /// `committed`; `dead`: committed, and the event is a dead letter by this, also if that was its last try; or
    /// `lost`: the lease had ended and the event is somebody else's by now.
    result: &'static str,
}

/// Ends or extends the runs of pulled events.
#[utoipa::path(
    tag = "consume",
    request_body = SettleRequest,
    responses((status = 200, description = "What became of each", body = SettleView), Problems)
)]
#[post("/v1/consume/settle")]
pub(super) async fn settle_events(
    payload: input::Sent,
    admin: web::Data<Admin>,
) -> Result<HttpResponse, Problem> {
    let request = input::long_body::<SettleRequest>(payload, BODY_BYTES_MAX).await?;
    if !(1..=ITEMS_MAX).contains(&request.items.len()) {
        return Err(Problem::value("items", format!("1 to {ITEMS_MAX} settlements")));
    }
    // All are read before the first takes effect.
    let verdicts = request
        .items
        .iter()
        .enumerate()
        .map(|(place, item)| item.read(&format!("items[{place}].")))
        .collect::<Result<Vec<_>, _>>()?;
    let pull = admin.pull.clone().ok_or_else(super::no_ledger)?;
    let settled = pull.settle_all(verdicts).await?;
    let view = |(item, became): (Settlement, Became)| SettledView {
        lease: item.lease,
        result: match became {
            Became::Committed => "committed",
            Became::Dead => "dead",
            Became::Lost => "lost",
        },
    };
    Ok(HttpResponse::Ok().json(SettleView {
        items: request.items.into_iter().zip(settled).map(view).collect(),
    }))
}

impl Settlement {
    /// What is meant. `at` stands before the names of fields in problems.
    fn read(&self, at: &str) -> Result<(Pulled, Verdict), Problem> {
        let pulled = lease::read(&self.lease).ok_or_else(|| {
            let allowed = "`lease` of an item of /v1/consume, as it is";
            let detail = format!("{at}lease is no lease: expected {allowed}");
            Problem::new(Kind::BadValue, detail).at(format!("{at}lease"), allowed)
        })?;
        Ok((pulled, self.verdict(at)?))
    }

    fn verdict(&self, at: &str) -> Result<Verdict, Problem> {
        let after = |range| in_time(&format!("{at}after"), self.after.as_deref(), range);
        match self.outcome {
            Ending::Done => {
                self.without(at, "error", self.error.is_some())?;
                self.without(at, "after", self.after.is_some())?;
                Ok(Verdict::Done)
            }
            Ending::Retry => Ok(Verdict::Retry {
                after: after(Duration::ZERO..=AFTER_MAX)?,
                error: self.error(at)?,
            }),
            Ending::Dead => {
                self.without(at, "after", self.after.is_some())?;
                Ok(Verdict::Dead {
                    error: self.error(at)?,
                })
            }
            Ending::Release => {
                self.without(at, "error", self.error.is_some())?;
                Ok(Verdict::Release {
                    after: after(Duration::ZERO..=AFTER_MAX)?.unwrap_or_default(),
                })
            }
            Ending::Extend => {
                self.without(at, "error", self.error.is_some())?;
                let lease = after(LEASE_MIN..=LEASE_MAX)?;
                let lease =
                    lease.ok_or_else(|| Problem::value(format!("{at}after"), "to be given with extend"))?;
                Ok(Verdict::Extend { lease })
            }
        }
    }

    /// A field that says nothing beside this outcome.
    fn without(&self, at: &str, field: &str, given: bool) -> Result<(), Problem> {
        match given {
            true => Err(Problem::value(
                format!("{at}{field}"),
                format!("to be left out with outcome {:?}", self.outcome).to_lowercase(),
            )),
            false => Ok(()),
        }
    }

    fn error(&self, at: &str) -> Result<String, Problem> {
        let text = self
            .error
            .as_deref()
            .unwrap_or("the consumer gave no reason")
            .trim();
        let fits = (1..=ERROR_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        match fits {
            true => Ok(text.to_owned()),
            false => Err(Problem::value(
                format!("{at}error"),
                format!("1 to {ERROR_MAX} characters on one line"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::FromRequest as _;
    use actix_web::test::TestRequest;
    use hookgate_ledger::{DeliveryId, Job, Lease};
    use hookgate_webhook::{EventId, EventKey, SourceName};

    use super::*;

    /// The longest lease there is.
    fn longest_lease() -> String {
        let lease = Lease {
            key: EventKey {
                source: SourceName::parse(&"s".repeat(63)).unwrap(),
                id: EventId::parse(&"i".repeat(255)).unwrap(),
            },
            owner: DeliveryId(u128::MAX),
            attempt: u32::MAX,
            generation: u32::MAX,
        };
        lease::write(&Job {
            lease,
            provider: "stripe".to_owned(),
            event_type: None,
            tries: u32::MAX,
            headers: Vec::new(),
            body: bytes::Bytes::new(),
        })
    }

    async fn read(items: usize) -> Result<SettleRequest, Problem> {
        let error = r"\ud83d\ude00".repeat(ERROR_MAX);
        let item = format!(
            r#"{{ "lease": "{}", "outcome": "retry", "error": "{error}", "after": "23h 59m 59s" }}"#,
            longest_lease()
        );
        let body = format!(r#"{{ "items": [ {} ] }}"#, vec![item; items].join(", "));
        let (request, mut payload) = TestRequest::post().set_payload(body).to_http_parts();
        let payload = input::Sent::from_request(&request, &mut payload).await.unwrap();
        input::long_body(payload, BODY_BYTES_MAX).await
    }

    #[actix_web::test]
    async fn as_many_of_the_longest_settlements_as_may_be_fit_into_one_request() {
        let request = read(ITEMS_MAX).await.unwrap();
        assert_eq!(request.items.len(), 100);
        for item in &request.items {
            assert!(item.read("").is_ok());
        }
        let refused = read(2 * ITEMS_MAX).await.map(|_| ()).unwrap_err();
        assert!(
            refused.to_string().contains("larger than 786432 bytes"),
            "{refused}"
        );
    }
}
