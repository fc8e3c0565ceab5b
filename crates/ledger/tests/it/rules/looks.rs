//! The row behind the ledger's back, and the passing of time.

use hookgate_ledger::rules;
use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::sync::Mutex;

use crate::database::Database;

/// Moments are told in units of this, rounded: every time that a step brings about is a multiple of it, and a history
/// takes less than half of it by itself.
const UNIT_MS: i64 = 100_000;

/// A connection of its own; the database lives as long as it.
pub(super) struct Looks {
    conn: Mutex<Conn>,
    _db: Database,
}

enum Conn {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Looks {
    pub(super) async fn at(db: Database) -> Self {
        let conn = match &db {
            Database::Postgres { url, .. } => Conn::Postgres(PgConnection::connect(url).await.unwrap()),
            Database::Sqlite { path, .. } => {
                let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
                conn.execute("PRAGMA busy_timeout = 10000").await.unwrap();
                Conn::Sqlite(conn)
            }
        };
        Self {
            conn: Mutex::new(conn),
            _db: db,
        }
    }

    /// The event's row and runs as one line; `None` if there is no row.
    pub(super) async fn row(&self, key: &EventKey) -> Option<String> {
        let source = key.source.as_str();
        let (sql, runs) = match &*self.conn.lock().await {
            Conn::Postgres(_) => (row_of_postgres(source), runs(source, "encode(owner, 'hex')")),
            Conn::Sqlite(_) => (row_of_sqlite(source), runs(source, "lower(hex(owner))")),
        };
        let row = self.texts(sql).await.pop()?;
        Some(format!("{row} {:?}", self.texts(runs).await))
    }

    /// What [`Self::row`] should say of this one.
    pub(super) fn told(&self, row: &rules::Row, now: i64) -> String {
        let ended = row.ended.iter().map(|ended| {
            let run = ended.run;
            format!(
                "{} {} {:032x} {}",
                run.generation, run.attempt, run.owner.0, ended.outcome
            )
        });
        let mut ended: Vec<String> = ended.collect();
        ended.sort();
        let from_now = |moment: Option<i64>| {
            moment.map_or("-".to_owned(), |moment| ((moment - now) / UNIT_MS).to_string())
        };
        format!(
            "{} {} attempts {} tries {} generation {} owner {} until {} due {} deadline {} {ended:?}",
            row.path.as_str(),
            row.state,
            row.attempts,
            row.tries,
            row.generation,
            row.lease
                .map_or("-".to_owned(), |lease| format!("{:032x}", lease.owner.0)),
            from_now(row.lease.map(|lease| lease.until)),
            from_now(row.due),
            from_now(row.deadline),
        )
    }

    /// Moves every moment of the row back.
    pub(super) async fn pass(&self, key: &EventKey, ms: i64) {
        let source = key.source.as_str();
        let mut conn = self.conn.lock().await;
        let back = |column: &str| match &*conn {
            Conn::Postgres(_) => format!("{column} = {column} - {ms} * interval '1 ms'"),
            Conn::Sqlite(_) => format!("{column} = {column} - {ms}"),
        };
        let moved = ["lease_until", "next_attempt_at", "deadline_at"]
            .map(back)
            .join(", ");
        let sql = AssertSqlSafe(format!(
            "UPDATE webhook_events SET {moved} WHERE source = '{source}'"
        ));
        match &mut *conn {
            Conn::Postgres(conn) => drop(conn.execute(sql).await.unwrap()),
            Conn::Sqlite(conn) => drop(conn.execute(sql).await.unwrap()),
        }
    }

    async fn texts(&self, sql: String) -> Vec<String> {
        let query = AssertSqlSafe(sql);
        match &mut *self.conn.lock().await {
            Conn::Postgres(conn) => sqlx::query_scalar(query).fetch_all(conn).await.unwrap(),
            Conn::Sqlite(conn) => sqlx::query_scalar(query).fetch_all(conn).await.unwrap(),
        }
    }
}

fn row_of_postgres(source: &str) -> String {
    let from_now = |column: &str| {
        format!("COALESCE(round(extract(epoch FROM {column} - now()) * 1000 / {UNIT_MS})::text, '-')")
    };
    row(source, from_now, "COALESCE(encode(lease_owner, 'hex'), '-')")
}

fn row_of_sqlite(source: &str) -> String {
    let from_now = |column: &str| {
        format!(
            "COALESCE(CAST(CAST(round(({column} - (SELECT now FROM clock)) / {UNIT_MS}.0) AS INTEGER) AS TEXT), '-')"
        )
    };
    row(
        source,
        from_now,
        "iif(lease_owner IS NULL, '-', lower(hex(lease_owner)))",
    )
}

fn row(source: &str, from_now: impl Fn(&str) -> String, owner: &str) -> String {
    format!(
        "SELECT path || ' ' || state || ' attempts ' || attempts || ' tries ' || tries || ' generation ' || generation
             || ' owner ' || {owner} || ' until ' || {} || ' due ' || {} || ' deadline ' || {}
         FROM webhook_events WHERE source = '{source}'",
        from_now("lease_until"),
        from_now("next_attempt_at"),
        from_now("deadline_at"),
    )
}

fn runs(source: &str, owner: &str) -> String {
    format!(
        "SELECT generation || ' ' || attempt || ' ' || {owner} || ' ' || outcome FROM webhook_attempts
         WHERE source = '{source}' ORDER BY 1"
    )
}
