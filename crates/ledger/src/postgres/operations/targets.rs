//! Targets, and their pauses.

use sqlx::PgConnection;

use crate::sql::operations::{PauseOrder, TargetRow};

const TARGETS: &str = "
    SELECT name, (extract(epoch FROM paused_at) * 1000000)::bigint AS paused_at, paused_by, paused_why,
           (extract(epoch FROM down_since) * 1000000)::bigint AS down_since
    FROM targets
    ORDER BY name";

const PAUSE: &str = "
    WITH paused AS (
        INSERT INTO targets AS known (name, paused_at, paused_by, paused_why)
        VALUES ($1, now(), $2, $3)
        ON CONFLICT (name) DO UPDATE
        SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, paused_why = excluded.paused_why
        WHERE known.paused_at IS NULL
        RETURNING name
    )
    INSERT INTO audit_log (actor, action, target, detail, request)
    SELECT $2, 'pause', name, $3, $4 FROM paused";

const RESUME: &str = "
    WITH resumed AS (
        UPDATE targets SET paused_at = NULL, paused_by = NULL, paused_why = NULL, resumed_at = now()
        WHERE name = $1 AND paused_at IS NOT NULL
        RETURNING name
    )
    INSERT INTO audit_log (actor, action, target, detail, request)
    SELECT $2, 'resume', name, $3, $4 FROM resumed";

const PROOF: &str = "SELECT EXISTS (SELECT FROM audit_log WHERE request = $1)";

/// All that any worker has named.
pub(super) async fn targets(conn: &mut PgConnection) -> sqlx::Result<Vec<TargetRow>> {
    sqlx::query_as(TARGETS).fetch_all(conn).await
}

/// Pauses; false if somebody else had.
pub(super) async fn pause(conn: &mut PgConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
    write(conn, PAUSE, order).await
}

/// Lifts a pause; false if there was none.
pub(super) async fn resume(conn: &mut PgConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
    write(conn, RESUME, order).await
}

async fn write(conn: &mut PgConnection, sql: &'static str, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
    let written = sqlx::query(sql)
        .bind(order.target)
        .bind(&order.reason.actor)
        .bind(&order.reason.why)
        .bind(&order.request[..])
        .execute(&mut *conn)
        .await?;
    match written.rows_affected() {
        0 => {
            sqlx::query_scalar(PROOF)
                .bind(&order.request[..])
                .fetch_one(conn)
                .await
        }
        _ => Ok(true),
    }
}
