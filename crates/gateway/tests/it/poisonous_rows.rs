//! One bad event in a crowd that shares a commit: it fails alone.

use futures_util::future::join_all;
use hookgate_harness::PostgresServer;
use hookgate_webhook::Provider;

use crate::embedded::Embedded;
use crate::gateway::{Answer, Replica};
use crate::provider::{self, SECRET, Signed};

/// Deliveries sent at the same time, the bad ones among them.
const BURST: usize = 64;

fn bad() -> Vec<(Signed, u16)> {
    let signed = |body: &[u8]| provider::sign(Provider::Stripe, SECRET, "", body);
    let huge = "x".repeat(1_000_000);
    vec![
        (signed(br#"{"id":"evt_\u0000"}"#), 400),
        (signed(b"{\"id\":\"evt_bad_1\",\"note\":\"\xff\xfe\"}"), 400),
        (
            signed(format!(r#"{{"id":"evt_bad_2","data":{{"object":{{"id":"{huge}"}}}}}}"#).as_bytes()),
            200,
        ),
        (signed(br#"{"id":"evt_bad_3","type":"a\u0000b"}"#), 200),
        (signed(br#"{"id":"evt_bad_4","note":"\u0000\ud800"}"#), 200),
    ]
}

async fn a_burst(replica: &Replica) -> Vec<(Answer, u16)> {
    let mut deliveries = bad();
    let good = BURST - deliveries.len();
    deliveries.extend((0..good).map(|number| (provider::stripe(&format!("evt_good_{number}")), 200)));
    // The bad ones between the good ones.
    deliveries.sort_by_key(|(delivery, _)| delivery.body.len() % 7);
    // Each on a connection of its own, all under way before the first is answered.
    let sending = deliveries
        .iter()
        .map(async |(delivery, status)| (replica.deliver(delivery).await, *status));
    join_all(sending).await
}

#[tokio::test]
async fn a_poisonous_event_fails_nobody_elses_append_on_postgres() {
    let postgres = PostgresServer::shared().await;
    let database = postgres.create_database().await;
    let replica = Replica::serve(&[
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", SECRET),
        ("HOOKGATE_MAX_BODY_BYTES", "2000000"),
    ])
    .await;
    for (answer, expected) in a_burst(&replica).await {
        assert_eq!(answer.status, expected, "{answer:?}");
    }
    let kept = "SELECT count(*) FROM webhook_events";
    assert_eq!(postgres.psql(&database, kept), (BURST - 2).to_string());
}

#[tokio::test]
async fn a_poisonous_event_fails_nobody_elses_append_on_sqlite() {
    let replica = Embedded::serve_with(&[("HOOKGATE_MAX_BODY_BYTES", "2000000")]).await;
    for (answer, expected) in a_burst(&replica).await {
        assert_eq!(answer.status, expected, "{answer:?}");
    }
    let kept = replica.sql("SELECT count(*) FROM webhook_events").await;
    assert_eq!(kept, (BURST - 2).to_string());
}
