//! Searching, and looking at one event.

use bytes::Bytes;
use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::{PHRASES, patience, table};
use crate::operations::HISTORY_MAX;
use crate::sql::operations::{AttemptRow, AuditRow, DetailRow, Selection, SummaryRow};
use crate::{EventDetail, StoredBody};

/// What a list shows. The length of a body is known without reading it.
macro_rules! summary {
    () => {
        "source, event_id, provider, account, mode, event_type, object_id,
         provider_time * 1000 AS provider_time, webhook_events.received_at * 1000 AS received_at,
         path, state, attempts, tries, generation, next_attempt_at * 1000 AS next_attempt_at,
         twin_of, last_error, processed_at * 1000 AS processed_at, pruned_at * 1000 AS pruned_at,
         octet_length(body) AS body_bytes"
    };
}

const SUMMARY: &str = summary!();

const DETAIL: &str = concat!(
    "SELECT ",
    summary!(),
    ", body_sha256, headers FROM webhook_events WHERE source = $1 AND event_id = $2"
);

const ATTEMPTS: &str = "
    SELECT generation, attempt, started_at * 1000 AS started_at, finished_at * 1000 AS finished_at,
           outcome, error
    FROM webhook_attempts
    WHERE source = $1 AND event_id = $2
    ORDER BY generation DESC, attempt DESC
    LIMIT $3";

const AUDIT: &str = "
    SELECT at * 1000 AS at, actor, action, generation, detail
    FROM audit_log
    WHERE source = $1 AND event_id = $2
    ORDER BY id DESC
    LIMIT $3";

const BODY: &str = "
    SELECT body, pruned_at IS NOT NULL FROM webhook_events WHERE source = $1 AND event_id = $2";

/// The selected events.
pub(super) async fn list(
    conn: &mut SqliteConnection,
    selection: &Selection,
) -> sqlx::Result<Vec<SummaryRow>> {
    let condition = selection.condition(&PHRASES);
    let table = table(selection);
    let order = selection.order();
    let sql = format!("SELECT {SUMMARY} FROM {table} WHERE {condition} {order}");
    patience::limit(conn, selection.within).await?;
    let rows = selection
        .bind(sqlx::query_as(AssertSqlSafe(sql)))
        .fetch_all(&mut *conn)
        .await;
    patience::lift(conn).await?;
    rows
}

/// All of it as of one moment.
pub(super) async fn event(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
    let mut tx = conn.begin().await?;
    let row: Option<DetailRow> = sqlx::query_as(DETAIL)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(&mut *tx)
        .await?;
    let attempts: Vec<AttemptRow> = sqlx::query_as(ATTEMPTS)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(HISTORY_MAX)
        .fetch_all(&mut *tx)
        .await?;
    let audit: Vec<AuditRow> = sqlx::query_as(AUDIT)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(HISTORY_MAX)
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    row.map(|row| row.detail(attempts, audit)).transpose()
}

/// The body, if the event is there.
pub(super) async fn body(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<StoredBody>> {
    let row: Option<(Vec<u8>, bool)> = sqlx::query_as(BODY)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await?;
    Ok(row.map(|(body, pruned)| match pruned {
        true => StoredBody::Pruned,
        false => StoredBody::Raw(Bytes::from(body)),
    }))
}
