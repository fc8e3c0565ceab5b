//! Moments as people write and read them: RFC 3339, or how long ago.

use hookgate_ledger::UnixMicros;
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Six digits after the second: as exact as the ledger, and sorted as text in the order of time.
const SHOWN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// In UTC, with microseconds.
pub fn show(moment: UnixMicros) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(moment.0) * 1000).ok();
    // A moment that has no date is still told.
    time.and_then(|time| time.format(SHOWN).ok())
        .unwrap_or_else(|| format!("{} µs", moment.0))
}

/// Reads a date and time with offset, such as `2026-01-31T12:00:00Z`, or an age, such as `2h` or `1d 6h`.
/// `None` if it is neither.
pub fn read(text: &str, now: UnixMicros) -> Option<UnixMicros> {
    let text = text.trim();
    if let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) {
        return i64::try_from(time.unix_timestamp_nanos() / 1000)
            .ok()
            .map(UnixMicros);
    }
    let age = humantime::parse_duration(text).ok()?;
    let age = i64::try_from(age.as_micros()).ok()?;
    Some(UnixMicros(now.0.saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMicros = UnixMicros(1_700_000_000_123_456);

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(read(text, NOW), expected.map(UnixMicros), "{text}");
    }

    #[test]
    fn what_is_shown_can_be_read_and_means_the_same() {
        assert_eq!(show(NOW), "2023-11-14T22:13:20.123456Z");
        check(&show(NOW), Some(NOW.0));
        check("2023-11-14T23:13:20+01:00", Some(1_700_000_000_000_000));
    }

    #[test]
    fn an_age_counts_back_from_now() {
        check("2h", Some(NOW.0 - 7_200_000_000));
        check(" 1d 6h ", Some(NOW.0 - 108_000_000_000));
        check("0s", Some(NOW.0));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "yesterday",
            "2023-11-14",
            "2",
            "-2h",
            "99999999999999y",
            "2023-11-14T22:13:20",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn no_moment_is_too_far_to_be_shown() {
        assert_eq!(show(UnixMicros(i64::MAX)), "9223372036854775807 µs");
        assert_eq!(show(UnixMicros(0)), "1970-01-01T00:00:00.000000Z");
    }
}
