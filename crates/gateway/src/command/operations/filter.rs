//! Flags that say which events are meant, and how each is read. A wrong one is answered with the accepted form.

use clap::Args;
use hookgate_ledger::{Change, Cursor, Filter, Reason, State, UnixMicros};
use hookgate_webhook::{EventKey, SourceName};

use crate::clock;
use crate::view::{moment, place};

/// Which events, but for their state.
#[derive(Debug, Args)]
pub(super) struct FilterArgs {
    /// Received by this source
    #[arg(long, value_name = "NAME", value_parser = source)]
    source: Option<SourceName>,
    /// Of exactly this type, e.g. invoice.paid
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// About exactly this object
    #[arg(long, value_name = "ID")]
    object: Option<String>,
    /// Received then or later: RFC 3339, or an age such as 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<UnixMicros>,
    /// Received before: RFC 3339, or an age
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<UnixMicros>,
    /// Whose last error contains this text, whatever its case
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

/// The flags above, to be named in a group.
pub(super) const FILTERS: [&str; 6] = ["source", "event_type", "object", "since", "until", "error"];

impl FilterArgs {
    /// As the ledger reads it.
    pub(super) fn filter(&self, states: Vec<State>) -> Filter {
        Filter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            object_id: self.object.clone(),
            states,
            since: self.since,
            until: self.until,
            error: self.error.clone(),
        }
    }
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// At most so many events
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) limit: u32,
    /// Where to go on, as the page before said
    #[arg(long, value_name = "CURSOR", value_parser = cursor)]
    pub(super) cursor: Option<Cursor>,
}

/// A state by its name.
pub(super) fn state(text: &str) -> Result<State, String> {
    State::parse(text).ok_or_else(|| {
        let names: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A state that a replay starts from.
pub(super) fn replayable(text: &str) -> Result<State, String> {
    State::parse(text)
        .filter(|state| Change::Replay.starts_from().contains(state))
        .ok_or_else(|| format!("expected {}", Change::Replay.starts_from_in_words()))
}

/// The name of an event.
pub(super) fn event(text: &str) -> Result<EventKey, String> {
    place::key_of(text).ok_or_else(|| "expected source:event_id, e.g. stripe:evt_1".to_owned())
}

/// Who asks where nothing says who.
pub(super) const UNKNOWN: &str = "unknown";

/// A reason that says something.
pub(super) fn why(text: &str) -> Result<String, String> {
    let why = Reason::why(text)
        .map_err(|bad| format!("expected {bad}: it is written down for those who ask later"))?;
    Ok(why.to_owned())
}

/// Who asks; a login that has no name is unknown.
pub(super) fn who(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Ok(UNKNOWN.to_owned()),
        name => Reason::who(name)
            .map(str::to_owned)
            .map_err(|bad| format!("expected {bad}")),
    }
}

/// The name of a source.
pub(super) fn source(text: &str) -> Result<SourceName, String> {
    SourceName::parse(text).map_err(|error| error.to_string())
}

/// A moment.
pub(super) fn when(text: &str) -> Result<UnixMicros, String> {
    moment::read(text, clock::unix_micros())
        .ok_or_else(|| "expected a time such as 2026-01-31T12:00:00Z, or an age such as 2h or 7d".to_owned())
}

fn cursor(text: &str) -> Result<Cursor, String> {
    place::read(text).ok_or_else(|| "expected the cursor that the page before ended with".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_without_a_name_is_unknown_and_one_that_would_spoil_a_line_is_refused() {
        assert_eq!(who(" maria "), Ok("maria".to_owned()));
        assert_eq!(who(""), Ok("unknown".to_owned()));
        assert!(who("a\nb").is_err());
        assert!(why("a\u{1b}[2Jb").is_err_and(|said| said.starts_with("expected 1 to 500 characters")));
    }
}
