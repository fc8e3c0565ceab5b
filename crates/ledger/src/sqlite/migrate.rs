//! Migrating under the file's own write lock.

use sqlx::migrate::MigrateError;
use sqlx::{Connection, SqliteConnection};

pub(super) async fn migrate(conn: &mut SqliteConnection) -> Result<(), MigrateError> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let mut migrator = sqlx::migrate!("migrations/sqlite");
    migrator.set_locking(false).set_ignore_missing(true);
    // Not `run`: its generic argument makes this future unusable behind a trait.
    migrator.run_direct(None, &mut *tx, false).await?;
    tx.commit().await?;
    Ok(())
}
