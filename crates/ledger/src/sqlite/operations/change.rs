//! Changing events: one transaction chooses them, changes each and writes it down. Within it nobody else
//! writes, so who comes second finds the events in another state.

use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::{PHRASES, patience, table};
use crate::Change;
use crate::columns::milliseconds;
use crate::sql::operations::{Order, Selection, Standing, Touched};

const REPLAY: &str = "
    UPDATE webhook_events
    SET state = 'queued', path = 'inbox', generation = generation + 1, attempts = 0, tries = 0,
        deadline_at = NULL, processed_at = NULL, last_error = NULL,
        next_attempt_at = $3 + $4
    WHERE source = $1 AND event_id = $2
    RETURNING generation";

/// Attempts go on rising, since targets compare them; the reason of the death stays until there is another.
const REDRIVE: &str = "
    UPDATE webhook_events
    SET state = 'queued', path = 'inbox', tries = 0, deadline_at = NULL, processed_at = NULL,
        next_attempt_at = $3 + $4
    WHERE source = $1 AND event_id = $2
    RETURNING generation";

const DISCARD: &str = "
    UPDATE webhook_events
    SET state = 'discarded', processed_at = $3
    WHERE source = $1 AND event_id = $2
    RETURNING generation";

const AUDIT: &str = "
    INSERT INTO audit_log (actor, action, source, event_id, generation, detail, request, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const TOUCHED: &str = "source, event_id, webhook_events.received_at * 1000 AS received_at, generation";

const WRITTEN: &str = "
    SELECT source, event_id, e.received_at * 1000 AS received_at, COALESCE(a.generation, 0) AS generation
    FROM audit_log AS a JOIN webhook_events AS e USING (source, event_id)
    WHERE request = $1
    ORDER BY e.received_at, source, event_id";

const STANDING: &str = "
    SELECT state, generation, pruned_at IS NOT NULL AS pruned
    FROM webhook_events WHERE source = $1 AND event_id = $2";

/// Changes the selected events.
pub(super) async fn change(conn: &mut SqliteConnection, order: &Order<'_>) -> sqlx::Result<Vec<Touched>> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let now: i64 = sqlx::query_scalar("SELECT now FROM clock")
        .fetch_one(&mut *tx)
        .await?;
    let mut touched = count(&mut tx, &order.selection).await?;
    let mut due_in = order.first_in;
    for event in &mut touched {
        event.generation = write(&mut tx, order, event, [now, milliseconds(due_in)]).await?;
        write_audit(&mut tx, order, event, now).await?;
        due_in += order.spacing;
    }
    tx.commit().await?;
    Ok(touched)
}

/// Changes one event, and says which generation it has now.
async fn write(
    conn: &mut SqliteConnection,
    order: &Order<'_>,
    event: &Touched,
    [now, due_in]: [i64; 2],
) -> sqlx::Result<i64> {
    let sql = match order.change {
        Change::Replay => REPLAY,
        Change::Redrive => REDRIVE,
        Change::Discard => DISCARD,
    };
    sqlx::query_scalar(sql)
        .bind(&event.source)
        .bind(&event.event_id)
        .bind(now)
        .bind(due_in)
        .fetch_one(conn)
        .await
}

async fn write_audit(
    conn: &mut SqliteConnection,
    order: &Order<'_>,
    event: &Touched,
    now: i64,
) -> sqlx::Result<()> {
    sqlx::query(AUDIT)
        .bind(&order.reason.actor)
        .bind(order.change.as_str())
        .bind(&event.source)
        .bind(&event.event_id)
        .bind(event.generation)
        .bind(&order.reason.why)
        .bind(&order.request[..])
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

/// The selected events, unchanged.
pub(super) async fn count(conn: &mut SqliteConnection, selection: &Selection) -> sqlx::Result<Vec<Touched>> {
    let condition = selection.condition(&PHRASES);
    let table = table(selection);
    let oldest_first = selection.order();
    let sql = format!("SELECT {TOUCHED} FROM {table} WHERE {condition} {oldest_first}");
    patience::limit(conn, selection.within).await?;
    let rows = selection
        .bind(sqlx::query_as(AssertSqlSafe(sql)))
        .fetch_all(&mut *conn)
        .await;
    patience::lift(conn).await?;
    rows
}

/// What the request has changed.
pub(super) async fn written(conn: &mut SqliteConnection, request: &[u8; 16]) -> sqlx::Result<Vec<Touched>> {
    sqlx::query_as(WRITTEN).bind(&request[..]).fetch_all(conn).await
}

/// What a change looks at.
pub(super) async fn standing(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<Option<Standing>> {
    sqlx::query_as(STANDING)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await
}
