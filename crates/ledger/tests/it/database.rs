//! A database of one test: it makes ledgers, as replicas do, and looks behind their backs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{PATIENCE, PgBouncer, PoolMode, PostgresServer};
use hookgate_ledger::{Entry, Ledger, Limits, Operations, PostgresLedger, SqliteLedger, UnixMicros, Upkeep};
use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// An empty database of either kind.
pub(crate) enum Database {
    Postgres {
        server: &'static PostgresServer,
        url: String,
        /// Where ledgers find it.
        way: String,
    },
    Sqlite {
        path: PathBuf,
        _directory: TempDir,
    },
}

/// Holds up every writer until it is dropped.
pub(crate) enum Standstill {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Standstill {
    pub(crate) async fn end(self) {
        match self {
            Self::Postgres(mut conn) => drop(conn.execute("ROLLBACK").await.unwrap()),
            Self::Sqlite(mut conn) => drop(conn.execute("ROLLBACK").await.unwrap()),
        }
    }
}

/// One pooler for all tests of this process.
async fn pooler() -> &'static PgBouncer {
    static POOLER: OnceCell<PgBouncer> = OnceCell::const_new();
    let start = async || PgBouncer::start(PostgresServer::shared().await.addr(), PoolMode::Transaction).await;
    POOLER.get_or_init(start).await
}

impl Database {
    pub(crate) async fn postgres() -> Self {
        let server = PostgresServer::shared().await;
        let url = server.create_database().await;
        // Set it to run every test on Postgres through a pooler that lends sessions by the transaction.
        let way = match std::env::var_os("HOOKGATE_TEST_POOLER") {
            Some(_) => pooler().await.url(&url),
            None => url.clone(),
        };
        Self::Postgres { server, url, way }
    }

    /// The same database, reached by ledgers through this pooler.
    pub(crate) fn behind(self, pooler: &PgBouncer) -> Self {
        match self {
            Self::Postgres { server, url, .. } => Self::Postgres {
                way: pooler.url(&url),
                server,
                url,
            },
            sqlite @ Self::Sqlite { .. } => sqlite,
        }
    }

