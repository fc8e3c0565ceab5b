//! Signatures that are good for long: whoever got hold of a delivery can send it again all that time.

use std::time::Duration;

use hookgate_signature::Tolerance;

use super::{Advice, shown};
use crate::config::SourceConfig;

/// Clocks are not further apart, and no queue on the way is longer.
const LONG: Duration = Duration::from_hours(1);

/// Of one source.
pub(super) fn advice(source: &SourceConfig) -> Option<Advice> {
    if !source.provider.knowledge().signs_time() {
        return None;
    }
    let name = &source.name;
    let sentence = match source.tolerance {
        Tolerance::Off => format!(
            "source {name}: tolerance = off: a delivery that somebody recorded is taken at any time, and counts anew once its \
             row is deleted: take the setting out, or set a limit such as 10m"
        ),
        Tolerance::Past(limit) | Tolerance::Both(limit) if limit > LONG => format!(
            "source {name}: tolerance = {} is long: a delivery that somebody recorded can be sent again all that time; mend \
             the clocks rather, and set it to 10m or less",
            shown(limit)
        ),
        // Where the provider itself asks for no limit, its late retries carry old times.
        Tolerance::OnRequest | Tolerance::Past(_) | Tolerance::Both(_) => return None,
    };
    Some(Advice::warning(sentence))
}
