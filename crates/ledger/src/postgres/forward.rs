//! Beginning a forward: the row, and the right to POST, in one statement.

use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::{Connection, PgConnection};

use super::{queue, twins};
use crate::rows::Met;
use crate::{Begun, NewEvent, Settled, headers};

/// Inserts the row as running, or takes over one that failed or whose owner let its lease end. A row that a
/// worker runs is never taken. The lease counts from when the row is ours, not from when we began to wait.
const BEGIN: &str = "
    INSERT INTO webhook_events AS held
        (source, event_id, provider, account, mode, event_type, object_id, provider_time, path,
         state, attempts, tries, lease_owner, leased_at, lease_until, delivery_id, body_sha256, headers, body)
    VALUES
        ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8 / 1000.0), 'forward',
         'running', 1, 1, $9, clock_timestamp(), clock_timestamp() + make_interval(secs => $13),
         $9, $10, $11, $12)
    ON CONFLICT (source, event_id) DO UPDATE
    SET state = 'running', attempts = held.attempts + 1, tries = held.tries + 1,
        lease_owner = excluded.lease_owner, leased_at = clock_timestamp(),
        lease_until = clock_timestamp() + make_interval(secs => $13)
    WHERE held.state = 'failed'
       OR (held.path = 'forward' AND held.state = 'running' AND held.lease_until < now())
    RETURNING state, lease_owner, false AS lease_ended, attempts::bigint, generation::bigint,
              body_sha256 = $10 AS same_body, event_type, headers, delivery_id, false AS is_linked,
              CASE WHEN body_sha256 <> $10 THEN body END AS first_body";

const LOOK: &str = "
    SELECT state, lease_owner, COALESCE(lease_until < now(), false) AS lease_ended,
           attempts::bigint, generation::bigint, body_sha256 = $4 AS same_body, event_type, headers,
           delivery_id, twin_of IS NOT NULL AS is_linked,
           CASE WHEN lease_owner = $3 AND body_sha256 <> $4 THEN body END AS first_body
    FROM webhook_events
    WHERE source = $1 AND event_id = $2";

const ADOPT: &str = "
    UPDATE webhook_events
    SET path = 'inbox',
        next_attempt_at = CASE WHEN state = 'failed' THEN now() ELSE next_attempt_at END,
        state = CASE WHEN state = 'failed' THEN 'queued' ELSE state END
    WHERE source = $1 AND event_id = $2 AND path = 'forward' AND state IN ('failed', 'running')";

/// Makes a forward's row the workers'.
pub(super) async fn adopt(conn: &mut PgConnection, key: &EventKey) -> sqlx::Result<()> {
    sqlx::query(ADOPT)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// Begins; the owner is the delivery itself, so that a repetition knows its own run.
pub(super) async fn begin(conn: &mut PgConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Begun> {
    loop {
        if let Some(begun) = try_begin(conn, event, lease).await? {
            return Ok(begun);
        }
        let met = look(conn, event).await?.map(|met| met.by(event)).transpose()?;
        match met.flatten() {
            Some(begun) if is_settled(conn, &begun, lease).await? => return Ok(begun),
            Some(_) => {}
            None => {}
        }
        // Freed or gone between the two statements: ask again. The caller's limit ends this.
        tokio::task::yield_now().await;
    }
}

/// Takes the row if it may be had. With content keys a transaction judges whether it is to be run; one that is to wait
/// leaves nothing behind.
async fn try_begin(
    conn: &mut PgConnection,
    event: &NewEvent,
    lease: Duration,
) -> sqlx::Result<Option<Begun>> {
    if event.content_keys.is_empty() {
        let ours = insert(conn, event, lease).await?;
        return Ok(ours.map(|ours| ours.by(event)).transpose()?.flatten());
    }
    let mut tx = conn.begin().await?;
    let ours = insert(&mut tx, event, lease).await?;
    let begun = ours.map(|ours| ours.by(event)).transpose()?.flatten();
    // Judged anew at every try, also where another body came first and is run: the key may have passed on meanwhile.
    let Some(begun @ Begun::Run { .. }) = begun else {
        tx.commit().await?;
        return Ok(begun);
    };
    let verdicts = twins::settle(&mut tx, std::iter::once(event), true).await?;
    let begun = begun.judged(verdicts.first().map(|(_, verdict)| verdict));
    match begun {
        Begun::Running => tx.rollback().await?,
        Begun::Run { .. } | Begun::Twin(_) | Begun::Settled { .. } => tx.commit().await?,
    }
    Ok(Some(begun))
}

/// Whether this is the answer. A run has to be ours still, and is so from now on for a whole lease again.
async fn is_settled(conn: &mut PgConnection, begun: &Begun, lease: Duration) -> sqlx::Result<bool> {
    match begun {
        Begun::Run { lease: run, .. } => Ok(queue::heartbeat(conn, run, lease).await? == Settled::Committed),
        Begun::Twin(_) | Begun::Running | Begun::Settled { .. } => Ok(true),
    }
}

async fn insert(conn: &mut PgConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Option<Met>> {
    sqlx::query_as(BEGIN)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .bind(event.provider)
        .bind(event.account.as_ref().map(|field| field.as_str()))
        .bind(event.mode.as_str())
        .bind(event.event_type.as_ref().map(|field| field.as_str()))
        .bind(event.object_id.as_ref().map(|field| field.as_str()))
        .bind(event.provider_time.as_ref().map(|time| time.unix_ms))
        .bind(event.delivery.to_bytes())
        .bind(event.body_sha256)
        .bind(headers::write(&event.headers))
        .bind(&*event.body)
        .bind(lease.as_secs_f64())
        .fetch_optional(conn)
        .await
}

async fn look(conn: &mut PgConnection, event: &NewEvent) -> sqlx::Result<Option<Met>> {
    sqlx::query_as(LOOK)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .bind(event.delivery.to_bytes())
        .bind(event.body_sha256)
        .fetch_optional(conn)
        .await
}
