//! What people do with the ledger, in Postgres.

mod change;
mod look;
mod stats;
mod targets;

use async_trait::async_trait;
use hookgate_webhook::EventKey;
use sqlx::PgConnection;

use super::store::Postgres;
use crate::sql::operations::{
    CountRow, OperationsDialect, Order, PauseOrder, Phrases, Selection, Standing, SummaryRow, TargetRow,
    Touched, Window,
};
use crate::{EventDetail, StoredBody};

/// A selection in Postgres's words. The error's text is compared as text, not as a pattern.
const PHRASES: Phrases = Phrases {
    since: "received_at >= timestamptz 'epoch' + $4 * interval '1 microsecond'",
    until: "received_at < timestamptz 'epoch' + $5 * interval '1 microsecond'",
    error: "strpos(lower(last_error), lower($6)) > 0",
    older: "(received_at, source, event_id) < (timestamptz 'epoch' + $7 * interval '1 microsecond', $8, $9)",
    younger: "(received_at, source, event_id) > (timestamptz 'epoch' + $7 * interval '1 microsecond', $8, $9)",
    one: "event_id = $11 AND generation = COALESCE($12, generation)",
};

#[async_trait]
impl OperationsDialect for Postgres {
    async fn list(conn: &mut PgConnection, selection: &Selection) -> sqlx::Result<Vec<SummaryRow>> {
        look::list(conn, selection).await
    }

    async fn event(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
        look::event(conn, key).await
    }

    async fn body(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<StoredBody>> {
        look::body(conn, key).await
    }

    async fn count(conn: &mut PgConnection, selection: &Selection) -> sqlx::Result<Vec<Touched>> {
        change::count(conn, selection).await
    }

    async fn change(conn: &mut PgConnection, order: &Order<'_>) -> sqlx::Result<Vec<Touched>> {
        change::change(conn, order).await
    }

    async fn await_earlier(conn: &mut PgConnection, request: &[u8; 16]) -> sqlx::Result<()> {
        change::await_earlier(conn, request).await
    }

    async fn written(conn: &mut PgConnection, request: &[u8; 16]) -> sqlx::Result<Vec<Touched>> {
        change::written(conn, request).await
    }

    async fn standing(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<Standing>> {
        change::standing(conn, key).await
    }

    async fn targets(conn: &mut PgConnection) -> sqlx::Result<Vec<TargetRow>> {
        targets::targets(conn).await
    }

    async fn pause(conn: &mut PgConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
        targets::pause(conn, order).await
    }

    async fn resume(conn: &mut PgConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
        targets::resume(conn, order).await
    }

    async fn stats(conn: &mut PgConnection, window: &Window) -> sqlx::Result<Vec<CountRow>> {
        stats::stats(conn, window).await
    }
}
