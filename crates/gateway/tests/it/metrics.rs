//! The metrics page: every name and label of the contract from the start, and never a word from outside.

use std::collections::BTreeMap;

use hookgate_webhook::Provider;
use reqwest::Method;

use crate::embedded::Embedded;
use crate::provider::{self, SECRET};

const SOURCES: [&str; 4] = ["github", "shopify", "standard_webhooks", "stripe"];

/// Counters by source and a second label with its values; the sources include the unknown one.
const COUNTED: [(&str, &str, &[&str], bool); 6] = [
    (
        "hookgate_requests_total",
        "status",
        &[
            "200", "400", "401", "404", "405", "408", "409", "413", "415", "500", "503",
        ],
        true,
    ),
    (
        "hookgate_deliveries_total",
        "outcome",
        &[
            "accepted",
            "duplicate",
            "in_flight",
            "twin",
            "refused",
            "failed",
            "unavailable",
        ],
        true,
    ),
    (
        "hookgate_refusals_total",
        "reason",
        &[
            "missing_signature",
            "malformed_signature",
            "bad_signature",
            "stale_timestamp",
            "future_timestamp",
            "malformed_body",
            "missing_event_id",
            "bad_event_id",
            "unknown_source",
            "method_not_allowed",
            "request_timeout",
            "body_too_large",
            "unsupported_encoding",
        ],
        true,
    ),
    (
        "hookgate_duplicates_skipped_total",
        "decided_by",
        &["claim", "ledger", "content"],
        false,
    ),
    (
        "hookgate_attempts_total",
        "outcome",
        &["done", "retry", "dead"],
        false,
    ),
    ("hookgate_ignored_total", "reason", &["mode", "account"], false),
];

const BY_SOURCE: [&str; 5] = [
    "hookgate_twins_shadow_total",
    "hookgate_replays_suspected_total",
    "hookgate_claim_fallbacks_total",
    "hookgate_delivery_duration_seconds_count",
    "hookgate_handler_duration_seconds_count",
];

const ALONE: [&str; 10] = [
    "hookgate_claims_taken_over_total",
    "hookgate_claims_lost_total",
    "hookgate_claim_duration_seconds_count",
    "hookgate_append_duration_seconds_count",
    "hookgate_queue_oldest_seconds",
    "hookgate_queue_events{state=\"queued\"}",
    "hookgate_swept_rows_total{action=\"pruned\"}",
    "hookgate_swept_rows_total{action=\"deleted\"}",
    "hookgate_notifications_total{outcome=\"sent\"}",
    "hookgate_notifications_total{outcome=\"failed\"}",
];

const STATES: [&str; 8] = [
    "queued",
    "running",
    "done",
    "dead",
    "discarded",
    "parked",
    "twin",
    "failed",
];

