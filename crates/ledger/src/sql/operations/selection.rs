//! How a filter becomes a statement's condition. Only what is asked for stands in it, so that the database
//! plans for just that; the values are always bound in the same places:
//!
//! `$1` source, `$2` type, `$3` object, `$4` since, `$5` until, `$6` error text, `$7` to `$9` the place after
//! which to go on (time, source, id), `$10` limit, `$11` and `$12` the id and generation of one event.

use std::time::Duration;

use hookgate_webhook::{EventId, SourceName};
use sqlx::query::QueryAs;
use sqlx::{Database, Encode, Type};

use crate::{Cursor, Filter, State, UnixMicros};

/// The latest moment that databases and people can name: the end of the year 9999.
const MICROS_MAX: i64 = 253_402_300_799_999_999;

/// In which order events are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    NewestFirst,
    OldestFirst,
}

/// What a dialect says in its own words. Moments are bound as microseconds since 1970.
pub(crate) struct Phrases {
    /// Received at `$4` or later.
    pub(crate) since: &'static str,
    /// Received before `$5`.
    pub(crate) until: &'static str,
    /// The error contains `$6`.
    pub(crate) error: &'static str,
    /// Before the place `$7` to `$9`.
    pub(crate) older: &'static str,
    /// After the place `$7` to `$9`.
    pub(crate) younger: &'static str,
    /// The event `$11`, with the generation `$12` if that is given.
    pub(crate) one: &'static str,
}

/// Some events, in an order, from a place on.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) filter: Filter,
    pub(crate) direction: Direction,
    pub(crate) after: Option<Cursor>,
    pub(crate) limit: u32,
    /// Just this event, with this generation.
    pub(crate) one: Option<(EventId, Option<u32>)>,
    /// Nothing: states were asked for, and none of them can be.
    pub(crate) in_no_state: bool,
    /// Only events whose body is still there.
    pub(crate) with_body: bool,
    /// How long the statement may take, where the server does not watch that itself.
    pub(crate) within: Duration,
}

/// Minutes whose counts are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) since: UnixMicros,
    pub(crate) until: UnixMicros,
    pub(crate) source: Option<SourceName>,
    /// As [`Selection::within`].
    pub(crate) within: Duration,
}

impl Selection {
    /// All events of the filter.
    pub(crate) fn of(filter: Filter, direction: Direction) -> Self {
        Self {
            filter,
            direction,
            after: None,
            limit: 1,
            one: None,
            in_no_state: false,
            with_body: false,
            within: Duration::MAX,
        }
    }

    /// No event is in none of the states; and no text in a database contains a zero byte, and some refuse to be
    /// asked for one.
    pub(crate) fn is_impossible(&self) -> bool {
        let Filter {
            event_type,
            object_id,
            error,
            ..
        } = &self.filter;
        let texts = [event_type, object_id, error];
        self.in_no_state || texts.into_iter().flatten().any(|text| text.contains('\0'))
    }

    /// What an event must meet.
    pub(crate) fn condition(&self, phrases: &Phrases) -> String {
        let filter = &self.filter;
        let place = match self.direction {
            Direction::NewestFirst => phrases.older,
            Direction::OldestFirst => phrases.younger,
        };
        let states = self.in_state();
        let all = [
            (filter.source.is_some(), "source = $1"),
            (filter.event_type.is_some(), "event_type = $2"),
            (filter.object_id.is_some(), "object_id = $3"),
            (filter.since.is_some(), phrases.since),
            (filter.until.is_some(), phrases.until),
            (filter.error.is_some(), phrases.error),
            (self.after.is_some(), place),
            (self.one.is_some(), phrases.one),
            (self.with_body, "pruned_at IS NULL"),
            (!states.is_empty(), &states),
        ];
        let asked: Vec<&str> = all
            .into_iter()
            .filter(|(asked, _)| *asked)
            .map(|(_, text)| text)
            .collect();
        match asked.is_empty() {
            true => "true".into(),
            false => asked.join(" AND "),
        }
    }

    /// That the state of an event is one of those asked for; empty if any will do.
    pub(crate) fn in_state(&self) -> String {
        states(&self.filter.states)
    }

    /// The order and the limit. What is selected as `received_at` is a number; the index is sorted by the column.
    pub(crate) fn order(&self) -> &'static str {
        match self.direction {
            Direction::NewestFirst => {
                "ORDER BY webhook_events.received_at DESC, source DESC, event_id DESC LIMIT $10"
            }
            Direction::OldestFirst => "ORDER BY webhook_events.received_at, source, event_id LIMIT $10",
        }
    }

    /// The statement with `$1` to `$12` bound.
    pub(crate) fn bind<'q, DB, O>(
        &self,
        query: QueryAs<'q, DB, O, DB::Arguments>,
    ) -> QueryAs<'q, DB, O, DB::Arguments>
    where
        DB: Database,
        Option<String>: Encode<'q, DB> + Type<DB>,
        Option<i64>: Encode<'q, DB> + Type<DB>,
    {
        let filter = &self.filter;
        let place = self.after.as_ref();
        let one = self.one.as_ref();
        query
            .bind(filter.source.as_ref().map(|source| source.as_str().to_owned()))
            .bind(filter.event_type.clone())
            .bind(filter.object_id.clone())
            .bind(filter.since.map(micros))
            .bind(filter.until.map(micros))
            .bind(filter.error.clone())
            .bind(place.map(|place| micros(place.received_at)))
            .bind(place.map(|place| place.key.source.as_str().to_owned()))
            .bind(place.map(|place| place.key.id.as_str().to_owned()))
            .bind(Some(i64::from(self.limit)))
            .bind(one.map(|(id, _)| id.as_str().to_owned()))
            .bind(one.and_then(|(_, generation)| generation.map(i64::from)))
    }
}

/// A moment as it is bound. One that no database can name is as good as the first or the last.
pub(crate) fn micros(moment: UnixMicros) -> i64 {
    moment.0.clamp(0, MICROS_MAX)
}

/// The states are spelt out, since an index of one state serves only a statement that names it.
fn states(wanted: &[State]) -> String {
    match wanted {
        [] => String::new(),
        [one] => format!("state = '{one}'"),
        several => {
            let names: Vec<String> = several.iter().map(|state| format!("'{state}'")).collect();
            format!("state IN ({})", names.join(", "))
        }
    }
}
