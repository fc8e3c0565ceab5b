//! How the file is opened.

use std::fs::OpenOptions;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};

use super::fault;
use crate::fault::Fault;
use crate::history::Chronicle;
use crate::sessions::{Opened, Store};
use crate::{LedgerError, Limits};

/// The library is built in, so this guards against a build that links an older one. Before this version a
/// rare race of two connections could damage a file in WAL mode: <https://www.sqlite.org/wal.html#walresetbug>.
const VERSION_MIN: (u32, u32, u32) = (3, 51, 3);

/// A SQLite file.
#[derive(Clone)]
pub(crate) struct Sqlite {
    options: SqliteConnectOptions,
}

impl Sqlite {
    /// Looks whether the file can be written, and creates it if it is not there.
    pub(crate) fn at(path: &Path, limits: &Limits) -> Result<Self, LedgerError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(LedgerError::Unusable(format!(
                "the ledger is to be the file {}, but {} is no folder; create it, or name another file in \
                 DATABASE_URL",
                path.display(),
                folder.display()
            )));
        }
        OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
            LedgerError::Unusable(format!(
                "the ledger's file {} cannot be written: {error}; change its permissions, or name another \
                 file in DATABASE_URL",
                path.display()
            ))
        })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(limits.lock)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .disable_statement_logging();
        Ok(Self { options })
    }
}

impl Chronicle for Sqlite {}

impl Store for Sqlite {
    type Connection = SqliteConnection;

    async fn open(&self) -> Result<Opened<SqliteConnection>, Fault> {
        let mut conn = self
            .options
            .connect()
            .await
            .map_err(|error| fault::judge(&error))?;
        let version: String = sqlx::query_scalar("SELECT sqlite_version()")
            .fetch_one(&mut conn)
            .await
            .map_err(|error| fault::judge(&error))?;
        match parse(&version) {
            Some(parsed) if parsed >= VERSION_MIN => Ok(Opened::plain(conn)),
            _ => Err(Fault::Unusable(format!(
                "this program was built with SQLite {version}; it needs {}.{}.{} or later",
                VERSION_MIN.0, VERSION_MIN.1, VERSION_MIN.2
            ))),
        }
    }

    fn judge(error: &sqlx::Error) -> Fault {
        fault::judge(error)
    }
}

fn parse(version: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((
        numbers.next()??,
        numbers.next()??,
        numbers.next().unwrap_or(Some(0))?,
    ))
}
