//! A look at the ledger behind everybody's back, and the passing of its time.

use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::sync::Mutex;

/// A connection of its own to the ledger's database.
pub(crate) struct Desk(Mutex<Conn>);

enum Conn {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

/// The row of the one event.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) path: String,
    pub(crate) state: String,
    pub(crate) attempts: i64,
    pub(crate) owner: String,
    /// Runs that were written down as done.
    pub(crate) done: i64,
}

impl Desk {
    pub(crate) async fn postgres(url: &str) -> Self {
        let conn = PgConnection::connect(url).await.unwrap();
        Self(Mutex::new(Conn::Postgres(conn)))
    }

    pub(crate) async fn sqlite(path: &str) -> Self {
        let mut conn = SqliteConnection::connect(path).await.unwrap();
        conn.execute("PRAGMA busy_timeout = 10000").await.unwrap();
        Self(Mutex::new(Conn::Sqlite(conn)))
    }

    pub(crate) async fn row(&self, key: &EventKey) -> Option<Row> {
        let source = key.source.as_str();
        let sql = |hex: &str, integer: &str| {
            AssertSqlSafe(format!(
                "SELECT path, state, CAST(attempts AS {integer}) AS attempts,
                        COALESCE({hex}, '') AS owner,
                        (SELECT count(*) FROM webhook_attempts AS a
                         WHERE a.source = '{source}' AND outcome = 'done') AS done
                 FROM webhook_events AS e WHERE source = '{source}'"
            ))
        };
        match &mut *self.0.lock().await {
            Conn::Postgres(conn) => {
                let query = sqlx::query_as(sql("encode(lease_owner, 'hex')", "bigint"));
                query.fetch_optional(conn).await.unwrap()
            }
            Conn::Sqlite(conn) => {
                let query = sqlx::query_as(sql("lower(hex(lease_owner))", "INTEGER"));
                query.fetch_optional(conn).await.unwrap()
            }
        }
    }

    /// The row is not in the database any more: another one has taken its place, which never had it.
    pub(crate) async fn lose(&self, key: &EventKey) {
        let sql = AssertSqlSafe(format!(
            "DELETE FROM webhook_events WHERE source = '{}'",
            key.source.as_str()
        ));
        match &mut *self.0.lock().await {
            Conn::Postgres(conn) => {
                conn.execute(sql).await.unwrap();
            }
            Conn::Sqlite(conn) => {
                conn.execute(sql).await.unwrap();
            }
        }
    }

    pub(crate) async fn pass(&self, key: &EventKey, time: Duration) {
        let (source, ms) = (key.source.as_str(), time.as_millis());
        let sql = |ms: String| {
            AssertSqlSafe(format!(
                "UPDATE webhook_events
                 SET lease_until = lease_until - {ms}, next_attempt_at = next_attempt_at - {ms},
                     deadline_at = deadline_at - {ms}
                 WHERE source = '{source}'"
            ))
        };
        match &mut *self.0.lock().await {
            Conn::Postgres(conn) => {
                conn.execute(sql(format!("{ms} * interval '1 ms'")))
                    .await
                    .unwrap();
            }
            Conn::Sqlite(conn) => {
                conn.execute(sql(ms.to_string())).await.unwrap();
            }
        }
    }
}
