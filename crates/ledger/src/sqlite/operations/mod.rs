//! What people do with the ledger, in SQLite.

mod change;
mod look;
mod patience;
mod stats;
mod targets;

use async_trait::async_trait;
use hookgate_webhook::EventKey;
use sqlx::SqliteConnection;

use super::store::Sqlite;
use crate::sql::operations::{
    CountRow, OperationsDialect, Order, PauseOrder, Phrases, Selection, Standing, SummaryRow, TargetRow,
    Touched, Window,
};
use crate::{EventDetail, State, StoredBody};

/// A selection in SQLite's words. Its times are milliseconds; one that lies between two of them begins or ends
/// with the later. Only ASCII letters have two cases here.
const PHRASES: Phrases = Phrases {
    since: "received_at >= ($4 + 999) / 1000",
    until: "received_at < ($5 + 999) / 1000",
    error: "instr(lower(last_error), lower($6)) > 0",
    older: "received_at <= $7 / 1000 AND (received_at, source, event_id) < ($7 / 1000, $8, $9)",
    younger: "received_at >= $7 / 1000 AND (received_at, source, event_id) > ($7 / 1000, $8, $9)",
    one: "event_id = $11 AND generation = COALESCE($12, generation)",
};

/// The table, read by the index that suits the selection. SQLite keeps no statistics unless told to, and
/// without them takes a source that has every event for a good way to find one.
fn table(selection: &Selection) -> &'static str {
    if selection.one.is_some() {
        "webhook_events"
    } else if selection.filter.object_id.is_some() {
        "webhook_events INDEXED BY webhook_events_object"
    } else if selection.filter.states == [State::Dead] {
        "webhook_events INDEXED BY webhook_events_dead_received"
    } else if selection.filter.states == [State::Failed] {
        "webhook_events INDEXED BY webhook_events_failed"
    } else {
        "webhook_events INDEXED BY webhook_events_received"
    }
}

#[async_trait]
impl OperationsDialect for Sqlite {
    async fn list(conn: &mut SqliteConnection, selection: &Selection) -> sqlx::Result<Vec<SummaryRow>> {
        look::list(conn, selection).await
    }

    async fn event(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<EventDetail>> {
        look::event(conn, key).await
    }

    async fn body(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<StoredBody>> {
        look::body(conn, key).await
    }

    async fn count(conn: &mut SqliteConnection, selection: &Selection) -> sqlx::Result<Vec<Touched>> {
        change::count(conn, selection).await
    }

    async fn change(conn: &mut SqliteConnection, order: &Order<'_>) -> sqlx::Result<Vec<Touched>> {
        change::change(conn, order).await
    }

    /// One that was cut off does no more than end its last statement, and whoever writes next waits for that.
    async fn await_earlier(_conn: &mut SqliteConnection, _request: &[u8; 16]) -> sqlx::Result<()> {
        Ok(())
    }

    async fn written(conn: &mut SqliteConnection, request: &[u8; 16]) -> sqlx::Result<Vec<Touched>> {
        change::written(conn, request).await
    }

    async fn standing(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<Standing>> {
        change::standing(conn, key).await
    }

    async fn targets(conn: &mut SqliteConnection) -> sqlx::Result<Vec<TargetRow>> {
        targets::targets(conn).await
    }

    async fn pause(conn: &mut SqliteConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
        targets::pause(conn, order).await
    }

    async fn resume(conn: &mut SqliteConnection, order: &PauseOrder<'_>) -> sqlx::Result<bool> {
        targets::resume(conn, order).await
    }

    async fn stats(conn: &mut SqliteConnection, window: &Window) -> sqlx::Result<Vec<CountRow>> {
        stats::stats(conn, window).await
    }
}
