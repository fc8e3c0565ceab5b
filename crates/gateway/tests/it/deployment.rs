//! Where replicas run: a pair of stores and the settings that all replicas share, and a look at the row of an
//! event that does not go through the gateway.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{PATIENCE, PostgresServer, Proxy, RedisServer, Upstream};
use hookgate_ledger::{Entry, Ledger, Limits, Operations, PostgresLedger, SqliteLedger, State};
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

use crate::embedded;
use crate::gateway::Replica;
use crate::patience::eventually;
use crate::provider::{SECRET, Signed};

/// What keeps claims and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Redis saves work, Postgres decides.
    RedisAndPostgres,
    /// The claim is all there is.
    RedisAlone,
    /// The database does everything.
    PostgresAlone,
    /// Claims in memory and a SQLite file: one replica.
    Embedded,
}

impl Stores {
    /// Every pair.
    pub const ALL: [Self; 4] = [
        Self::RedisAndPostgres,
        Self::RedisAlone,
        Self::PostgresAlone,
        Self::Embedded,
    ];

    /// Those with a ledger.
    pub const KEEPING: [Self; 3] = [Self::RedisAndPostgres, Self::PostgresAlone, Self::Embedded];

    /// Those that replicas can share.
    pub const SHARED: [Self; 3] = [Self::RedisAndPostgres, Self::RedisAlone, Self::PostgresAlone];

    /// Whether a ledger is among them.
    pub fn have_a_ledger(self) -> bool {
        self != Self::RedisAlone
    }
}

/// A lock that every writer waits for.
pub enum Standstill {
    Table { _held: PgConnection },
    File { _held: SqliteConnection },
}

/// Settings for any number of replicas, and the ledger behind them.
#[derive(Clone)]
pub struct Deployment {
    settings: Vec<(String, String)>,
    keeper: Option<Keeper>,
    _directory: Option<Arc<TempDir>>,
}

/// The database itself, past every replica and every proxy.
#[derive(Clone)]
struct Keeper {
    ledger: Arc<dyn Ledger>,
    desk: Arc<dyn Operations>,
    url: String,
}

impl Keeper {
    fn of<L: Ledger + Operations>(ledger: L, url: &str) -> Self {
        let ledger = Arc::new(ledger);
        Self {
            ledger: Arc::clone(&ledger) as Arc<dyn Ledger>,
            desk: ledger,
            url: url.to_owned(),
        }
    }
}

impl Deployment {
    /// The shared servers with a database of its own, or a SQLite file of its own; one source, `stripe`.
    pub async fn on(stores: Stores) -> Self {
        match stores {
            Stores::RedisAndPostgres => Self::with_postgres(Some(&RedisServer::shared().await.url())).await,
            Stores::RedisAlone => Self::with_redis_alone(&RedisServer::shared().await.url()),
            Stores::PostgresAlone => Self::with_postgres(None).await,
            Stores::Embedded => Self::embedded(),
        }
    }

    /// A database of its own on the shared Postgres, with claims in this Redis or nowhere.
    pub async fn with_postgres(redis_url: Option<&str>) -> Self {
        let database = PostgresServer::shared().await.create_database().await;
        Self::with_database(redis_url.unwrap_or("none"), &database)
    }

    /// This database and this Redis, for tests that harm one of them.
    pub fn with_database(redis_url: &str, database: &str) -> Self {
        let ledger = PostgresLedger::connect(&database.into(), patient());
        let ledger = ledger.expect("the harness gives a URL of Postgres");
        Self::new(redis_url, database, Some(Keeper::of(ledger, database)), None)
    }

    /// Claims in this Redis, and no ledger.
    pub fn with_redis_alone(redis_url: &str) -> Self {
        Self::new(redis_url, "none", None, None)
    }

