//! Changing events: one statement chooses and locks them, changes them, and writes each down. Who comes second
//! waits for the first to commit, looks again, and finds the event in another state.

use hookgate_webhook::EventKey;
use sqlx::{AssertSqlSafe, PgConnection};

use super::PHRASES;
use crate::Change;
use crate::sql::operations::{Order, Selection, Standing, Touched};

/// The place of an event among those that are changed gives the time when it is due.
const REPLAY: &str = "
    state = 'queued', path = 'inbox', generation = e.generation + 1, attempts = 0, tries = 0,
    deadline_at = NULL, processed_at = NULL, last_error = NULL,
    next_attempt_at = now() + make_interval(secs => $17 + $18 * placed.place)";

/// Attempts go on rising, since targets compare them; the reason of the death stays until there is another.
const REDRIVE: &str = "
    state = 'queued', path = 'inbox', tries = 0, deadline_at = NULL, processed_at = NULL,
    next_attempt_at = now() + make_interval(secs => $17 + $18 * placed.place)";

const DISCARD: &str = "state = 'discarded', processed_at = now()";

const TOUCHED: &str = "
    source, event_id, (extract(epoch FROM received_at) * 1000000)::bigint AS received_at,
    generation::bigint AS generation";

/// The lock of a request is held by its change, from before the search to the end of the transaction.
const AWAIT_EARLIER: &str = "SELECT pg_advisory_xact_lock($1)";

const WRITTEN: &str = "
    SELECT source, event_id, (extract(epoch FROM e.received_at) * 1000000)::bigint AS received_at,
           COALESCE(a.generation, 0)::bigint AS generation
    FROM audit_log AS a JOIN webhook_events AS e USING (source, event_id)
    WHERE request = $1
    ORDER BY e.received_at, source, event_id";

const STANDING: &str = "
    SELECT state, generation::bigint, pruned_at IS NOT NULL AS pruned
    FROM webhook_events WHERE source = $1 AND event_id = $2";

/// Changes the selected events.
pub(super) async fn change(conn: &mut PgConnection, order: &Order<'_>) -> sqlx::Result<Vec<Touched>> {
    let query = sqlx::query_as(AssertSqlSafe(statement(order))).persistent(false);
    order
        .selection
        .bind(query)
        .bind(&order.reason.actor)
        .bind(order.change.as_str())
        .bind(&order.reason.why)
        .bind(&order.request[..])
        .bind(order.first_in.as_secs_f64())
        .bind(order.spacing.as_secs_f64())
        .bind(lock_of(&order.request))
        .fetch_all(conn)
        .await
}

/// A request is drawn at random, so a part of it is as good as all of it.
fn lock_of(request: &[u8; 16]) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *request;
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn statement(order: &Order<'_>) -> String {
    let condition = order.selection.condition(&PHRASES);
    let oldest_first = order.selection.order();
    let set = match order.change {
        Change::Replay => REPLAY,
        Change::Redrive => REDRIVE,
        Change::Discard => DISCARD,
    };
    format!(
        "WITH chosen AS (
             SELECT source, event_id, received_at FROM webhook_events
             WHERE {condition} AND (SELECT pg_advisory_xact_lock($19)) IS NOT NULL
             {oldest_first}
             FOR UPDATE
         ), placed AS (
             SELECT source, event_id, row_number() OVER (ORDER BY received_at, source, event_id) - 1 AS place
             FROM chosen
         ), changed AS (
             UPDATE webhook_events AS e SET {set}
             FROM placed
             WHERE e.source = placed.source AND e.event_id = placed.event_id
             RETURNING e.source, e.event_id, e.received_at, e.generation
         ), written AS (
             INSERT INTO audit_log (actor, action, source, event_id, generation, detail, request)
             SELECT $13, $14, source, event_id, generation, $15, $16 FROM changed
             ORDER BY received_at, source, event_id
         )
         SELECT {TOUCHED} FROM changed
         ORDER BY changed.received_at, source, event_id"
    )
}

/// The selected events, unchanged.
pub(super) async fn count(conn: &mut PgConnection, selection: &Selection) -> sqlx::Result<Vec<Touched>> {
    let condition = selection.condition(&PHRASES);
    let oldest_first = selection.order();
    let sql = format!("SELECT {TOUCHED} FROM webhook_events WHERE {condition} {oldest_first}");
    let query = sqlx::query_as(AssertSqlSafe(sql)).persistent(false);
    selection.bind(query).fetch_all(conn).await
}

/// Waits until no other session holds the lock of the request.
pub(super) async fn await_earlier(conn: &mut PgConnection, request: &[u8; 16]) -> sqlx::Result<()> {
    sqlx::query(AWAIT_EARLIER)
        .bind(lock_of(request))
        .execute(conn)
        .await?;
    Ok(())
}

/// What the request has changed.
pub(super) async fn written(conn: &mut PgConnection, request: &[u8; 16]) -> sqlx::Result<Vec<Touched>> {
    sqlx::query_as(WRITTEN).bind(&request[..]).fetch_all(conn).await
}

/// What a change looks at.
pub(super) async fn standing(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<Option<Standing>> {
    sqlx::query_as(STANDING)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .fetch_optional(conn)
        .await
}
