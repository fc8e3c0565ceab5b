//! Migrating under a lock that also holds behind a transaction pooler.
//!
//! All migrations run in one transaction, which first takes an advisory lock of its own: replicas that start
//! together wait for each other and find the work done. (The migrator's own lock belongs to a session, which
//! a pooler lends to somebody else.) A failure leaves the schema as it was. A schema newer than this binary
//! is left alone, so that the binary before an upgrade runs on beside the one after it.

use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::MigrateError;
use tokio::time::{Instant, timeout};

use super::store::Postgres;
use crate::LedgerError;
use crate::sessions::{Sessions, Store};

/// Any number, as long as nobody else on this database takes it: "hookgate" in ASCII.
const LOCK: i64 = 0x686f_6f6b_6761_7465;

/// Replicas that wait for the one that migrates, and a migration of a big table, may take longer than any
/// statement of the path.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn migrate(sessions: &Sessions<Postgres>) -> Result<(), LedgerError> {
    let mut session = sessions.open(Instant::now() + PATIENCE).await?;
    session.at_rest = false;
    let migrated = timeout(PATIENCE, run(&mut session.connection)).await;
    match migrated {
        Ok(Ok(())) => {
            session.at_rest = true;
            Ok(())
        }
        Ok(Err(error)) => Err(explain(error)),
        Err(_) => Err(LedgerError::Unavailable(format!(
            "migrating took more than {} s, or another process migrates for so long",
            PATIENCE.as_secs()
        ))),
    }
}

async fn run(conn: &mut sqlx::PgConnection) -> Result<(), MigrateError> {
    let mut tx = conn.begin().await?;
    sqlx::query("SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)")
        .execute(&mut *tx)
        .await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await?;
    let mut migrator = sqlx::migrate!("migrations/postgres");
    migrator.set_locking(false).set_ignore_missing(true);
    // Not `run`: its generic argument makes this future unusable behind a trait.
    migrator.run_direct(None, &mut *tx, false).await?;
    tx.commit().await?;
    Ok(())
}

/// A database that went away meanwhile is no fault of a migration.
fn explain(error: MigrateError) -> LedgerError {
    match &error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)
            if Postgres::judge(cause).passes() =>
        {
            LedgerError::Unavailable(cause.to_string())
        }
        _ => LedgerError::Migration(error.to_string()),
    }
}