    fn embedded() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path: PathBuf = directory.path().join("hookgate.db");
        let ledger = SqliteLedger::open(&path, patient()).expect("a fresh directory can be written");
        let url = format!("sqlite://{}", path.display());
        let mut embedded = Self::new("", &url, Some(Keeper::of(ledger, &url)), Some(directory));
        embedded.settings.retain(|(name, _)| name != "REDIS_URL");
        embedded
    }

    fn new(redis_url: &str, database: &str, keeper: Option<Keeper>, directory: Option<TempDir>) -> Self {
        let settings = [
            ("REDIS_URL", redis_url),
            ("DATABASE_URL", database),
            ("STRIPE_WEBHOOK_SECRET", SECRET),
            // A machine that is busy with tests is no Redis that is away.
            ("HOOKGATE_REDIS_TIMEOUT", "5s"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            settings: settings.into(),
            keeper,
            _directory: directory.map(Arc::new),
        }
    }

    /// The same with this setting.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(other, _)| other != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Events are posted to the target before the answer.
    pub fn forwarding_to(self, target: &Upstream) -> Self {
        self.set("HOOKGATE_HANDLER", "forward").delivering_to(target)
    }

    /// Events are kept, and posted to the target by a worker.
    pub fn delivering_to(self, target: &Upstream) -> Self {
        self.set("HOOKGATE_TARGET_URL", &target.url())
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> &str {
        let setting = self.settings.iter().find(|(other, _)| other == name);
        setting.map_or("", |(_, value)| value)
    }

    /// The same with a proxy between the replicas and the server that the URL of this setting names.
    pub fn through(self, name: &str, proxy: &Proxy) -> Self {
        let url = self.setting(name);
        let (before, rest) = url.rsplit_once("127.0.0.1:").expect("the server is local");
        let path = rest.find('/').map_or("", |slash| &rest[slash..]);
        let url = format!("{before}{}{path}", proxy.addr());
        self.set(name, &url)
    }

    /// Starts one more replica with all roles.
    pub async fn replica(&self) -> Replica {
        self.start("serve").await
    }

    /// Starts one more process with this role.
    pub async fn start(&self, role: &str) -> Replica {
        let settings: Vec<_> = self
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Replica::start(role, &settings).await
    }

    /// The ledger as people use it.
    pub fn desk(&self) -> Arc<dyn Operations> {
        Arc::clone(&self.keeper().desk)
    }

    /// The rows of a query with one column, one a line; NULL is the empty line.
    pub async fn sql(&self, query: &str) -> String {
        match self.file() {
            Some(file) => embedded::sql(file, query).await,
            None => PostgresServer::shared().await.psql(&self.keeper().url, query),
        }
    }

    /// Holds up every writer until what is returned is dropped.
    pub async fn hold(&self) -> Standstill {
        if let Some(file) = self.file() {
            let held = eventually("nobody writes", async || embedded::hold(file).await);
            return Standstill::File { _held: held.await };
        }
        let mut held = PgConnection::connect(&self.keeper().url)
            .await
            .expect("the database can be reached");
        held.execute("BEGIN; LOCK TABLE webhook_events IN SHARE ROW EXCLUSIVE MODE")
            .await
            .expect("the table can be locked");
        Standstill::Table { _held: held }
    }

    /// The database file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        self.keeper().url.strip_prefix("sqlite://").map(Path::new)
    }

    fn keeper(&self) -> &Keeper {
        self.keeper.as_ref().expect("this deployment has a ledger")
    }

    /// The event's row, read from the database itself; `None` also without a ledger.
    pub async fn entry(&self, event: &Signed) -> Option<Entry> {
        let entry = self.keeper.as_ref()?.ledger.entry(&event.key()).await;
        entry.unwrap_or_else(|error| panic!("the row cannot be read within {PATIENCE:?}: {error}"))
    }

    /// State and attempts of the event's row.
    pub async fn state(&self, event: &Signed) -> Option<(State, u32)> {
        let entry = self.entry(event).await?;
        Some((entry.state, entry.attempts))
    }

    /// Waits until the event's row is in this state, and returns it.
    pub async fn wait_for_state(&self, event: &Signed, state: State) -> Entry {
        eventually(&format!("the row of {} is {state}", event.event_id), async || {
            self.entry(event).await.filter(|entry| entry.state == state)
        })
        .await
    }
}

/// Limits that a machine that is busy with tests does not reach.
fn patient() -> Limits {
    Limits {
        append: PATIENCE,
        pool_wait: PATIENCE,
        lock: Duration::from_secs(10),
        statement: Duration::from_secs(10),
        search: Duration::from_secs(10),
        ..Limits::default()
    }
}
