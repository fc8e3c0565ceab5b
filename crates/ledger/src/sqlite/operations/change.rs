//! Changing events: a reading chooses them, and one transaction changes each and writes it down. Appends wait
//! for the transaction, so nothing is searched within it; what came to another state since the reading shows
//! when it is changed by its key, and then all are chosen anew.

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
        next_attempt_at = $3 + $4";

/// Attempts go on rising, since targets compare them; the reason of the death stays until there is another.
const REDRIVE: &str = "
    UPDATE webhook_events
    SET state = 'queued', path = 'inbox', tries = 0, deadline_at = NULL, processed_at = NULL,
        next_attempt_at = $3 + $4";

const DISCARD: &str = "
    UPDATE webhook_events
    SET state = 'discarded', processed_at = $3";

/// The event, if it still is as it was chosen; the state follows.
const AS_CHOSEN: &str = "source = $1 AND event_id = $2 AND generation = $5 AND (pruned_at IS NULL OR NOT $6)";

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
    loop {
        let chosen = count(conn, &order.selection).await?;
        if chosen.is_empty() {
            return Ok(chosen);
        }
        if let Some(touched) = change_chosen(conn, order, chosen).await? {
            return Ok(touched);
        }
        // Somebody was faster, so the next reading chooses others. The caller's limit ends this.
        tokio::task::yield_now().await;
    }
}

/// Changes all that were chosen, or none: `None` if one is no longer as it was.
async fn change_chosen(
    conn: &mut SqliteConnection,
    order: &Order<'_>,
    mut chosen: Vec<Touched>,
) -> sqlx::Result<Option<Vec<Touched>>> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let now: i64 = sqlx::query_scalar("SELECT now FROM clock")
        .fetch_one(&mut *tx)
        .await?;
    let mut due_in = order.first_in;
    for event in &mut chosen {
        let Some(generation) = write(&mut tx, order, event, [now, milliseconds(due_in)]).await? else {
            tx.rollback().await?;
            return Ok(None);
        };
        event.generation = generation;
        write_audit(&mut tx, order, event, now).await?;
        due_in += order.spacing;
    }
    tx.commit().await?;
    Ok(Some(chosen))
}

/// Changes one event if it still is as it was, and says which generation it has now.
async fn write(
    conn: &mut SqliteConnection,
    order: &Order<'_>,
    event: &Touched,
    [now, due_in]: [i64; 2],
) -> sqlx::Result<Option<i64>> {
    let update = match order.change {
        Change::Replay => REPLAY,
        Change::Redrive => REDRIVE,
        Change::Discard => DISCARD,
    };
    let in_state = order.selection.in_state();
    let sql = format!("{update} WHERE {AS_CHOSEN} AND {in_state} RETURNING generation");
    sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(&event.source)
        .bind(&event.event_id)
        .bind(now)
        .bind(due_in)
        .bind(event.generation)
        .bind(order.change.needs_body())
        .fetch_optional(conn)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::Executor;

    use super::*;
    use crate::{Bulk, Filter, Ledger, Limits, Reason, SqliteLedger};

    const THREE_DEAD: &str = "
        INSERT INTO webhook_events (source, event_id, provider, path, state, processed_at, received_at,
                                    delivery_id, body_sha256, headers, body)
        SELECT 'stripe', 'evt_' || value, 'stripe', 'inbox', 'dead', 1, value,
               zeroblob(16), zeroblob(32), '[]', x'00'
        FROM json_each('[1, 2, 3]')";

    fn ids(events: &[Touched]) -> Vec<&str> {
        events.iter().map(|event| &*event.event_id).collect()
    }

    #[tokio::test]
    async fn what_was_changed_after_it_was_chosen_is_left_and_others_are_chosen() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hookgate.db");
        let ledger = SqliteLedger::open(&path, Limits::default()).unwrap();
        ledger.migrate().await.unwrap();
        let mut conn = SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
        conn.execute(THREE_DEAD).await.unwrap();
        let bulk = Bulk {
            change: Change::Redrive,
            filter: Filter::default(),
            after: None,
            limit: 2,
            dry_run: false,
            first_in: Duration::ZERO,
            spacing: Duration::ZERO,
        };
        let reason = Reason {
            actor: "cli:maria".into(),
            why: "mended".into(),
        };
        let order = Order::many(&bulk, 2, &reason);
        let chosen = count(&mut conn, &order.selection).await.unwrap();
        assert_eq!(ids(&chosen), ["evt_1", "evt_2"]);
        conn.execute("UPDATE webhook_events SET state = 'discarded' WHERE event_id = 'evt_2'")
            .await
            .unwrap();
        assert!(change_chosen(&mut conn, &order, chosen).await.unwrap().is_none());
        assert!(written(&mut conn, &order.request).await.unwrap().is_empty());
        assert_eq!(ids(&change(&mut conn, &order).await.unwrap()), ["evt_1", "evt_3"]);
        assert_eq!(written(&mut conn, &order.request).await.unwrap().len(), 2);
    }
}
