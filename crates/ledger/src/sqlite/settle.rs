//! Ending a run: the event's state, the attempt's row and the effects commit together or not at all.
//!
//! The update names the lease's owner. Who lost the lease updates nothing, and then nothing else is written
//! either. A settlement whose answer was lost finds on repetition that its attempt is written with its own
//! outcome, and so that it was committed.

use sqlx::{Connection, SqliteConnection};

use crate::columns::milliseconds;
use crate::run::{Cost, Ending, HELD_MAX, Run};
use crate::{Lease, OutboxRow, Settled};

/// Ends a run. A forward handed to the workers becomes theirs: then a worker that dies leaves it to the next
/// worker, not to a provider that will not come again. One that an inbox adopted while it ran is queued if it
/// failed.
const END: &str = "
    UPDATE webhook_events
    SET state = iif($4 = 'failed' AND path = 'inbox', 'queued', $4), last_error = $5,
        path = iif($4 = 'queued', 'inbox', path),
        next_attempt_at = (SELECT now FROM clock)
            + COALESCE($6, iif($4 = 'failed' AND path = 'inbox', 0, NULL)),
        processed_at = iif($7, (SELECT now FROM clock), NULL),
        deadline_at = NULL,
        lease_owner = NULL, lease_until = NULL
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

/// Until when an event may be held: it has been since it was due, if its consumer was away by then already.
const DEADLINE: &str = "
    UPDATE webhook_events
    SET deadline_at = max(
        COALESCE(deadline_at, (SELECT now FROM clock) + $4
            - min($5, (SELECT now FROM clock) - COALESCE(next_attempt_at, (SELECT now FROM clock)))),
        COALESCE((SELECT resumed_at + $4 FROM targets WHERE name = $6), 0))
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

/// Holds an event, whose run gives its try back, or buries it when it was held for too long.
const HOLD: &str = "
    UPDATE webhook_events
    SET state = iif(deadline_at <= (SELECT now FROM clock), 'dead', $7),
        last_error = iif(deadline_at <= (SELECT now FROM clock), $4, '') || $5,
        processed_at = iif(deadline_at <= (SELECT now FROM clock), (SELECT now FROM clock), NULL),
        next_attempt_at = (SELECT now FROM clock) + $6,
        tries = tries - 1,
        lease_owner = NULL, lease_until = NULL
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

/// Takes an event back that was not tried.
const TAKE_BACK: &str = "
    UPDATE webhook_events
    SET state = $6, last_error = $4,
        next_attempt_at = (SELECT now FROM clock) + $5,
        tries = tries - 1,
        lease_owner = NULL, lease_until = NULL
    WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'";

const ATTEMPT: &str = "
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, iif($6 AND state = 'dead', state, $4), $5
    FROM webhook_events WHERE source = $1 AND event_id = $2
    RETURNING outcome";

/// A run that was to be held may have been the last.
const PROOF: &str = "
    SELECT outcome FROM webhook_attempts
    WHERE source = $1 AND event_id = $2 AND generation = $3 AND attempt = $4 AND owner = $5
      AND (outcome = $6 OR ($7 AND outcome = 'dead'))";

const EFFECT: &str = "
    INSERT INTO outbox (source, event_id, effect_key, target, kind, payload)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (effect_key) DO NOTHING";

/// Ends a run.
pub(super) async fn settle(conn: &mut SqliteConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
    settle_all(conn, std::slice::from_ref(run))
        .await
        .map(|settled| settled[0])
}

/// Ends runs in one transaction.
pub(super) async fn settle_all(conn: &mut SqliteConnection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let mut settled = Vec::with_capacity(runs.len());
    for run in runs {
        settled.push(settle_in(&mut tx, run).await?);
    }
    tx.commit().await?;
    Ok(settled)
}

/// Ends a run in the transaction that the connection is in.
async fn settle_in(conn: &mut SqliteConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
    if !end(conn, run.lease, &run.ending).await? {
        let before = settled_before(conn, run).await?;
        return Ok(run.ending.settled_before(before.as_deref()));
    }
    let outcome = write_attempt(conn, run.lease, &run.ending).await?;
    for effect in run.effects {
        write_effect(conn, run.lease, effect).await?;
    }
    Ok(run.ending.settled(&outcome))
}

/// Writes the state; false if the lease is not ours.
async fn end(conn: &mut SqliteConnection, lease: &Lease, ending: &Ending<'_>) -> sqlx::Result<bool> {
    let due_in = ending.due_in.map(milliseconds);
    let named = |sql| {
        sqlx::query(sql)
            .bind(lease.key.source.as_str().to_owned())
            .bind(lease.key.id.as_str().to_owned())
            .bind(lease.owner.to_bytes().to_vec())
    };
    if let Cost::Time(held) = &ending.cost {
        named(DEADLINE)
            .bind(milliseconds(HELD_MAX))
            .bind(milliseconds(held.already))
            .bind(held.target)
            .execute(&mut *conn)
            .await?;
    }
    let statement = match &ending.cost {
        Cost::Time(held) => named(HOLD)
            .bind(held.too_long)
            .bind(ending.error.unwrap_or_default())
            .bind(due_in)
            .bind(ending.state.as_str()),
        Cost::Nothing => named(TAKE_BACK)
            .bind(ending.error)
            .bind(due_in)
            .bind(ending.state.as_str()),
        Cost::Try => named(END)
            .bind(ending.state.as_str())
            .bind(ending.error)
            .bind(due_in)
            .bind(ending.rests()),
    };
    Ok(statement.execute(conn).await?.rows_affected() == 1)
}

/// Writes the attempt, and says with which outcome.
async fn write_attempt(
    conn: &mut SqliteConnection,
    lease: &Lease,
    ending: &Ending<'_>,
) -> sqlx::Result<String> {
    sqlx::query_scalar(ATTEMPT)
        .bind(lease.key.source.as_str())
        .bind(lease.key.id.as_str())
        .bind(&lease.owner.to_bytes()[..])
        .bind(ending.outcome)
        .bind(ending.error)
        .bind(ending.may_bury())
        .fetch_one(conn)
        .await
}

async fn write_effect(conn: &mut SqliteConnection, lease: &Lease, effect: &OutboxRow) -> sqlx::Result<()> {
    sqlx::query(EFFECT)
        .bind(lease.key.source.as_str())
        .bind(lease.key.id.as_str())
        .bind(&effect.effect_key)
        .bind(&effect.target)
        .bind(&effect.kind)
        .bind(&effect.payload[..])
        .execute(conn)
        .await?;
    Ok(())
}

/// The outcome of an earlier try of just this settlement, if that was committed.
async fn settled_before(conn: &mut SqliteConnection, run: &Run<'_>) -> sqlx::Result<Option<String>> {
    let Lease {
        key,
        owner,
        attempt,
        generation,
    } = run.lease;
    sqlx::query_scalar(PROOF)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(*generation)
        .bind(*attempt)
        .bind(&owner.to_bytes()[..])
        .bind(run.ending.outcome)
        .bind(run.ending.may_bury())
        .fetch_optional(conn)
        .await
}
