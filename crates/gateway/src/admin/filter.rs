//! Which events are meant: the same words in a query and in the `filter` of a bulk change.

use hookgate_ledger::{Cursor, Filter, State, UnixMicros};
use hookgate_webhook::SourceName;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::problem::{Kind, Problem};
use crate::clock;
use crate::view::{moment, place};

/// Events of one page, unless the caller says otherwise, and at most.
const LIMIT: u32 = 50;
const LIMIT_MAX: u32 = 200;

/// Longest type, object or error text searched for, in bytes.
const TEXT_BYTES_MAX: usize = 255;

/// What a time looks like.
const TIME: &str = "a time such as 2026-01-31T23:59:59Z, or an age such as 2h";

/// The query of a list of events. Everything given must be true of an event.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Received by this source.
    source: Option<String>,
    /// Of exactly this type.
    r#type: Option<String>,
    /// About exactly this object.
    object: Option<String>,
    /// In one of these states: repeated, or separated by commas.
    #[param(value_type = Option<Vec<String>>)]
    state: Option<Vec<String>>,
    /// Received at this time or later: RFC 3339, or an age such as `2h`.
    since: Option<String>,
    /// Received before this time: RFC 3339, or an age such as `2h`.
    until: Option<String>,
    /// The last error contains this text, whatever its case.
    error: Option<String>,
    /// Events of one page, from 1 to 200; 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// The query of the list of dead letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeadLettersQuery {
    /// Received by this source.
    source: Option<String>,
    /// Of exactly this type.
    r#type: Option<String>,
    /// About exactly this object.
    object: Option<String>,
    /// Received at this time or later: RFC 3339, or an age such as `2h`.
    since: Option<String>,
    /// Received before this time: RFC 3339, or an age such as `2h`.
    until: Option<String>,
    /// The last error contains this text, whatever its case.
    error: Option<String>,
    /// Events of one page, from 1 to 200; 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// Where to go on: `next` of the page before.
    cursor: Option<String>,
}

/// Which events a bulk change is about. Everything given must be true of an event.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkFilter {
    /// Received by this source.
    source: Option<String>,
    /// Of exactly this type.
    r#type: Option<String>,
    /// About exactly this object.
    object: Option<String>,
    /// In one of these states: for a replay `done`, which is meant if nothing is said, or `twin`; for the others `dead`.
    state: Option<Vec<String>>,
    /// Received at this time or later: RFC 3339, or an age such as `2h`.
    since: Option<String>,
    /// Received before this time: RFC 3339, or an age such as `2h`.
    until: Option<String>,
    /// The last error contains this text, whatever its case.
    error: Option<String>,
}

/// One page that was asked for.
pub(super) struct Page {
    /// Of which events.
    pub(super) filter: Filter,
    /// From where on.
    pub(super) after: Option<Cursor>,
    /// How many.
    pub(super) limit: u32,
}

impl EventsQuery {
    /// The page that is meant.
    pub(super) fn page(self) -> Result<Page, Problem> {
        let states = self.state.unwrap_or_default();
        let states = states.iter().map(|name| state(name)).collect::<Result<_, _>>()?;
        let filter = BulkFilter {
            source: self.source,
            r#type: self.r#type,
            object: self.object,
            state: None,
            since: self.since,
            until: self.until,
            error: self.error,
        };
        Ok(Page {
            filter: filter.read("", states)?,
            after: cursor(self.cursor.as_deref(), place::read, "next")?,
            limit: limit(self.limit.as_deref())?,
        })
    }
}

impl DeadLettersQuery {
    /// The page that is meant.
    pub(super) fn page(self) -> Result<Page, Problem> {
        let query = EventsQuery {
            source: self.source,
            r#type: self.r#type,
            object: self.object,
            state: Some(vec![State::Dead.to_string()]),
            since: self.since,
            until: self.until,
            error: self.error,
            limit: self.limit,
            cursor: self.cursor,
        };
        query.page()
    }
}

impl BulkFilter {
    /// The states that are named, each one of those that the change starts from; none, if nothing is said of them.
    pub(super) fn states(&self, possible: &[State]) -> Result<Vec<State>, Problem> {
        let Some(names) = &self.state else {
            return Ok(Vec::new());
        };
        let named = names
            .iter()
            .map(|name| State::parse(name).filter(|state| possible.contains(state)));
        let states: Option<Vec<State>> = named.collect();
        // An empty list would mean what nothing said means, and that is not what it says.
        states.filter(|states| !states.is_empty()).ok_or_else(|| {
            let all: Vec<_> = possible.iter().map(|state| state.as_str()).collect();
            Problem::value(
                "filter.state",
                format!("a list of one or more of {}", all.join(", ")),
            )
        })
    }

    /// The filter that is meant, with its events in these states. `at` stands before the names of fields in problems.
    pub(super) fn read(self, at: &str, states: Vec<State>) -> Result<Filter, Problem> {
        let (since, until, now) = (&self.since, &self.until, clock::unix_micros());
        let filter = Filter {
            source: source(&format!("{at}source"), self.source.as_deref())?,
            event_type: text(&format!("{at}type"), self.r#type)?,
            object_id: text(&format!("{at}object"), self.object)?,
            states,
            since: moment(&format!("{at}since"), since.as_deref(), now)?,
            until: moment(&format!("{at}until"), until.as_deref(), now)?,
            error: text(&format!("{at}error"), self.error)?,
        };
        match filter
            .since
            .zip(filter.until)
            .is_some_and(|(since, until)| since >= until)
        {
            true => Err(Problem::value(format!("{at}until"), "a time after since")),
            false => Ok(filter),
        }
    }
}

fn state(name: &str) -> Result<State, Problem> {
    State::parse(name).ok_or_else(|| {
        let all = State::ALL.map(State::as_str).join(", ");
        Problem::value("state", format!("one or more of {all}"))
    })
}

/// The name of a source, which need not be configured any more.
pub(super) fn source(field: &str, name: Option<&str>) -> Result<Option<SourceName>, Problem> {
    let parse = |name| SourceName::parse(name).map_err(|bad| Problem::value(field, bad.0));
    name.map(parse).transpose()
}

/// A moment, if one is given; `now` is what an age counts back from.
pub(super) fn moment(
    field: &str,
    text: Option<&str>,
    now: UnixMicros,
) -> Result<Option<UnixMicros>, Problem> {
    let read = |text| moment::read(text, now).ok_or_else(|| Problem::value(field, TIME));
    text.map(read).transpose()
}

/// Where to go on, if that is given; `origin` names what an answer calls it.
pub(super) fn cursor<T>(
    text: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
    origin: &str,
) -> Result<Option<T>, Problem> {
    let read = |text| {
        read(text).ok_or_else(|| {
            let allowed = format!("{origin} of an earlier answer of this list, as it is");
            let detail = format!("this cursor is not one of this list: expected {allowed}");
            Problem::new(Kind::MalformedCursor, detail).at("cursor", allowed)
        })
    };
    text.map(read).transpose()
}

fn text(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    let fits =
        |text: &String| (1..=TEXT_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    match text.as_ref().is_none_or(fits) {
        true => Ok(text),
        false => Err(Problem::value(
            field,
            format!("1 to {TEXT_BYTES_MAX} bytes and no control characters"),
        )),
    }
}

fn limit(text: Option<&str>) -> Result<u32, Problem> {
    let Some(text) = text else { return Ok(LIMIT) };
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| Problem::value("limit", format!("a whole number from 1 to {LIMIT_MAX}")))
}
