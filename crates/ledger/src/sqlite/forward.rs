//! Beginning a forward: the row, and the right to POST, in one statement.

use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::{Connection, FromRow, SqliteConnection};

use super::event::described;
use super::{queue, twins};
use crate::columns::milliseconds;
use crate::rows::Met;
use crate::{Begun, NewEvent, Settled};

/// Inserts the row as running, or takes over one that failed or whose owner let its lease end. A row that a
/// worker runs is never taken.
const BEGIN: &str = "
    INSERT INTO webhook_events AS held
        (source, event_id, provider, account, mode, event_type, object_id, provider_time, path,
         state, attempts, tries, lease_owner, leased_at, lease_until, delivery_id, body_sha256, headers, body)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, 'forward',
           'running', 1, 1, $9, now, now + $13, $9, $10, $11, $12
    FROM clock
    WHERE true -- Else the parser takes what follows for a join's condition.
    ON CONFLICT (source, event_id) DO UPDATE
    SET state = 'running', attempts = held.attempts + 1, tries = held.tries + 1,
        lease_owner = excluded.lease_owner, leased_at = excluded.leased_at,
        lease_until = excluded.lease_until
    WHERE held.state = 'failed'
       OR (held.path = 'forward' AND held.state = 'running' AND held.lease_until < excluded.leased_at)
    RETURNING state, lease_owner, false AS lease_ended, attempts, generation, body_sha256 = $10 AS same_body,
              event_type, headers, delivery_id, false AS is_linked, iif(body_sha256 <> $10, body, NULL) AS first_body";

const LOOK: &str = "
    SELECT state, lease_owner, ifnull(lease_until < (SELECT now FROM clock), false) AS lease_ended,
           attempts, generation, body_sha256 = $4 AS same_body,
           event_type, headers, delivery_id, twin_of IS NOT NULL AS is_linked, iif(lease_owner = $3 AND body_sha256 <> $4, body, NULL) AS first_body
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

const ADOPT: &str = "
    UPDATE webhook_events
    SET path = 'inbox',
        next_attempt_at = CASE WHEN state = 'failed' THEN (SELECT now FROM clock) ELSE next_attempt_at END,
        state = CASE WHEN state = 'failed' THEN 'queued' ELSE state END
    WHERE source = $1 AND event_id = $2 AND path = 'forward' AND state IN ('failed', 'running')";

/// Makes a forward's row the workers'.
pub(super) async fn adopt(conn: &mut SqliteConnection, key: &EventKey) -> sqlx::Result<()> {
    sqlx::query(ADOPT)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// Begins; the owner is the delivery itself, so that a repetition knows its own run. Within the transaction
/// nobody else writes, so a row that could not be had can be looked at.
pub(super) async fn begin(
    conn: &mut SqliteConnection,
    event: &NewEvent,
    lease: Duration,
) -> sqlx::Result<Begun> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let begun = match insert(&mut tx, event, lease).await? {
        Some(ours) => judged(&mut tx, event, ours.by(event)?).await?,
        None => repeated(&mut tx, event, lease).await?,
    };
    match begun {
        // One that is to wait leaves nothing behind; for a copy there is nothing to be left.
        Some(Begun::Running) => tx.rollback().await?,
        _ => tx.commit().await?,
    }
    begun.ok_or(sqlx::Error::RowNotFound)
}

/// Whether what could be begun is to be run. It is judged anew at every try, also where another body came first and is
/// run: the key may have passed on meanwhile.
async fn judged(
    conn: &mut SqliteConnection,
    event: &NewEvent,
    begun: Option<Begun>,
) -> sqlx::Result<Option<Begun>> {
    let Some(begun @ Begun::Run { .. }) = begun else {
        return Ok(begun);
    };
    let verdicts = twins::settle(conn, std::iter::once(event), true).await?;
    Ok(Some(begun.judged(verdicts.first().map(|(_, verdict)| verdict))))
}

/// What the row says to one that could not have it. If it is ours from an earlier try, it is so for a whole lease again.
async fn repeated(
    conn: &mut SqliteConnection,
    event: &NewEvent,
    lease: Duration,
) -> sqlx::Result<Option<Begun>> {
    let begun = look(conn, event).await?.by(event)?;
    if let Some(Begun::Run { lease: run, .. }) = &begun
        && queue::heartbeat(conn, run, lease).await? != Settled::Committed
    {
        return Ok(Some(Begun::Running));
    }
    Ok(begun)
}

async fn insert(conn: &mut SqliteConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Option<Met>> {
    let rows = described(BEGIN, event)
        .bind(milliseconds(lease))
        .fetch_all(conn)
        .await?;
    rows.first().map(Met::from_row).transpose()
}

async fn look(conn: &mut SqliteConnection, event: &NewEvent) -> sqlx::Result<Met> {
    sqlx::query_as(LOOK)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .bind(&event.delivery.to_bytes()[..])
        .bind(&event.body_sha256[..])
        .fetch_one(conn)
        .await
}
