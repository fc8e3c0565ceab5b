//! Targets, and their pauses.

use sqlx::{Connection, SqliteConnection};

use crate::sql::operations::{PauseOrder, TargetRow};

const TARGETS: &str = "
    SELECT name, paused_at * 1000 AS paused_at, paused_by, paused_why, down_since * 1000 AS down_since
    FROM targets
    ORDER BY name";

const PAUSE: &str = "
    INSERT INTO targets (name, paused_at, paused_by, paused_why)
    SELECT $1, now, $2, $3 FROM clock
    WHERE true -- Else the parser takes what follows for a join's condition.
    ON CONFLICT (name) DO UPDATE
    SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, paused_why = excluded.paused_why
    WHERE targets.paused_at IS NULL";

const RESUME: &str = "
    UPDATE targets
    SET paused_at = NULL, paused_by = NULL, paused_why = NULL, resumed_at = (SELECT now FROM clock)
    WHERE name = $1 AND paused_at IS NOT NULL";

const AUDIT: &str = "
    INSERT INTO audit_log (actor, action, target, detail, request) VALUES ($1, $2, $3, $4, $5)";

const PROOF: &str = "SELECT EXISTS (SELECT 1 FROM audit_log WHERE request = $1)";

/// All that any worker has named.
pub(super) async fn targets(conn: &mut SqliteConnection) -> sqlx::Result<Vec<TargetRow>> {
    sqlx::query_as(TARGETS).fetch_all(conn).await
}

/// Pauses; false if somebody else had.
pub(super) async fn pause(conn: &mut SqliteConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
    write(conn, PAUSE, "pause", order).await
}

/// Lifts a pause; false if there was none.
pub(super) async fn resume(conn: &mut SqliteConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
    write(conn, RESUME, "resume", order).await
}

async fn write(
    conn: &mut SqliteConnection,
    sql: &'static str,
    action: &'static str,
    order: &PauseOrder<'_>,
) -> sqlx::Result<bool> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let written = sqlx::query(sql)
        .bind(order.target)
        .bind(&order.reason.actor)
        .bind(&order.reason.why)
        .execute(&mut *tx)
        .await?;
    if written.rows_affected() == 0 {
        return sqlx::query_scalar(PROOF)
            .bind(&order.request[..])
            .fetch_one(&mut *tx)
            .await;
    }
    sqlx::query(AUDIT)
        .bind(&order.reason.actor)
        .bind(action)
        .bind(order.target)
        .bind(&order.reason.why)
        .bind(&order.request[..])
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}
