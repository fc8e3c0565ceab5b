//! The provider's own time of an event, in the two forms that providers write.

use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime, UtcOffset};

use crate::Field;
use crate::value::Value;

/// Numbers from here on are milliseconds: as seconds they would lie beyond the year 5138, as milliseconds
/// they begin in 1973.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// The last millisecond of year 9999.
const LAST_MS: i64 = 253_402_300_799_999;

/// The provider's own time of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderTime {
    /// Exactly as in the source.
    pub text: Box<str>,
    /// Milliseconds since 1970 UTC, within years 1970 to 9999.
    pub unix_ms: i64,
}

impl ProviderTime {
    /// Unix seconds or milliseconds as a whole number, or RFC 3339 with any fraction. `None` for anything
    /// else, or out of range.
    pub(crate) fn read(value: &Value<'_>) -> Option<Self> {
        let (text, unix_ms) = match value {
            Value::Number(digits) => (*digits, from_number(digits)?),
            Value::Text(text) => (text.as_ref(), from_rfc3339(text)?),
            Value::Absent | Value::Bool(_) | Value::Compound | Value::Broken(_) => return None,
        };
        Field::parse(text)?;
        Some(Self {
            text: text.into(),
            unix_ms,
        })
    }
}

impl ProviderTime {
    /// A date and a time of day without a zone, with a space or a `T` between them and any fraction, in the zone
    /// that the provider means.
    pub(crate) fn read_local(value: &Value<'_>, zone: UtcOffset) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        Field::parse(text)?;
        Some(Self {
            text: text.as_ref().into(),
            unix_ms: from_local(text, zone)?,
        })
    }
}

fn from_local(text: &str, zone: UtcOffset) -> Option<i64> {
    let form = format_description!(
        version = 2,
        "[year]-[month]-[day][first [ ] [T]][hour]:[minute]:[second][optional [.[subsecond]]]"
    );
    let time = PrimitiveDateTime::parse(text, form).ok()?.assume_offset(zone);
    in_range(time)
}

fn from_number(digits: &str) -> Option<i64> {
    let number = digits.parse().ok().filter(|number| *number >= 0)?;
    let unix_ms = match number {
        ..MILLISECONDS_FROM => number * 1000,
        _ => number,
    };
    (unix_ms <= LAST_MS).then_some(unix_ms)
}

fn from_rfc3339(text: &str) -> Option<i64> {
    in_range(OffsetDateTime::parse(text, &Rfc3339).ok()?)
}

fn in_range(time: OffsetDateTime) -> Option<i64> {
    let unix_ms = time.unix_timestamp_nanos().div_euclid(1_000_000);
    // A local time in year 9999 can lie in the next one of UTC.
    i64::try_from(unix_ms)
        .ok()
        .filter(|unix_ms| (0..=LAST_MS).contains(unix_ms))
}
