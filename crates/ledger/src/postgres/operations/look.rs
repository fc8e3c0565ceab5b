//! Searching, and looking at one event.

use bytes::Bytes;
use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, Executor as _, PgConnection};

use super::PHRASES;
use crate::operations::HISTORY_MAX;
use crate::sql::operations::{AttemptRow, AuditRow, DetailRow, Selection, SummaryRow};
use crate::{EventDetail, StoredBody};

/// What a list shows. The length of a body is known without reading it.
macro_rules! summary {
    () => {
        "source, event_id, provider, account, mode, event_type, object_id,
         (extract(epoch FROM provider_time) * 1000000)::bigint AS provider_time,
         (extract(epoch FROM webhook_events.received_at) * 1000000)::bigint AS received_at,
         path, state, attempts::bigint, tries::bigint, generation::bigint,
         (extract(epoch FROM next_attempt_at) * 1000000)::bigint AS next_attempt_at,
         twin_of, last_error,
         (extract(epoch FROM processed_at) * 1000000)::bigint AS processed_at,
         (extract(epoch FROM pruned_at) * 1000000)::bigint AS pruned_at,
         octet_length(body)::bigint AS body_bytes"
    };
}

const SUMMARY: &str = summary!();

const DETAIL: &str = concat!(
    "SELECT ",
    summary!(),
    ", body_sha256, headers FROM webhook_events WHERE source = $1 AND event_id = $2"
);

const ATTEMPTS: &str = "
    SELECT generation::bigint, attempt::bigint,
           (extract(epoch FROM started_at) * 1000000)::bigint AS started_at,
           (extract(epoch FROM finished_at) * 1000000)::bigint AS finished_at, outcome, error
    FROM webhook_attempts
    WHERE source = $1 AND event_id = $2
    ORDER BY webhook_attempts.generation DESC, webhook_attempts.attempt DESC
    LIMIT $3";

const AUDIT: &str = "
    SELECT (extract(epoch FROM at) * 1000000)::bigint AS at, actor, action, generation::bigint, detail
    FROM audit_log
    WHERE source = $1 AND event_id = $2
    ORDER BY id DESC
    LIMIT $3";

const BODY: &str = "
    SELECT body, pruned_at IS NOT NULL FROM webhook_events WHERE source = $1 AND event_id = $2";

/// The selected events. The statement is planned anew each time: what is a good plan for one source or type
/// may be a bad one for the next.
pub(super) async fn list(conn: &mut PgConnection, selection: &Selection) -> sqlx::Result<Vec<SummaryRow>> {
    let condition = selection.condition(&PHRASES);
    let order = selection.order();
    let sql = format!("SELECT {SUMMARY} FROM webhook_events WHERE {condition} {order}");
    let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
    selection.bind(query).fetch_all(conn).await
}

/// All of it as of one moment.
pub(super) async fn event(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
    match at_one_moment(conn, key).await {
        // Where a session is lent we are in a transaction already, and at its beginning.
        Err(sqlx::Error::InvalidSavePointStatement) => {
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                .await?;
            parts(conn, key).await
        }
        seen => seen,
    }
}

async fn at_one_moment(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
    let mut tx = conn
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let detail = parts(&mut tx, key).await?;
    tx.commit().await?;
    Ok(detail)
}

async fn parts(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
    let row: Option<DetailRow> = sqlx::query_as(DETAIL)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(&mut *conn)
        .await?;
    let attempts: Vec<AttemptRow> = sqlx::query_as(ATTEMPTS)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(HISTORY_MAX)
        .fetch_all(&mut *conn)
        .await?;
    let audit: Vec<AuditRow> = sqlx::query_as(AUDIT)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(HISTORY_MAX)
        .fetch_all(conn)
        .await?;
    row.map(|row| row.detail(attempts, audit)).transpose()
}

/// The body, if the event is there.
pub(super) async fn body(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<StoredBody>> {
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
