//! What a provider sends that is no event, and wants an answer to: it gets it once its signature was verified, and
//! nothing is claimed, stored or counted as a delivery.

use hookgate_webhook::Provider;

use crate::embedded;
use crate::every_provider::{self, delivery};
use crate::gateway::{Answer, client};
use crate::provider::{self, Signed};

/// Signed with the published secret of the provider.
fn signed(provider: Provider, body: &str) -> Signed {
    let secret = provider.knowledge().dev_secrets[0];
    provider::sign(provider, secret, "", body.as_bytes())
}

/// What a provider says, and what it wants to hear: status, content type and body.
struct Exchange(Provider, &'static str, u16, &'static str, &'static str);

const EXCHANGES: [Exchange; 4] = [
    Exchange(
        Provider::Slack,
        r#"{"type":"url_verification","token":"t","challenge":"3eZbrw1aB"}"#,
        200,
        "application/json",
        r#"{"challenge":"3eZbrw1aB"}"#,
    ),
    Exchange(
        Provider::Discord,
        r#"{"id":"1","application_id":"2","type":1}"#,
        200,
        "application/json",
        r#"{"type":1}"#,
    ),
    Exchange(
        Provider::Discord,
        r#"{"version":1,"application_id":"2","type":0}"#,
        204,
        "application/json",
        "",
    ),
    // The published secret signs the token, and nothing else.
    Exchange(
        Provider::Zoom,
        r#"{"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1790000010000,"event":"endpoint.url_validation"}"#,
        200,
        "application/json",
        r#"{"encryptedToken":"6d76b85556b0fdf9607d63da1980b1e209804b3417d739157f9f4d74fe4a8e50","plainToken":"qgg8vlvZRS6UYooatFL8Aw"}"#,
    ),
];

/// Those of these exchanges.
const PROVIDERS: [Provider; 3] = [Provider::Slack, Provider::Discord, Provider::Zoom];

#[tokio::test]
async fn a_handshake_is_answered_and_leaves_nothing_behind() {
    let (replica, directory) = every_provider::serve(&PROVIDERS, &[]).await;
    for Exchange(provider, said, status, content_type, wanted) in EXCHANGES {
        let name = provider.name();
        let series = format!("hookgate_handshakes_total{{source=\"{name}\"}}");
        let before = replica.metric(&series).await;
        // A copy is answered as the first one was.
        for copy in [1.0, 2.0] {
            let delivery = signed(provider, said);
            let mut request = client().post(replica.url(name)).body(delivery.body);
            for (name, value) in &delivery.headers {
                request = request.header(name, value);
            }
            let answer = request.send().await.expect("the gateway answers");
            assert_eq!(answer.status().as_u16(), status, "{name}");
            assert_eq!(answer.headers()["content-type"], content_type, "{name}");
            assert_eq!(answer.text().await.expect("a body"), wanted, "{name}");
            assert_eq!(replica.metric(&series).await, before + copy);
        }
        let series = replica.series().await;
        let counted = series.iter().filter(|(name, _)| {
            name.starts_with("hookgate_deliveries_total") || name.starts_with("hookgate_ignored")
        });
        assert!(counted.clone().count() > 0);
        for (series, count) in counted {
            assert_eq!(*count, 0.0, "{series}");
        }
    }
    let file = directory.path().join("hookgate.db");
    let rows = embedded::sql(&file, "SELECT count(*) FROM webhook_events").await;
    assert_eq!(rows, "0");
}

#[tokio::test]
async fn an_unsigned_handshake_hears_nothing_of_it() {
    let (replica, _directory) = every_provider::serve(&PROVIDERS, &[]).await;
    for Exchange(provider, said, ..) in EXCHANGES {
        let name = provider.name();
        let refusal = provider.knowledge().refusal_status;
        let unsigned = replica.post(name, &[], said).await;
        assert_eq!(
            (unsigned.status, unsigned.error()),
            (refusal, "missing_signature")
        );
        let mut forged = signed(provider, said);
        forged.body.push(b' ');
        let forged: Answer = replica.deliver(&forged).await;
        assert_eq!((forged.status, forged.error()), (refusal, "bad_signature"));
        assert_eq!(
            replica
                .metric(&format!("hookgate_handshakes_total{{source=\"{name}\"}}"))
                .await,
            0.0
        );
    }
}

#[tokio::test]
async fn no_text_is_signed_that_a_delivery_could_be_made_of() {
    let (replica, _directory) = every_provider::serve(&[Provider::Zoom], &[]).await;
    let longer = "x".repeat(65);
    for token in ["", "a:b", "v0:1790000010:{}", "a b", &longer] {
        let said = format!(r#"{{"payload":{{"plainToken":"{token}"}},"event":"endpoint.url_validation"}}"#);
        let answer = replica.deliver(&signed(Provider::Zoom, &said)).await;
        assert_eq!(
            (answer.status, answer.error()),
            (400, "malformed_body"),
            "{token}"
        );
        assert_eq!(answer.json["encryptedToken"], serde_json::Value::Null, "{token}");
    }
    let longest = "x".repeat(64);
    let said = format!(r#"{{"payload":{{"plainToken":"{longest}"}},"event":"endpoint.url_validation"}}"#);
    let answer = replica.deliver(&signed(Provider::Zoom, &said)).await;
    assert_eq!(
        (answer.status, &answer.json["plainToken"]),
        (200, &longest.into())
    );
}

#[tokio::test]
async fn a_handshake_has_one_line_in_the_log_and_none_of_its_words() {
    let (replica, _directory) = every_provider::serve(&[Provider::Slack], &[]).await;
    let mut handshake = signed(
        Provider::Slack,
        r#"{"type":"url_verification","challenge":"canaryword"}"#,
    );
    handshake
        .headers
        .push(("X-Request-Id".to_owned(), "the-last-one".to_owned()));
    assert_eq!(replica.deliver(&handshake).await.json["challenge"], "canaryword");
    let lines = replica.delivery_lines("the-last-one").await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let line = lines[0].to_string();
    assert!(line.contains("handshake") && line.contains("slack"), "{line}");
    assert!(!line.contains("canaryword"), "{line}");
}

#[tokio::test]
async fn every_other_delivery_of_those_providers_is_an_event() {
    for provider in PROVIDERS {
        let types = provider.sample_types();
        let events = types.filter(|event_type| !delivery(provider, event_type).is_handshake(provider));
        assert!(events.count() > 0, "{}", provider.name());
    }
}