#[tokio::test]
async fn every_series_of_the_contract_is_there_at_zero_before_the_first_request() {
    let replica = Embedded::serve().await;
    let series = replica.series().await;
    let zero = |name: &str| assert_eq!(series.get(name), Some(&0.0), "{name}");
    for (name, label, values, unknown_too) in COUNTED {
        for source in SOURCES.into_iter().chain(unknown_too.then_some("unknown")) {
            for value in values {
                // Labels are printed in alphabetical order.
                let mut labels = [format!("{label}=\"{value}\""), format!("source=\"{source}\"")];
                labels.sort();
                zero(&format!("{name}{{{}}}", labels.join(",")));
            }
        }
    }
    for name in BY_SOURCE {
        for source in SOURCES {
            zero(&format!("{name}{{source=\"{source}\"}}"));
        }
    }
    ALONE.into_iter().for_each(zero);
    for state in STATES {
        zero(&format!("hookgate_queue_events{{state=\"{state}\"}}"));
    }
    assert!(
        series
            .keys()
            .any(|name| name.starts_with("hookgate_ignored_total{reason="))
    );
    let version = concat!("hookgate_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    assert_eq!(series[version], 1.0);
    assert_eq!(
        (series["hookgate_claims_up"], series["hookgate_ledger_up"]),
        (1.0, 1.0)
    );
    for name in [
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_cpu_seconds_total",
    ] {
        assert!(series.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn every_metric_has_a_help_text_and_a_type() {
    let replica = Embedded::serve().await;
    let (_, page) = replica.admin("/metrics").await;
    let named = |kind: &str| -> Vec<String> {
        let rest = page.lines().filter_map(|line| line.strip_prefix(kind));
        rest.filter_map(|rest| rest.trim().split_once(' '))
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(name, _)| name.to_owned())
            .collect()
    };
    let (helped, typed) = (named("# HELP"), named("# TYPE"));
    assert_eq!(helped, typed);
    assert!(helped.iter().filter(|name| name.starts_with("hookgate_")).count() >= 20);
    assert!(
        helped
            .iter()
            .all(|name| name.starts_with("hookgate_") || name.starts_with("process_"))
    );
}

#[tokio::test]
async fn the_outcomes_add_up_to_all_events_and_refusals() {
    let replica = Embedded::serve().await;
    let event = provider::event(Provider::Stripe);
    for _ in 0..3 {
        replica.deliver(&event).await;
    }
    replica.deliver(&provider::event(Provider::Github)).await;
    replica.post("stripe", &[], "unsigned").await;
    replica.post("nobody", &[], "lost").await;
    replica.ask(Method::GET, "/webhooks/github").await;
    replica.ask(Method::GET, "/elsewhere").await;
    let series = replica.series().await;
    let sum = |prefix: &str, part: &str| -> f64 {
        let chosen = |(name, _): &(&String, &f64)| name.starts_with(prefix) && name.contains(part);
        series.iter().filter(chosen).map(|(_, value)| value).sum()
    };
    assert_eq!(sum("hookgate_deliveries_total", ""), 8.0);
    assert_eq!(sum("hookgate_requests_total", ""), 8.0);
    assert_eq!(sum("hookgate_deliveries_total", "\"refused\""), 4.0);
    assert_eq!(sum("hookgate_refusals_total", ""), 4.0);
    assert_eq!(sum("hookgate_deliveries_total", "\"unknown\""), 2.0);
    assert_eq!(sum("hookgate_deliveries_total", "\"duplicate\""), 2.0);
    assert_eq!(sum("hookgate_duplicates_skipped_total", ""), 2.0);
    let requests = r#"hookgate_requests_total{source="stripe",status="200"}"#;
    assert_eq!(series[requests], 3.0);
    let durations = r#"hookgate_delivery_duration_seconds_count{source="stripe"}"#;
    assert_eq!(series[durations], 4.0);
}

/// Words that look like what they are not, so that a search finds them.
fn invented(number: u32) -> String {
    format!("invented{number:x}")
}

#[tokio::test]
async fn strangers_and_invented_types_add_no_series_and_leave_no_word_behind() {
    let replica = Embedded::serve().await;
    let before = replica.series().await;
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::HEAD,
    ];
    for number in 0..2_000 {
        let word = invented(rand::random());
        let method = if number % 7 == 0 {
            Method::from_bytes(word.to_uppercase().as_bytes()).expect("letters are a method")
        } else {
            methods[number % methods.len()].clone()
        };
        let path = match number % 4 {
            0 => format!("/{word}"),
            1 => format!("/webhooks/{word}"),
            2 => format!("/webhooks/stripe/{word}?secret={word}"),
            _ => format!("/webhooks/stripe?{word}"),
        };
        replica.ask(method, &path).await;
    }
    for number in 0..1_000 {
        let word = invented(number);
        let body = format!(
            r#"{{"id":"{word}","type":"{word}.{word}","account":"{word}","data":{{"object":{{"id":"{word}"}}}}}}"#
        );
        let event = provider::sign(Provider::Stripe, SECRET, &word, body.as_bytes());
        assert!(replica.deliver(&event).await.is_ok(false));
    }
    let after = replica.series().await;
    let grown: BTreeMap<_, _> = after
        .iter()
        .filter(|(name, _)| !before.contains_key(*name))
        .collect();
    assert!(grown.len() < 50, "{grown:#?}");
    let words: Vec<_> = after
        .keys()
        .filter(|name| name.to_ascii_lowercase().contains("invented"))
        .collect();
    assert!(words.is_empty(), "{words:?}");
    assert_eq!(replica.deliveries("stripe", "accepted").await, 1_000.0);
}
