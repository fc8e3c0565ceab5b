//! What one run after the other uses: a Postgres server with a migrated database to copy, the gateway's binary, and
//! the library that makes a process see another time. A run may kill this Postgres; it is there again after it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use hookgate_harness::{PostgresServer, Process, Upstream};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::settings;

/// A place for runs.
pub(crate) struct Slot {
    /// The ledger's server.
    pub(crate) postgres: Mutex<PostgresServer>,
    binary: PathBuf,
    directory: TempDir,
    databases: AtomicUsize,
}

/// The database that others are copied from.
const TEMPLATE: &str = "pattern";

impl Slot {
    /// Starts the server and has the gateway make its tables.
    ///
    /// # Panics
    /// If Postgres or the gateway does not start; the message holds the log.
    pub(crate) async fn start(binary: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("hookgate.toml"), settings::FILE)
            .expect("our directory can be written");
        let slot = Self {
            postgres: Mutex::new(PostgresServer::start().await),
            binary: binary.to_owned(),
            directory,
            databases: AtomicUsize::new(0),
        };
        slot.administer(&format!("CREATE DATABASE {TEMPLATE}")).await;
        let mut migrate = Command::new(binary);
        let url = slot.postgres.lock().await.url(TEMPLATE);
        migrate.arg("migrate").env_clear().env("DATABASE_URL", url);
        let migrate = Process::spawn(migrate);
        assert_eq!(
            migrate.wait_exit().await,
            Some(0),
            "the tables cannot be made: {:?}",
            migrate.lines()
        );
        slot
    }

    /// A database of its own for a run. Returns its name.
    pub(crate) async fn database(&self) -> String {
        let name = format!("run_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.administer(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"))
            .await;
        name
    }

    /// Throws a run's database away.
    pub(crate) async fn drop_database(&self, name: &str) {
        self.administer(&format!("DROP DATABASE {name} WITH (FORCE)"))
            .await;
    }

    /// A session in a database, past every proxy.
    ///
    /// # Panics
    /// If the server is away.
    pub(crate) async fn session(&self, database: &str) -> PgConnection {
        let url = self.postgres.lock().await.url(database);
        PgConnection::connect(&url)
            .await
            .expect("Postgres can be reached")
    }

    /// The gateway, ready to be started with the settings of this run.
    pub(crate) fn gateway(&self, role: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .arg(role)
            .arg("--config")
            .arg(self.directory.path().join("hookgate.toml"))
            .env_clear()
            .envs(settings::environment());
        command
    }

    async fn administer(&self, statement: &str) {
        let mut session = self.session("postgres").await;
        let statement = sqlx::AssertSqlSafe(statement.to_owned());
        session.execute(statement).await.expect("a superuser can do it");
    }
}

/// The path under which a process calls the target, so that the journal says who called.
pub(crate) fn target_url(target: &Upstream, process: &str) -> String {
    format!("{}/{process}", target.url())
}
