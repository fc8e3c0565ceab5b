//! How old a signature may be, per source: the provider's limit, another one, or any age.

use hookgate_webhook::Provider;

use crate::command_line::run_with_file;
use crate::gateway::Answer;
use crate::provider::{self, SECRET};
use crate::test_app::TestApp;

/// When everything here was signed, by a clock that nobody lives by.
const SIGNED_AT: i64 = 1_500_000_000;

/// A source with this `tolerance`, or none, judges a delivery so many seconds after it was signed.
async fn judged(provider: Provider, tolerance: Option<&str>, ages: &[(i64, &str)]) {
    let name = provider.name();
    let line = tolerance.map_or_else(String::new, |tolerance| format!("tolerance = '{tolerance}'\n"));
    let toml = format!("[sources.{name}]\nsecrets = ['{SECRET}']\n{line}");
    let app = TestApp::start(&[], Some(&toml), 0).await;
    for (number, (age, error)) in ages.iter().enumerate() {
        let id = format!("evt_{number}");
        let body = provider::stripe(&id).body;
        let delivery = provider::sign_at(provider, SECRET, &id, &body, SIGNED_AT);
        let answer: Answer = app.deliver_at(SIGNED_AT + age, &delivery).await;
        assert_eq!(
            answer.error(),
            *error,
            "{name}, {tolerance:?}, {age} s later: {answer:?}"
        );
        assert_eq!(answer.status, if error.is_empty() { 200 } else { 400 });
    }
    app.stop().await;
}

const STALE: &str = "stale_timestamp";
const FUTURE: &str = "future_timestamp";
const YEAR: i64 = 365 * 24 * 3600;

#[tokio::test]
async fn the_providers_limit_holds_where_nobody_sets_another() {
    let ages = [(0, ""), (300, ""), (301, STALE), (-YEAR, "")];
    judged(Provider::Stripe, None, &ages).await;
    let ages = [(300, ""), (301, STALE), (-300, ""), (-301, FUTURE)];
    judged(Provider::StandardWebhooks, None, &ages).await;
}

#[tokio::test]
async fn another_limit_holds_in_the_directions_of_the_provider() {
    let ages = [(20, ""), (21, STALE), (-YEAR, "")];
    judged(Provider::Stripe, Some("20s"), &ages).await;
    let ages = [(3600, ""), (3601, STALE), (-3600, ""), (-3601, FUTURE)];
    judged(Provider::StandardWebhooks, Some("1h"), &ages).await;
}

#[tokio::test]
async fn off_takes_any_age() {
    judged(Provider::Stripe, Some("off"), &[(YEAR, ""), (-YEAR, "")]).await;
    judged(
        Provider::StandardWebhooks,
        Some("off"),
        &[(YEAR, ""), (-YEAR, "")],
    )
    .await;
}

#[tokio::test]
async fn a_tolerance_of_no_use_stops_the_start_and_a_long_one_is_warned_of() {
    let file = |provider: &str, tolerance: &str| {
        format!("[sources.{provider}]\nsecrets = ['{SECRET}']\ntolerance = {tolerance}\n")
    };
    for wrong in ["'0s'", "'999ms'", "'soon'", "'Off'", "300", "false", "'200y'"] {
        let ran = run_with_file(&["serve"], &file("stripe", wrong), &[]).await;
        assert_eq!(ran.code, Some(64), "{wrong}: {ran:#?}");
        assert!(ran.sentence().contains("tolerance"), "{wrong}: {ran:#?}");
    }
    for tolerance in ["'5m'", "'off'"] {
        let ran = run_with_file(&["serve"], &file("github", tolerance), &[]).await;
        assert_eq!(ran.code, Some(64), "{ran:#?}");
        assert!(ran.sentence().contains("github signs no time"), "{ran:#?}");
    }
    for (tolerance, warned) in [
        ("'off'", true),
        ("'61m'", true),
        ("'1h'", false),
        ("'10m'", false),
    ] {
        let ran = run_with_file(&["config", "check", "--offline"], &file("stripe", tolerance), &[]).await;
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert_eq!(
            ran.text().contains("warning: source stripe: tolerance = "),
            warned,
            "{tolerance}: {ran:#?}"
        );
    }
}
