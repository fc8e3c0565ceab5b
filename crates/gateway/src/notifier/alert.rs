//! The words of an alert. Keys and reasons come from outside, so they are shortened, and what would be markup
//! for the reader is written out: an id must not be able to call everybody in a channel.

use hookgate_ledger::Deaths;

/// Sources named in an alert; the others are summed up.
const SOURCES_MAX: usize = 10;

/// Characters of a reason or a key that are shown.
const SHOWN_MAX: usize = 200;

/// What people are told; `None` if nobody died.
pub(super) fn text(deaths: &Deaths) -> Option<String> {
    let latest = deaths.latest.as_ref()?;
    let total: u64 = deaths.by_source.values().sum();
    let count = match total {
        1 => "1 event".to_owned(),
        Deaths::COUNT_MAX.. => format!("at least {total} events"),
        _ => format!("{total} events"),
    };
    let key = plain(&latest.key.to_string());
    let reason = match latest.reason.is_empty() {
        true => "no reason is known".to_owned(),
        false => plain(&latest.reason),
    };
    Some(format!(
        "hookgate: {count} went to the dead letters ({}).\n\
         The latest is {key}: {reason}.\n\
         Look with `hookgate dead-letters list`; when the cause is mended, `hookgate dead-letters redrive --all --why …`.",
        sources(deaths)
    ))
}

/// The sources with the most deaths first.
fn sources(deaths: &Deaths) -> String {
    let mut sources: Vec<_> = deaths.by_source.iter().collect();
    sources.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let others = sources.len().saturating_sub(SOURCES_MAX);
    let mut named: Vec<String> = sources
        .iter()
        .take(SOURCES_MAX)
        .map(|(source, count)| format!("{source} {count}"))
        .collect();
    if others > 0 {
        named.push(format!("and {others} more sources"));
    }
    named.join(", ")
}

fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (index, character) in text.chars().enumerate() {
        match character {
            _ if index == SHOWN_MAX => {
                plain.push('…');
                break;
            }
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            control if control.is_control() => plain.push(' '),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hookgate_ledger::{Death, UnixMicros};
    use hookgate_webhook::{EventId, EventKey, SourceName};

    use super::*;

    fn source(name: &str) -> SourceName {
        SourceName::parse(name).expect("a source name")
    }

    fn deaths(by_source: &[(&str, u64)], id: &str, reason: &str) -> Deaths {
        let key = EventKey {
            source: source(by_source[0].0),
            id: EventId::parse(id).expect("an event id"),
        };
        let latest = Death {
            key,
            reason: reason.to_owned(),
            at: UnixMicros(1),
        };
        Deaths {
            by_source: by_source
                .iter()
                .map(|&(name, count)| (source(name), count))
                .collect::<BTreeMap<_, _>>(),
            latest: Some(latest),
        }
    }

    #[test]
    fn it_says_how_many_of_which_source_the_latest_and_what_to_do() {
        let text = text(&deaths(
            &[("github", 2), ("stripe", 48)],
            "evt_1",
            "the target answered 500",
        ));
        assert_eq!(
            text.as_deref(),
            Some(
                "hookgate: 50 events went to the dead letters (stripe 48, github 2).\n\
                 The latest is github:evt_1: the target answered 500.\n\
                 Look with `hookgate dead-letters list`; when the cause is mended, `hookgate dead-letters redrive --all --why …`."
            )
        );
        assert_eq!(super::text(&Deaths::default()), None);
    }

    #[test]
    fn a_number_beyond_counting_is_a_least() {
        let text = text(&deaths(&[("stripe", Deaths::COUNT_MAX)], "evt_1", "")).expect("somebody died");
        assert!(text.contains("at least 10000 events"), "{text}");
        assert!(text.contains("no reason is known"), "{text}");
    }

    #[test]
    fn what_comes_from_outside_is_no_markup_and_not_long() {
        let text = text(&deaths(&[("stripe", 1)], "<!channel>&", &"x\n".repeat(500))).expect("somebody died");
        assert!(text.contains("1 event went"), "{text}");
        assert!(text.contains("stripe:&lt;!channel&gt;&amp;:"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.len() < 600, "{text}");
    }

    #[test]
    fn many_sources_are_summed_up() {
        let names: Vec<String> = (0..14).map(|n| format!("shop-{n}")).collect();
        let counts: Vec<(&str, u64)> = names
            .iter()
            .zip(1..)
            .map(|(name, count)| (name.as_str(), count))
            .collect();
        let text = text(&deaths(&counts, "evt_1", "no")).expect("somebody died");
        assert!(text.contains("(shop-13 14, shop-12 13,"), "{text}");
        assert!(text.contains(", and 4 more sources)"), "{text}");
    }
}
