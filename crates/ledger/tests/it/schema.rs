//! The schema arrives once, whoever brings it, and shows what people look at.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::future::join_all;
use hookgate_ledger::{Appended, Queue};

use crate::database::Database;
use crate::on_both;
use crate::sample::{event, with_body};

on_both!(
    replicas_that_start_together_migrate_once,
    a_newer_schema_is_left_alone,
    a_body_that_is_no_json_is_null_in_the_view,
);

async fn replicas_that_start_together_migrate_once(db: Database) {
    let replicas: Vec<_> = (0..8).map(|_| db.replica()).collect();
    for migrated in join_all(replicas.iter().map(|ledger| ledger.migrate())).await {
        migrated.unwrap();
    }
    let files = numbers("postgres").len().to_string();
    assert_eq!(
        db.value("SELECT count(*) FROM _sqlx_migrations WHERE success")
            .await,
        files
    );
    replicas[0].migrate().await.unwrap();
    assert_eq!(
        replicas[0]
            .append(event("evt_1"), Queue::ForWorker)
            .await
            .unwrap(),
        Appended::Accepted
    );
}

/// The binary before an upgrade runs on beside the one after it.
async fn a_newer_schema_is_left_alone(db: Database) {
    let ledger = db.ledger().await;
    db.run(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'of a later version', true, '', 1);
         ALTER TABLE webhook_events ADD COLUMN later text",
    )
    .await;
    ledger.migrate().await.unwrap();
    assert_eq!(
        ledger.append(event("evt_1"), Queue::ForWorker).await.unwrap(),
        Appended::Accepted
    );
}

async fn a_body_that_is_no_json_is_null_in_the_view(db: Database) {
    let ledger = db.ledger().await;
    let bodies: [(&str, &[u8]); 4] = [
        ("plain", br#"{"a": 1}"#),
        ("form", b"a=1&b=2"),
        ("bytes", b"\xff\xfe"),
        ("zero", b"{}\0{}"),
    ];
    for (id, body) in bodies {
        let _ = ledger
            .append(with_body(id, body.to_vec()), Queue::ForWorker)
            .await
            .unwrap();
    }
    let readable = "SELECT event_id FROM webhook_events_json WHERE body IS NOT NULL";
    assert_eq!(db.value(readable).await, "plain");
    assert_eq!(db.value("SELECT count(*) FROM webhook_events_json").await, "4");
}

#[test]
fn both_dialects_have_the_same_migrations() {
    assert_eq!(numbers("postgres"), numbers("sqlite"));
    assert!(!numbers("postgres").is_empty());
}

fn numbers(dialect: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("migrations")
        .join(dialect);
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    std::fs::read_dir(folder).unwrap().map(name).collect()
}
