//! A replica on the embedded stores: a database file of its own, claims in memory. What a test needs that
//! asks about input and not about stores.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate_harness::PATIENCE;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _, SqliteConnection};
use tempfile::TempDir;

use crate::gateway::Replica;
use crate::provider::SECRET;
use crate::secret_file::SecretFile;

/// A replica and its directory, which ends with it.
pub struct Embedded {
    replica: Replica,
    directory: TempDir,
}

/// The secret of every source whose provider takes it.
pub const ALL_SECRETS: [(&str, &str); 4] = [
    ("STRIPE_WEBHOOK_SECRET", SECRET),
    ("GITHUB_WEBHOOK_SECRET", SECRET),
    ("SHOPIFY_WEBHOOK_SECRET", SECRET),
    ("STANDARD_WEBHOOKS_WEBHOOK_SECRET", SECRET),
];

impl Embedded {
    /// A replica with all sources.
    pub async fn serve() -> Self {
        Self::serve_with(&[]).await
    }

    /// As [`Embedded::serve`], with further settings.
    pub async fn serve_with(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let database = url(&file(&directory));
        let mut all = vec![("DATABASE_URL", database.as_str())];
        all.extend(ALL_SECRETS);
        all.extend(settings);
        let replica = Replica::serve(&all).await;
        Self { replica, directory }
    }

    /// A replica whose only source is `stripe`, with its secrets in this file.
    pub async fn serve_from_file(file: &SecretFile, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (database, path) = (url(&self::file(&directory)), file.path().display().to_string());
        let mut all = vec![
            ("DATABASE_URL", database.as_str()),
            ("STRIPE_WEBHOOK_SECRET_FILE", path.as_str()),
        ];
        all.extend(settings);
        let replica = Replica::serve(&all).await;
        Self { replica, directory }
    }

    /// The rows of a query with one column, one a line; NULL is the empty line.
    pub async fn sql(&self, query: &str) -> String {
        sql(&file(&self.directory), query).await
    }

    /// Changes rows behind the replica's back.
    pub async fn execute(&self, statement: &str) {
        let options = SqliteConnectOptions::new().filename(file(&self.directory));
        let mut connection = SqliteConnection::connect_with(&options)
            .await
            .expect("the database file can be opened");
        sqlx::query(AssertSqlSafe(statement.to_owned()))
            .execute(&mut connection)
            .await
            .expect("the statement is executed");
    }
}

impl Deref for Embedded {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

/// `DATABASE_URL` of a database file.
pub fn url(file: &Path) -> String {
    format!("sqlite://{}", file.display())
}

/// The rows of a statement on a database file, one a line, columns parted by `|`; NULL is empty.
pub async fn sql(file: &Path, query: &str) -> String {
    let options = SqliteConnectOptions::new().filename(file).busy_timeout(PATIENCE);
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("the database file can be opened");
    let rows = sqlx::query(AssertSqlSafe(query.to_owned()))
        .fetch_all(&mut connection)
        .await
        .expect("the query is answered");
    let text = |row: &SqliteRow, column| row.try_get_unchecked::<Option<String>, _>(column);
    let columns = |row: &SqliteRow| {
        let columns = (0..row.len()).map(|column| text(row, column).expect("a column is text"));
        columns
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>()
            .join("|")
    };
    rows.iter().map(columns).collect::<Vec<_>>().join("\n")
}

/// Takes the file's write lock, as a writer that stands still would hold it; `None` if somebody has it.
/// Dropping the connection gives it back.
pub async fn hold(file: &Path) -> Option<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .busy_timeout(Duration::from_millis(500));
    let mut connection = SqliteConnection::connect_with(&options)
        .await
        .expect("the database file can be opened");
    connection.execute("BEGIN IMMEDIATE").await.ok()?;
    Some(connection)
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("hookgate.db")
}