    pub(crate) fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::Sqlite {
            path: directory.path().join("hookgate.db"),
            _directory: directory,
        }
    }

    /// One more replica, with the limits of production.
    pub(crate) fn replica(&self) -> Arc<dyn Ledger> {
        self.replica_with(patient())
    }

    pub(crate) fn replica_with(&self, limits: Limits) -> Arc<dyn Ledger> {
        match self {
            Self::Postgres { way, .. } => {
                Arc::new(PostgresLedger::connect(&way.clone().into(), limits).unwrap())
            }
            Self::Sqlite { path, .. } => Arc::new(SqliteLedger::open(path, limits).unwrap()),
        }
    }

    /// A replica on a database that has its tables.
    pub(crate) async fn ledger(&self) -> Arc<dyn Ledger> {
        self.ledger_with(patient()).await
    }

    pub(crate) async fn ledger_with(&self, limits: Limits) -> Arc<dyn Ledger> {
        let ledger = self.replica_with(limits);
        ledger.migrate().await.unwrap();
        ledger
    }

    /// One more replica, as a keeper.
    pub(crate) fn keeper(&self) -> Arc<dyn Upkeep> {
        match self {
            Self::Postgres { way, .. } => {
                Arc::new(PostgresLedger::connect(&way.clone().into(), patient()).unwrap())
            }
            Self::Sqlite { path, .. } => Arc::new(SqliteLedger::open(path, patient()).unwrap()),
        }
    }

    /// A moment so many days ago, in SQL.
    pub(crate) fn days_ago(&self, days: u32) -> String {
        match self {
            Self::Postgres { .. } => format!("(now() - interval '{days} days')"),
            Self::Sqlite { .. } => format!("((SELECT now FROM clock) - {days} * 86400000)"),
        }
    }

    /// A moment so long ago, in SQL.
    pub(crate) fn ago(&self, age: Duration) -> String {
        let milliseconds = age.as_millis();
        match self {
            Self::Postgres { .. } => format!("(now() - {milliseconds} * interval '1 ms')"),
            Self::Sqlite { .. } => format!("((SELECT now FROM clock) - {milliseconds})"),
        }
    }

    /// The ledger as people use it, on a database that has its tables.
    pub(crate) async fn desk(&self) -> Arc<dyn Operations> {
        self.desk_with(patient()).await
    }

    pub(crate) async fn desk_with(&self, limits: Limits) -> Arc<dyn Operations> {
        match self {
            Self::Postgres { way, .. } => {
                let ledger = PostgresLedger::connect(&way.clone().into(), limits).unwrap();
                ledger.migrate().await.unwrap();
                Arc::new(ledger)
            }
            Self::Sqlite { path, .. } => {
                let ledger = SqliteLedger::open(path, limits).unwrap();
                ledger.migrate().await.unwrap();
                Arc::new(ledger)
            }
        }
    }

    /// A moment as a statement says it.
    pub(crate) fn moment(&self, moment: UnixMicros) -> String {
        match self {
            Self::Postgres { .. } => format!("timestamptz 'epoch' + {} * interval '1 microsecond'", moment.0),
            Self::Sqlite { .. } => (moment.0 / 1000).to_string(),
        }
    }

    /// Runs statements.
    pub(crate) async fn run(&self, sql: &str) {
        match self {
            Self::Postgres { server, url, .. } => drop(server.psql(url, sql)),
            Self::Sqlite { .. } => {
                self.sqlite_connection()
                    .await
                    .execute(AssertSqlSafe(sql.to_owned()))
                    .await
                    .unwrap();
            }
        }
    }

    /// One value, as text; empty for NULL.
    pub(crate) async fn value(&self, select: &str) -> String {
        match self {
            Self::Postgres { server, url, .. } => server.psql(url, select),
            Self::Sqlite { .. } => {
                let text = AssertSqlSafe(format!("SELECT CAST(({select}) AS TEXT)"));
                let value: Option<String> = sqlx::query_scalar(text)
                    .fetch_one(&mut self.sqlite_connection().await)
                    .await
                    .unwrap();
                value.unwrap_or_default()
            }
        }
    }

    /// The database refuses every row of `table` whose `column` is `poison`.
    pub(crate) async fn poison(&self, table: &str, column: &str) {
        self.run(&match self {
            Self::Postgres { .. } => format!(
                "CREATE FUNCTION spit() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN RAISE EXCEPTION 'poison'; END $$;
                 CREATE TRIGGER poison BEFORE INSERT ON {table} FOR EACH ROW
                     WHEN (NEW.{column} = 'poison') EXECUTE FUNCTION spit()"
            ),
            Self::Sqlite { .. } => format!(
                "CREATE TRIGGER poison BEFORE INSERT ON {table} WHEN NEW.{column} = 'poison'
                 BEGIN SELECT RAISE(ABORT, 'poison'); END"
            ),
        })
        .await;
    }

    /// Holds up every writer, so that appends gather into batches.
    pub(crate) async fn standstill(&self) -> Standstill {
        match self {
            Self::Postgres { url, .. } => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                conn.execute("BEGIN; LOCK TABLE webhook_events IN SHARE ROW EXCLUSIVE MODE")
                    .await
                    .unwrap();
                Standstill::Postgres(conn)
            }
            Self::Sqlite { .. } => {
                let mut conn = self.sqlite_connection().await;
                conn.execute("BEGIN IMMEDIATE").await.unwrap();
                Standstill::Sqlite(conn)
            }
        }
    }

    async fn sqlite_connection(&self) -> SqliteConnection {
        let Self::Sqlite { path, .. } = self else {
            panic!("not a file")
        };
        let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
        conn.execute("PRAGMA busy_timeout = 10000").await.unwrap();
        conn
    }
}

/// Limits that a slow test machine does not reach.
pub(crate) fn patient() -> Limits {
    Limits {
        append: PATIENCE,
        pool_wait: PATIENCE,
        lock: Duration::from_secs(10),
        statement: Duration::from_secs(10),
        search: Duration::from_secs(10),
        ..Limits::default()
    }
}

/// Waits until the row is as wanted.
pub(crate) async fn until(ledger: &dyn Ledger, key: &EventKey, wanted: impl Fn(&Entry) -> bool) {
    let wait = async {
        while !ledger
            .entry(key)
            .await
            .unwrap()
            .is_some_and(|entry| wanted(&entry))
        {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .expect("the row never became as wanted");
}
