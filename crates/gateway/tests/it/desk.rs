//! A database with events in it, and the command line of whoever looks after it: no gateway runs.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use bytes::Bytes;
use hookgate_harness::PostgresServer;
use hookgate_ledger::{
    Begun, DeliveryId, Effects, Ledger, Limits, NewEvent, Outcome, PostgresLedger, Settled, SqliteLedger,
};
use hookgate_webhook::{EventId, EventKey, Field, Mode, SourceName};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;

use crate::gateway::command;

/// Where events are kept.
pub struct Desk {
    url: String,
    ledger: Box<dyn Ledger>,
    kept: Kept,
}

enum Kept {
    Postgres(&'static PostgresServer),
    Sqlite { file: PathBuf, _directory: TempDir },
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Standard output, byte for byte.
    pub bytes: Vec<u8>,
    /// Standard error.
    pub error: String,
}

impl Said {
    /// Standard output.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("output for people is text")
    }

    /// Standard output as the one JSON document that it is.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("no document: {error}: {self:?}"))
    }

    /// The ids of a list.
    pub fn ids(&self) -> Vec<String> {
        let document = self.json();
        let events = document["events"].as_array().expect("a list has events");
        let id = |event: &Value| event["event_id"].as_str().expect("an event has an id").to_owned();
        events.iter().map(id).collect()
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            bytes: output.stdout,
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Desk {
    /// One on each kind of database.
    pub async fn both() -> [Self; 2] {
        [Self::postgres().await, Self::sqlite().await]
    }

    async fn postgres() -> Self {
        let server = PostgresServer::shared().await;
        let url = server.create_database().await;
        let ledger = PostgresLedger::connect(&url.clone().into(), limits());
        let ledger = ledger.expect("the harness gives a URL of Postgres");
        Self::on(url, Box::new(ledger), Kept::Postgres(server)).await
    }

    async fn sqlite() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("hookgate.db");
        let ledger = SqliteLedger::open(&file, limits()).expect("a fresh directory can be written");
        let kept = Kept::Sqlite {
            file: file.clone(),
            _directory: directory,
        };
        Self::on(crate::embedded::url(&file), Box::new(ledger), kept).await
    }

    async fn on(url: String, ledger: Box<dyn Ledger>, kept: Kept) -> Self {
        ledger.migrate().await.expect("an empty database can be migrated");
        Self { url, ledger, kept }
    }

    /// Puts an event there whose one run ended so.
    pub async fn put(&self, key: &str, outcome: Outcome) {
        self.put_new(new(key), outcome).await;
    }

    /// As [`Desk::put`], with an event of one's own.
    pub async fn put_new(&self, event: NewEvent, outcome: Outcome) {
        let begun = self.ledger.begin(&event, Duration::from_secs(600)).await;
        let Ok(Begun::Run { lease, .. }) = begun else {
            panic!("nobody else has it: {begun:?}")
        };
        let settled = self.ledger.settle(&lease, outcome, Effects::default()).await;
        assert_eq!(settled.expect("the ledger answers"), Settled::Committed);
    }

    /// Runs a command to its end, as `maria`.
    pub async fn hookgate(&self, arguments: &[&str]) -> Said {
        let mut command = self.command(arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        output
            .expect("waiting does not panic")
            .expect("the command runs")
            .into()
    }

    /// A command, not yet run.
    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = command(arguments);
        command.env("DATABASE_URL", &self.url).env("USER", "maria");
        command
    }

    /// Runs statements behind everybody's back.
    pub async fn run(&self, sql: &str) {
        match &self.kept {
            Kept::Postgres(server) => drop(server.psql(&self.url, sql)),
            Kept::Sqlite { file, .. } => {
                let mut connection = SqliteConnection::connect(&crate::embedded::url(file))
                    .await
                    .expect("the database file can be opened");
                let done = connection.execute(AssertSqlSafe(sql.to_owned())).await;
                done.expect("the statements are accepted");
            }
        }
    }

    /// The rows of a query with one column of text, one a line.
    pub async fn sql(&self, query: &str) -> String {
        match &self.kept {
            Kept::Postgres(server) => server.psql(&self.url, query),
            Kept::Sqlite { file, .. } => crate::embedded::sql(file, query).await,
        }
    }

    /// How many events there are of which this is true.
    pub async fn count(&self, condition: &str) -> usize {
        let query = format!("SELECT CAST(count(*) AS TEXT) FROM webhook_events WHERE {condition}");
        self.sql(&query).await.parse().expect("a count is a number")
    }

    /// How many rows the audit log has.
    pub async fn audited(&self) -> usize {
        let rows = self.sql("SELECT CAST(count(*) AS TEXT) FROM audit_log").await;
        rows.parse().expect("a count is a number")
    }
}

/// An event as a receiver hands it over; the key is `source:event_id`.
pub fn new(key: &str) -> NewEvent {
    let (source, id) = key.split_once(':').expect("a key has a source");
    NewEvent {
        key: EventKey {
            source: SourceName::parse(source).expect("test sources have names"),
            id: EventId::parse(id).expect("test events have ids"),
        },
        provider: "stripe",
        account: None,
        mode: Mode::Live,
        event_type: Field::parse("invoice.paid"),
        object_id: Field::parse("in_1"),
        provider_time: None,
        body_sha256: [7; 32],
        headers: vec![
            ("content-type".into(), b"application/json".to_vec()),
            ("authorization".into(), b"Bearer canary".to_vec()),
        ],
        body: Bytes::from(format!("{{\"id\":\"{id}\"}}")),
        delivery: DeliveryId(rand::random()),
        content_keys: Vec::new(),
    }
}

/// An end in the dead letters.
pub fn dead(error: &str) -> Outcome {
    Outcome::Dead {
        error: error.to_owned(),
    }
}

/// A machine that is busy with tests is no database that is away.
fn limits() -> Limits {
    let patient = Duration::from_secs(10);
    Limits {
        append: patient,
        statement: patient,
        lock: patient,
        pool_wait: patient,
        ..Limits::default()
    }
}
