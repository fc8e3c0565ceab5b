//! A sender that is not built in: everything about it stands in a configuration.
//!
//! A description is part of a configuration that is read once, so it is kept for as long as the process lives. That
//! makes it as cheap to pass around as a provider that is built in.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use hookgate_signature::{Headers, Part, Scheme, Tolerance, Verified};

use crate::knowledge::{Knowledge, Places, Success, UrlUse};
use crate::provider::{Definition, Provider};
use crate::sample::{Sample, Template};
use crate::value::Value;
use crate::{Event, Mode, Reading, Unreadable, fields};

/// How long after an event a sender of which nothing is known may send its id again: as long as the longest that is
/// built in.
const RESEND_ASSUMED: Duration = Duration::from_hours(30 * 24);

/// What kind of sender it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It signs.
    Hmac,
    /// It sends a static text along.
    Token,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A header's value.
    Header(&'static str),
    /// A field of the JSON body, e.g. `data.id`.
    Body(&'static str),
}

/// A sender as a configuration describes it.
#[derive(Debug, Clone)]
pub struct Description {
    /// What kind of sender it is.
    pub kind: Kind,
    /// How it signs.
    pub scheme: Scheme,
    /// How far its signed timestamps may lie from the receiver's clock.
    pub tolerance: Tolerance,
    /// Where the id stands; without one a digest of body and type is the id.
    pub id: Option<Place>,
    /// Where the type stands.
    pub event_type: Option<Place>,
    /// Where the object's id stands.
    pub object: Option<Place>,
    /// Where the sender's time stands.
    pub time: Option<Place>,
    /// Where the account stands.
    pub account: Option<Place>,
    /// Where it stands whether it is live: `true`, `live` or `production`, in any case of letters; or a test: `false`,
    /// `test` or `sandbox`.
    pub mode: Option<Place>,
    /// How long it waits for an answer.
    pub answer_budget: Duration,
    /// Whether it sends again what failed.
    pub retries: bool,
    /// Whether it gives up at a 4xx.
    pub client_error_is_final: bool,
    /// The status for a bad signature, 400 or 401.
    pub refusal_status: u16,
}

/// A described sender. Two are equal only if they are the same description.
#[derive(Clone, Copy)]
pub struct Custom(&'static Parts);

struct Parts {
    description: Description,
    definition: Definition,
}

impl Provider {
    /// The sender of this description.
    pub fn custom(description: Description) -> Self {
        let definition = Definition {
            knowledge: knowledge(&description),
            read: |_| {
                Err(Unreadable::MalformedBody(
                    "its description is not at hand".to_owned(),
                ))
            },
            seals: None,
            signed_at: None,
            sign: None,
            samples: &[SAMPLE],
            sample,
        };
        Self::Custom(Custom(Box::leak(Box::new(Parts {
            description,
            definition,
        }))))
    }

    /// Under which names events are stored, whether their senders send again what failed, and for how long an id may
    /// come again. Described senders share theirs.
    pub fn stored_names() -> impl Iterator<Item = (&'static str, bool, Duration)> {
        let built_in = Self::ALL.into_iter().map(Self::knowledge);
        let built_in = built_in.map(|known| (known.name, known.retries(), known.resend_window()));
        let described = [
            (Kind::Hmac, true),
            (Kind::Hmac, false),
            (Kind::Token, true),
            (Kind::Token, false),
        ];
        built_in.chain(described.map(|(kind, retries)| (name(kind, retries), retries, RESEND_ASSUMED)))
    }
}

/// Whoever finds a forward whose replica died has only the stored name to tell if anybody will send it again.
fn name(kind: Kind, retries: bool) -> &'static str {
    match (kind, retries) {
        (Kind::Hmac, true) => "hmac",
        (Kind::Hmac, false) => "hmac_no_retry",
        (Kind::Token, true) => "token",
        (Kind::Token, false) => "token_no_retry",
    }
}

fn knowledge(description: &Description) -> Knowledge {
    let place = |place: Option<Place>| match place {
        Some(Place::Header(_)) => "a header",
        Some(Place::Body(_)) => "a field of the body",
        None => "",
    };
    Knowledge {
        name: name(description.kind, description.retries),
        title: "a sender of your own",
        scheme: description.scheme,
        tolerance: description.tolerance,
        url: match description.scheme {
            Scheme::SignedText(scheme) if scheme.parts.contains(&Part::Url) => UrlUse::Whole,
            _ => UrlUse::Unused,
        },
        places: Places {
            id: place(description.id),
            event_type: place(description.event_type),
            object: place(description.object),
            time: place(description.time),
            account: place(description.account),
            mode: place(description.mode),
        },
        answer_budget: description.answer_budget,
        answer_budget_is_published: false,
        success: Success::Ok,
        automatic_retries: description.retries.then_some(RESEND_ASSUMED),
        manual_resend: Some(RESEND_ASSUMED),
        retries_in_words: "as configured",
        gives_up: "",
        client_error_is_final: description.client_error_is_final,
        refusal_status: description.refusal_status,
        body_bytes_max: None,
        id_is_signed: description.signs_id(),
        content_path: None,
        batches: false,
        handshake: "",
        forwarded_headers: forwarded(description),
        dev_secrets: &[],
        sources: &[],
    }
}

/// The headers that a signature needs, and those that say what the event is. A token is a password: it is neither kept
/// nor handed on.
fn forwarded(description: &Description) -> &'static [&'static str] {
    let mut headers = match description.kind {
        Kind::Hmac => description.scheme.headers(),
        Kind::Token => Vec::new(),
    };
    let places = [
        description.id,
        description.event_type,
        description.object,
        description.time,
        description.account,
        description.mode,
    ];
    headers.extend(places.into_iter().flatten().filter_map(|place| match place {
        Place::Header(name) => Some(name),
        Place::Body(_) => None,
    }));
    headers.retain(
        |name| !matches!(description.scheme, Scheme::Token(token) if token.header.eq_ignore_ascii_case(name)),
    );
    headers.sort_unstable();
    headers.dedup();
    headers.leak()
}

