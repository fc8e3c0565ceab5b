//! Migrating under the file's own write lock: all migrations run in one transaction that takes it first, so
//! processes that start together wait for each other and find the work done. A failure leaves the schema as it
//! was. A schema newer than this binary is left alone.

use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::{Connection, SqliteConnection};
use tokio::time::{Instant, timeout};

use super::store::Sqlite;
use crate::LedgerError;
use crate::fault::{Fault, Pauses};
use crate::sessions::{Sessions, Store};

/// How long a process waits for another one that migrates.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn migrate(sessions: &Sessions<Sqlite>) -> Result<(), LedgerError> {
    let deadline = Instant::now() + PATIENCE;
    let mut pauses = Pauses::new();
    loop {
        match once(sessions, deadline).await {
            Err(LedgerError::Unavailable(_)) if Instant::now() < deadline => {
                tokio::time::sleep(pauses.next()).await;
            }
            outcome => return outcome,
        }
    }
}

async fn once(sessions: &Sessions<Sqlite>, deadline: Instant) -> Result<(), LedgerError> {
    let mut session = sessions.open(deadline).await?;
    session.at_rest = false;
    match timeout(PATIENCE, run(&mut session.connection)).await {
        Ok(Ok(())) => {
            session.at_rest = true;
            Ok(())
        }
        Ok(Err(error)) => Err(explain(error)),
        Err(_) => Err(Fault::Broken("migrating took too long".into()).into()),
    }
}

async fn run(conn: &mut SqliteConnection) -> Result<(), MigrateError> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let mut migrator = sqlx::migrate!("migrations/sqlite");
    migrator.set_locking(false).set_ignore_missing(true);
    // Not `run`: its generic argument makes this future unusable behind a trait.
    migrator.run_direct(None, &mut *tx, false).await?;
    tx.commit().await?;
    Ok(())
}

/// A file that another process holds is no fault of a migration.
fn explain(error: MigrateError) -> LedgerError {
    match &error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)
            if Sqlite::judge(cause).passes() =>
        {
            LedgerError::Unavailable(cause.to_string())
        }
        _ => LedgerError::Migration(error.to_string()),
    }
}
