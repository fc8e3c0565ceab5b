//! Published and recorded deliveries, each with the verdict of the provider's own SDK.

use hookgate_webhook::vectors::{BadLine, judge};
use serde_json::Value;

const FILES: [&str; 23] = [
    include_str!("../vectors/stripe.jsonl"),
    include_str!("../vectors/lemon_squeezy.jsonl"),
    include_str!("../vectors/mercado_pago.jsonl"),
    include_str!("../vectors/asaas.jsonl"),
    include_str!("../vectors/revenuecat.jsonl"),
    include_str!("../vectors/github.jsonl"),
    include_str!("../vectors/shopify.jsonl"),
    include_str!("../vectors/standard_webhooks.jsonl"),
    include_str!("../vectors/svix.jsonl"),
    include_str!("../vectors/paddle.jsonl"),
    include_str!("../vectors/square.jsonl"),
    include_str!("../vectors/gitlab.jsonl"),
    include_str!("../vectors/razorpay.jsonl"),
    include_str!("../vectors/coinbase_commerce.jsonl"),
    include_str!("../vectors/paypal.jsonl"),
    include_str!("../vectors/slack.jsonl"),
    include_str!("../vectors/twilio.jsonl"),
    include_str!("../vectors/adyen.jsonl"),
    include_str!("../vectors/discord.jsonl"),
    include_str!("../vectors/linear.jsonl"),
    include_str!("../vectors/hubspot.jsonl"),
    include_str!("../vectors/sendgrid.jsonl"),
    include_str!("../vectors/line.jsonl"),
];

pub(crate) fn lines() -> impl Iterator<Item = &'static str> {
    FILES.iter().flat_map(|file| file.lines())
}

fn changed(line: &str, field: &str, value: Value) -> String {
    let mut vector: Value = serde_json::from_str(line).unwrap();
    vector[field] = value;
    vector.to_string()
}

#[test]
fn every_vector_is_judged_as_its_sdk_judges() {
    let wrong: Vec<_> = lines()
        .map(|line| judge(line).unwrap())
        .filter(|verdict| !verdict.as_expected)
        .collect();
    assert_eq!(wrong, []);
    assert_eq!(lines().count(), 237);
}

#[test]
fn a_changed_expectation_is_noticed() {
    for line in lines() {
        for field in ["expect", "event_id", "event_type", "object_id", "event_time"] {
            let verdict = judge(&changed(line, field, "something else".into())).unwrap();
            assert!(!verdict.as_expected, "{} with another {field}", verdict.name);
        }
    }
}

#[test]
fn a_vector_without_expectation_is_judged_all_the_same() {
    let line = changed(lines().next().unwrap(), "expect", Value::Null);
    let verdict = judge(&line).unwrap();
    assert_eq!(verdict.verdict, "ok");
    assert!(verdict.as_expected);
}

#[test]
fn without_a_clock_an_old_delivery_is_still_genuine() {
    let stale = lines()
        .find(|line| line.contains("stripe-stale-age-301"))
        .unwrap();
    assert_eq!(judge(stale).unwrap().verdict, "stale_timestamp");
    for field in ["now", "tolerance_s"] {
        assert_eq!(judge(&changed(stale, field, Value::Null)).unwrap().verdict, "ok");
    }
}

#[test]
fn the_lines_own_tolerance_counts() {
    let vector = |name| lines().find(|line| line.contains(name)).unwrap();
    let judged = |line, tolerance_s: u64| {
        let line = changed(line, "tolerance_s", tolerance_s.into());
        judge(&line).unwrap().verdict
    };
    for name in ["stripe-stale-age-301", "standard_webhooks-stale-301"] {
        assert_eq!(judged(vector(name), 301), "ok");
        assert_eq!(judged(vector(name), 299), "stale_timestamp");
    }
    assert_eq!(judged(vector("standard_webhooks-future-301"), 301), "ok");
    assert_eq!(judged(vector("stripe-ok-timestamp-60s-ahead"), 0), "ok");
}

#[test]
fn a_verdict_prints_its_six_fields_in_order() {
    let verdict = judge(lines().next().unwrap()).unwrap();
    assert_eq!(
        serde_json::to_string(&verdict).unwrap(),
        r#"{"name":"stripe-ok-payment-intent-succeeded-pretty-unicode","verdict":"ok","event_id":"evt_FAKE1Pvec000001","event_type":"payment_intent.succeeded","object_id":"pi_FAKE00000001","event_time":"1790000010"}"#
    );
}

#[test]
fn a_genuine_delivery_that_cannot_be_read_is_ok_without_fields() {
    let line = lines()
        .find(|line| line.contains("github-ok-documentation-example"))
        .unwrap();
    let verdict = judge(line).unwrap();
    assert_eq!((verdict.verdict, verdict.event_id), ("ok", None));
}

#[test]
fn a_line_that_cannot_be_judged_says_why() {
    let line = lines().next().unwrap();
    let bad = |field, value: &str| judge(&changed(line, field, value.into())).unwrap_err();
    assert!(matches!(
        judge("nonsense").unwrap_err(),
        BadLine::NotAVector { .. }
    ));
    assert!(matches!(bad("body_b64", "%"), BadLine::BadBody { .. }));
    assert!(
        bad("provider", "acme")
            .to_string()
            .contains("\"acme\" is unknown")
    );
    let no_secrets = changed(line, "secrets", Value::Array(vec![]));
    assert!(matches!(
        judge(&no_secrets).unwrap_err(),
        BadLine::BadSecret { .. }
    ));
}
