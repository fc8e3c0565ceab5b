//! The log: one line a delivery, always the same fields, and nothing in it that a stranger could write.

use hookgate_webhook::Provider;
use serde_json::Value;

use crate::embedded::Embedded;
use crate::provider;

/// Fields of a delivery's line, beside what every line has.
const FIELDS: [&str; 8] = [
    "source",
    "provider",
    "event.id",
    "outcome",
    "reason",
    "status",
    "duration_ms",
    "request.id",
];

fn named(mut delivery: provider::Signed, request_id: &str) -> provider::Signed {
    delivery
        .headers
        .push(("X-Request-Id".to_owned(), request_id.to_owned()));
    delivery
}

#[tokio::test]
async fn each_delivery_is_one_line_with_the_same_fields() {
    let replica = Embedded::serve().await;
    let event = provider::event(Provider::Stripe);
    let mut forged = event.clone();
    forged.body.push(b' ');
    replica.deliver(&named(event.clone(), "one")).await;
    replica.deliver(&named(event.clone(), "two")).await;
    replica.deliver(&named(forged, "three")).await;
    replica
        .post("nobody", &[("X-Request-Id".to_owned(), "four".to_owned())], "x")
        .await;
    replica
        .deliver(&named(provider::event(Provider::Github), "the-last-one"))
        .await;
    let lines = replica.delivery_lines("the-last-one").await;
    let seen: Vec<_> = lines
        .iter()
        .map(|line| ["request.id", "outcome", "reason", "source"].map(|field| text(line, field)))
        .collect();
    assert_eq!(
        seen,
        [
            ["one", "accepted", "", "stripe"],
            ["two", "duplicate", "", "stripe"],
            ["three", "refused", "bad_signature", "stripe"],
            ["four", "refused", "unknown_source", "unknown"],
            ["the-last-one", "accepted", "", "github"],
        ]
    );
    for line in &lines {
        let fields = line.as_object().expect("a line is an object");
        for field in FIELDS {
            assert!(fields.contains_key(field), "{field} is missing: {line}");
        }
        assert_eq!(text(line, "level"), "INFO");
        assert!(text(line, "timestamp").starts_with("20"), "{line}");
    }
    assert_eq!(text(&lines[0], "event.id"), event.event_id);
    assert_eq!(lines[0]["status"], 200);
    assert!(text(&lines[0], "message").contains(&format!("stripe:{}", event.event_id)));
}

fn text<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_plausible_request_id_is_taken_over_and_any_other_is_replaced() {
    let replica = Embedded::serve().await;
    let answered = async |given: Option<&str>| {
        let mut event = provider::event(Provider::Stripe);
        event
            .headers
            .extend(given.map(|given| ("X-Request-Id".to_owned(), given.to_owned())));
        replica.deliver(&event).await.headers["x-request-id"].clone()
    };
    for plausible in [
        "a",
        "7f3c-99_1.x",
        &"f".repeat(64),
        "00000000-0000-4000-8000-000000000000",
    ] {
        assert_eq!(answered(Some(plausible)).await, plausible);
    }
    let mut ours = Vec::new();
    for hostile in [
        None,
        Some(""),
        Some("a b"),
        Some("a\"b"),
        Some("${jndi:x}"),
        Some("<script>"),
        Some("a,b"),
        Some("é"),
        Some(&*"f".repeat(65)),
    ] {
        let id = answered(hostile).await;
        assert!(
            id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()),
            "{hostile:?}: {id}"
        );
        ours.push(id);
    }
    ours.sort();
    ours.dedup();
    assert_eq!(ours.len(), 9, "each request has an id of its own");
}

#[tokio::test]
async fn nothing_that_a_stranger_sends_can_forge_a_line() {
    let replica = Embedded::serve().await;
    let forgery = "\"}\n{\"level\":\"ERROR\",\"message\":\"forged\"}";
    let encoded = "%22%7D%0A%7B%22forged%22%3A1%7D";
    replica
        .post(
            "stripe",
            &[("X-Request-Id".to_owned(), "forged\u{85}".to_owned())],
            forgery,
        )
        .await;
    replica.post(&format!("{encoded}?{encoded}"), &[], forgery).await;
    replica
        .post(
            "stripe",
            &[("Stripe-Signature".to_owned(), "t=1,v1=forged".to_owned())],
            forgery,
        )
        .await;
    replica
        .post(
            "stripe",
            &[("User-Agent".to_owned(), "forged".to_owned())],
            forgery,
        )
        .await;
    let body = format!(
        r#"{{"id":"evt_1","type":"forged\n{{\"level\":\"ERROR\"}}","x":{}}}"#,
        "1"
    );
    let typed = provider::sign(Provider::Stripe, provider::SECRET, "", body.as_bytes());
    replica.deliver(&typed).await;
    replica
        .deliver(&named(provider::event(Provider::Stripe), "the-last-one"))
        .await;
    let lines = replica.delivery_lines("the-last-one").await;
    assert_eq!(lines.len(), 6);
    let forged: Vec<_> = replica
        .process()
        .lines()
        .into_iter()
        .filter(|line| line.contains("forged") || !line.starts_with('{'))
        .collect();
    assert!(forged.is_empty(), "{forged:#?}");
}
