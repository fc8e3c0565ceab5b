//! Realistic deliveries for `hookgate send`, the dev mode and the benches.
//!
//! A sample is a provider's documented body with its ids and times filled in. The same serial and clock
//! give the same bytes, another serial gives another event about another object.

use bytes::Bytes;
use time::format_description::well_known::Rfc3339;
use time::formatting::Formattable;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// An unsigned delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The event's id, unique by the serial; also what a scheme signs as the message id.
    pub id: String,
    /// The type, e.g. `invoice.paid`.
    pub event_type: &'static str,
    /// What the provider sends beside the signature: content type, user agent, its own names for id and
    /// type.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

/// There is no sample of this type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no sample of this type; there are {0}")]
pub struct UnknownType(pub String);

/// A body with places of the form `{{name}}`, which cannot occur in JSON by itself.
pub(crate) struct Template {
    pub(crate) event_type: &'static str,
    pub(crate) body: &'static str,
}

impl Template {
    pub(crate) fn fill(&self, places: &[(&str, &str)]) -> Bytes {
        let mut filled = String::with_capacity(self.body.len() + 64);
        // The last line break is the file's, not the provider's.
        let mut rest = self.body.trim_end();
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").expect("every place is closed");
            let place = places.iter().find(|(known, _)| *known == name);
            filled.push_str(before);
            filled.push_str(place.expect("every place of a sample is known to its provider").1);
            rest = after;
        }
        filled.push_str(rest);
        Bytes::from(filled)
    }
}

/// A serial in the form of a UUID.
pub(crate) fn uuid(serial: u128) -> String {
    let hex = format!("{serial:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

/// Nineteen digits, as Shopify numbers its objects: above what a float holds exactly.
pub(crate) fn nineteen_digits(serial: u128) -> String {
    const FIRST: u128 = 1_000_000_000_000_000_000;
    (FIRST + serial % (9 * FIRST)).to_string()
}

/// RFC 3339 in UTC; 1970 for a clock outside the years that it can write.
pub(crate) fn rfc3339(unix_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000)
        .ok()
        .and_then(|time| time.format(&Rfc3339).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

/// RFC 3339 in UTC with six digits of a second, as PHP and Python write it.
pub(crate) fn rfc3339_micros(unix_ms: i64) -> String {
    let form = format_description!(
        version = 2,
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
    );
    written(unix_ms, UtcOffset::UTC, &form)
}

/// A time in the provider's zone and spelling; 1970 for a clock that is out of range.
pub(crate) fn written(unix_ms: i64, zone: UtcOffset, form: &(impl Formattable + ?Sized)) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000)
        .ok()
        .and_then(|time| time.checked_to_offset(zone))
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
        .format(form)
        .unwrap_or_default()
}
