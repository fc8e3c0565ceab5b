//! Counts per minute, summed over replicas.

use hookgate_webhook::SourceName;
use sqlx::PgConnection;

use crate::sql::operations::{CountRow, Window, micros};

const STATS: &str = "
    SELECT (extract(epoch FROM s.minute) * 1000000)::bigint AS minute, source, name, sum(count)::bigint AS count
    FROM stats_minute AS s
    WHERE s.minute >= timestamptz 'epoch' + $1 * interval '1 microsecond'
      AND s.minute < timestamptz 'epoch' + $2 * interval '1 microsecond'
      AND ($3::text IS NULL OR source = $3)
    GROUP BY s.minute, source, name
    ORDER BY s.minute, source, name";

/// One row a minute, source and name.
pub(super) async fn stats(conn: &mut PgConnection, window: &Window) -> sqlx::Result<Vec<CountRow>> {
    sqlx::query_as(STATS)
        .bind(micros(window.since))
        .bind(micros(window.until))
        .bind(window.source.as_ref().map(SourceName::as_str))
        .fetch_all(conn)
        .await
}
