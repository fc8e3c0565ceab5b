//! Beginning a forward: the row, and the right to POST, in one statement.

use std::time::Duration;

use hookgate_webhook::EventKey;
use sqlx::PgConnection;

use crate::columns::{count, state};
use crate::{Begun, Lease, NewEvent, State, headers};

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
    RETURNING attempts, generation";

const LOOK: &str = "
    SELECT state, lease_owner, attempts, generation FROM webhook_events
    WHERE source = $1 AND event_id = $2";

/// Begins; the owner is the delivery itself, so that a repetition knows its own run.
pub(super) async fn begin(conn: &mut PgConnection, event: &NewEvent, lease: Duration) -> sqlx::Result<Begun> {
    loop {
        if let Some((attempts, generation)) = insert(conn, event, lease).await? {
            return Ok(Begun::Run(own(event, attempts, generation)?));
        }
        if let Some(begun) = look(conn, event).await? {
            return Ok(begun);
        }
        // Freed or gone between the two statements: ask again. The caller's limit ends this.
        tokio::task::yield_now().await;
    }
}

async fn insert(
    conn: &mut PgConnection,
    event: &NewEvent,
    lease: Duration,
) -> sqlx::Result<Option<(i32, i32)>> {
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

/// What the row says to one that did not get it. `None`: it may be had now.
async fn look(conn: &mut PgConnection, event: &NewEvent) -> sqlx::Result<Option<Begun>> {
    let EventKey { source, id } = &event.key;
    type Found = (String, Option<[u8; 16]>, i32, i32);
    let found: Option<Found> = sqlx::query_as(LOOK)
        .bind(source.as_str())
        .bind(id.as_str())
        .fetch_optional(conn)
        .await?;
    let Some((name, owner, attempts, generation)) = found else {
        return Ok(None);
    };
    Ok(match state(&name)? {
        State::Failed => None,
        State::Running if owner == Some(event.delivery.to_bytes()) => {
            Some(Begun::Run(own(event, attempts, generation)?))
        }
        State::Running => Some(Begun::Running),
        settled @ (State::Queued
        | State::Done
        | State::Dead
        | State::Discarded
        | State::Parked
        | State::Twin) => Some(Begun::Settled(settled)),
    })
}

fn own(event: &NewEvent, attempts: i32, generation: i32) -> sqlx::Result<Lease> {
    Ok(Lease {
        key: event.key.clone(),
        owner: event.delivery,
        attempt: count(attempts.into())?,
        generation: count(generation.into())?,
    })
}
