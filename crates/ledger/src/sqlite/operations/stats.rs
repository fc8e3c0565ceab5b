//! Counts per minute, summed over processes.

use hookgate_webhook::SourceName;
use sqlx::SqliteConnection;

use super::patience;
use crate::sql::operations::{CountRow, Window, micros};

const STATS: &str = "
    SELECT minute * 1000 AS minute, source, name, sum(count) AS count
    FROM stats_minute
    WHERE stats_minute.minute >= ($1 + 999) / 1000 AND stats_minute.minute < ($2 + 999) / 1000
      AND ($3 IS NULL OR source = $3)
    GROUP BY stats_minute.minute, source, name
    ORDER BY stats_minute.minute, source, name";

/// One row a minute, source and name.
pub(super) async fn stats(conn: &mut SqliteConnection, window: &Window) -> sqlx::Result<Vec<CountRow>> {
    patience::limit(conn, window.within).await?;
    let rows = sqlx::query_as(STATS)
        .bind(micros(window.since))
        .bind(micros(window.until))
        .bind(window.source.as_ref().map(SourceName::as_str))
        .fetch_all(&mut *conn)
        .await;
    patience::lift(conn).await?;
    rows
}
