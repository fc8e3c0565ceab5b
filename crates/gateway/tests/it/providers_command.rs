//! What is known about the providers is shown by a command, and the page of the documentation is what it prints.

use hookgate_gateway::view::knowledge;
use hookgate_webhook::Provider;

use crate::command_line::run;

#[tokio::test]
async fn every_provider_stands_in_the_table_once() {
    let table = run(&["providers"], &[]).await;
    assert_eq!(table.code, Some(0));
    for provider in Provider::ALL {
        let starts = |line: &&String| line.split_whitespace().next() == Some(provider.name());
        assert_eq!(
            table.lines.iter().filter(starts).count(),
            1,
            "{}",
            provider.name()
        );
    }
}

#[tokio::test]
async fn one_provider_is_shown_whole_and_an_unknown_one_is_answered_with_the_list() {
    let stripe = run(&["providers", "stripe"], &[]).await.text();
    for fact in [
        "Stripe-Signature: t=…,v1=…",
        "HMAC-SHA256, hex",
        "5 min past",
        "3 d by itself, 30 d by hand",
        "10 s (assumed)",
        "invoice.paid",
    ] {
        assert!(stripe.contains(fact), "{fact} in {stripe}");
    }
    let unknown = run(&["providers", "strype"], &[]).await;
    assert_eq!(unknown.code, Some(64));
    assert!(
        unknown.sentence().contains("known are stripe, "),
        "{}",
        unknown.sentence()
    );
}

#[tokio::test]
async fn programs_get_json() {
    let text = run(&["providers", "--json"], &[]).await.text();
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let names: Vec<_> = json
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, Provider::ALL.map(Provider::name));
}

#[test]
fn every_provider_has_every_fact() {
    for provider in Provider::ALL {
        let facts = knowledge::facts(provider);
        for (name, text) in [
            ("title", facts.title),
            ("header", &facts.header),
            ("signature", &facts.signature),
            ("retries", facts.retries),
        ] {
            assert!(!text.is_empty(), "{}: {name}", facts.name);
        }
        assert!(!facts.sources.is_empty(), "{}: sources", facts.name);
        assert!(facts.samples.len() > 1, "{}: samples", facts.name);
        assert!(
            matches!(facts.refusal_status, 400 | 401),
            "{}: {}",
            facts.name,
            facts.refusal_status
        );
    }
}

#[test]
fn the_page_of_the_documentation_is_what_is_known() {
    let page = include_str!("../../../../docs/providers.md");
    assert!(
        page == knowledge::page(),
        "docs/providers.md is out of date: run `cargo run -- providers --markdown > docs/providers.md`"
    );
}