impl Description {
    /// Whether an id of this sender is among what it signs. A token signs nothing. An id in a header counts only if no byte
    /// can pass between it and its neighbours: fixed text on both sides, and a body that has to be JSON.
    fn signs_id(&self) -> bool {
        match (self.id, self.kind) {
            (_, Kind::Token) => false,
            (None | Some(Place::Body(_)), Kind::Hmac) => self.scheme.signs_body(),
            (Some(Place::Header(id)), Kind::Hmac) => self.scheme.signs_alone(id) && self.reads_body(),
        }
    }

    fn reads_body(&self) -> bool {
        let places = [self.event_type, self.object, self.time, self.account, self.mode];
        places
            .into_iter()
            .flatten()
            .any(|place| matches!(place, Place::Body(_)))
    }
}

impl Custom {
    pub(super) fn definition(self) -> &'static Definition {
        &self.0.definition
    }

    /// What the description points at. The body has to be JSON only if something is sought in it.
    pub(super) fn read(self, verified: &Verified<'_>) -> Result<Reading, Unreadable> {
        let description = &self.0.description;
        let (headers, body) = (verified.headers(), verified.body());
        let value = |place: Option<Place>| value(place, headers, body);
        let event_type = value(description.event_type)?;
        let event = match description.id {
            None => Event::without_id(&event_type, body.clone()),
            Some(_) => Event::new(value(description.id)?.own_event_id()?, body.clone()),
        };
        Ok(event
            .with_type(&event_type)
            .with_object(&value(description.object)?)
            .with_account(&value(description.account)?)
            .with_mode(mode(&value(description.mode)?))
            .with_time(&value(description.time)?)
            .into())
    }
}

fn value<'a>(place: Option<Place>, headers: &Headers<'a>, body: &'a [u8]) -> Result<Value<'a>, Unreadable> {
    match place {
        None => Ok(Value::Absent),
        Some(Place::Header(name)) => Ok(Value::from_header(headers, name)),
        Some(Place::Body(path)) => fields::read(body, &[path]).map(|[value]| value),
    }
}

fn mode(value: &Value<'_>) -> Mode {
    let is_one_of = |words: &[&str]| match value {
        Value::Text(text) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => false,
    };
    match value {
        Value::Bool(true) => Mode::Live,
        Value::Bool(false) => Mode::Test,
        _ if is_one_of(&["true", "live", "production", "prod"]) => Mode::Live,
        _ if is_one_of(&["false", "test", "sandbox"]) => Mode::Test,
        _ => Mode::Unknown,
    }
}

const SAMPLE: Template = Template {
    event_type: "sample",
    body: "{}",
};

/// Nobody knows what such a sender sends; its own saved requests are its samples.
fn sample(template: &Template, serial: u128, _: i64) -> Sample {
    Sample {
        event_type: template.event_type,
        headers: vec![("Content-Type", "application/json".to_owned())],
        body: template.fill(&[]),
        id: format!("{serial:032x}"),
    }
}

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.description.fmt(f)
    }
}
