//! Events without an id of the provider's: the same bytes under the same name are one event. Where a provider
//! guarantees an id, a delivery without one is refused and leaves nothing behind.

use hookgate_webhook::Provider;

use crate::embedded;
use crate::gateway::Replica;

const TOKEN: &str = "a-token-of-the-test";

async fn replica(directory: &tempfile::TempDir) -> Replica {
    Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("GITLAB_WEBHOOK_SECRET", TOKEN),
        ("ASAAS_WEBHOOK_SECRET", TOKEN),
        ("REVENUECAT_WEBHOOK_SECRET", TOKEN),
    ])
    .await
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn the_same_bytes_are_one_event_unless_name_or_a_byte_differs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let push = async |name: &str, body: &'static str| {
        let headers = headers(&[("X-Gitlab-Token", TOKEN), ("X-Gitlab-Event", name)]);
        replica.post("gitlab", &headers, body).await
    };
    let body = r#"{"object_kind":"push","ref":"refs/heads/main"}"#;
    let first = push("Push Hook", body).await;
    assert!(first.is_ok(false), "{first:?}");
    let again = push("Push Hook", body).await;
    assert!(again.is_ok(true), "{again:?}");
    assert_eq!(again.json["event_id"], first.json["event_id"]);
    let id = first.json["event_id"].as_str().expect("an id");
    assert!(
        id.starts_with("sha256-") && id.len() == "sha256-".len() + 64,
        "{id}"
    );
    assert!(push("Tag Push Hook", body).await.is_ok(false));
    assert!(
        push("Push Hook", r#"{"object_kind":"push","ref":"refs/heads/main" }"#)
            .await
            .is_ok(false)
    );
    assert_eq!(replica.deliveries("gitlab", "accepted").await, 3.0);
    assert_eq!(replica.deliveries("gitlab", "duplicate").await, 1.0);
}

#[tokio::test]
async fn an_id_that_is_only_usual_may_be_missing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let token = headers(&[("asaas-access-token", TOKEN)]);
    let old = r#"{"event":"PAYMENT_CREATED","payment":{"id":"pay_1"}}"#;
    assert!(replica.post("asaas", &token, old).await.is_ok(false));
    assert!(replica.post("asaas", &token, old).await.is_ok(true));
}

#[tokio::test]
async fn where_an_id_is_guaranteed_a_delivery_without_one_is_refused_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let source = Provider::Revenuecat.name();
    let token = headers(&[("Authorization", TOKEN)]);
    let bodies = [
        r#"{"event":{"type":"TEST"}}"#,
        r#"{"event":{"type":"TEST","id":null}}"#,
        r#"{"event":{"type":"TEST","id":""}}"#,
        r#"{"event":{"type":"TEST","id":7}}"#,
        r#"{"event":{"type":"TEST","id":{"id":"a"}}}"#,
        r#"{"event":"TEST"}"#,
        "{}",
    ];
    for body in bodies {
        let answer = replica.post(source, &token, body).await;
        assert_eq!(
            (answer.status, answer.error()),
            (400, "missing_event_id"),
            "{body}"
        );
    }
    assert_eq!(
        replica.refusals(source, "missing_event_id").await,
        bodies.len() as f64
    );
    let valid = r#"{"event":{"type":"TEST","id":"2F9B0A0E-0000-4000-8000-000000000001"}}"#;
    assert!(replica.post(source, &token, valid).await.is_ok(false));
    let rows = embedded::sql(
        &directory.path().join("hookgate.db"),
        "SELECT event_id FROM webhook_events",
    )
    .await;
    assert_eq!(rows, "2F9B0A0E-0000-4000-8000-000000000001");
}
