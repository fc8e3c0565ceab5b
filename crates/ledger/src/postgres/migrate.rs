//! Migrating under a lock that also holds behind a transaction pooler: an advisory lock of the transaction.
//! (The migrator's own lock belongs to a session, which a pooler lends to somebody else.)

use sqlx::migrate::MigrateError;
use sqlx::{Connection, PgConnection};

/// Any number, as long as nobody else on this database takes it: "hookgate" in ASCII.
const LOCK: i64 = 0x686f_6f6b_6761_7465;

pub(super) async fn migrate(conn: &mut PgConnection) -> Result<(), MigrateError> {
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
