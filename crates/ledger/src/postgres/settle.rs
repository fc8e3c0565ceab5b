//! Ending a run: the event's state, the attempt's row and the effects commit together or not at all.
//!
//! The update names the lease's owner. Who lost the lease updates nothing, and then nothing else is written
//! either. A settlement whose answer was lost finds on repetition that its attempt is written with its own
//! outcome, and so that it was committed.

use sqlx::{Connection, PgConnection};

use crate::run::{Cost, HELD_MAX, Run};
use crate::{Lease, OutboxRow, Settled};

/// Ends a run. A forward handed to the workers becomes theirs: then a worker that dies leaves it to the next
/// worker, not to a provider that will not come again. One that an inbox adopted while it ran is queued if it
/// failed.
const END: &str = "
    WITH ended AS (
        UPDATE webhook_events
        SET state = CASE WHEN $4::text = 'failed' AND path = 'inbox' THEN 'queued' ELSE $4::text END,
            last_error = $5,
            path = CASE WHEN $4::text = 'queued' THEN 'inbox' ELSE path END,
            next_attempt_at = now() + make_interval(secs => COALESCE(
                $7, CASE WHEN $4::text = 'failed' AND path = 'inbox' THEN 0 END)),
            processed_at = CASE WHEN $8 THEN now() END,
            deadline_at = NULL,
            lease_owner = NULL, lease_until = NULL
        WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'
        RETURNING source, event_id, generation, attempts, leased_at
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, $6, $5 FROM ended
    RETURNING outcome";

/// Holds an event, whose run gives its try back, or buries it when it was held for too long. It has been held
/// since it was due, if its consumer was away by then already.
const HOLD: &str = "
    WITH held AS (
        SELECT source, event_id, GREATEST(
            COALESCE(deadline_at, now() + make_interval(secs => $9)
                - LEAST(make_interval(secs => $10), now() - COALESCE(next_attempt_at, now()))),
            (SELECT resumed_at + make_interval(secs => $9) FROM targets WHERE name = $11)) AS deadline_at
        FROM webhook_events
        WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'
        FOR UPDATE
    ), ended AS (
        UPDATE webhook_events AS e
        SET state = CASE WHEN held.deadline_at <= now() THEN 'dead' ELSE $4::text END,
            last_error = CASE WHEN held.deadline_at <= now() THEN $8::text ELSE '' END || $5::text,
            processed_at = CASE WHEN held.deadline_at <= now() THEN now() END,
            deadline_at = held.deadline_at,
            next_attempt_at = now() + make_interval(secs => $7),
            tries = tries - 1,
            lease_owner = NULL, lease_until = NULL
        FROM held
        WHERE e.source = held.source AND e.event_id = held.event_id
        RETURNING e.source, e.event_id, e.generation, e.attempts, e.leased_at, e.state
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, CASE state WHEN 'dead' THEN state ELSE $6 END, $5
    FROM ended
    RETURNING outcome";

/// Takes an event back that was not tried.
const TAKE_BACK: &str = "
    WITH ended AS (
        UPDATE webhook_events
        SET state = $4::text,
            last_error = $5,
            next_attempt_at = now() + make_interval(secs => $7),
            tries = tries - 1,
            lease_owner = NULL, lease_until = NULL
        WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'
        RETURNING source, event_id, generation, attempts, leased_at
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, $6, $5 FROM ended
    RETURNING outcome";

/// A run that was to be held may have been the last.
const PROOF: &str = "
    SELECT outcome FROM webhook_attempts
    WHERE source = $1 AND event_id = $2 AND generation = $3 AND attempt = $4 AND owner = $5
      AND (outcome = $6 OR ($7 AND outcome = 'dead'))";

const EFFECTS: &str = "
    INSERT INTO outbox (source, event_id, effect_key, target, kind, payload)
    SELECT $1, $2, effect_key, target, kind, payload
    FROM unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) AS new (effect_key, target, kind, payload)
    ORDER BY effect_key
    ON CONFLICT (effect_key) DO NOTHING";

/// Ends a run. Without effects this is one statement, which is its own transaction.
pub(super) async fn settle(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
    match run.effects.is_empty() {
        true => settle_in(conn, run).await,
        false => settle_together(conn, std::slice::from_ref(run))
            .await
            .map(|settled| settled[0]),
    }
}

/// Ends runs, in one transaction if there are several.
pub(super) async fn settle_all(conn: &mut PgConnection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>> {
    match runs {
        [run] => Ok(vec![settle(conn, run).await?]),
        runs => settle_together(conn, runs).await,
    }
}

async fn settle_together(conn: &mut PgConnection, runs: &[Run<'_>]) -> sqlx::Result<Vec<Settled>> {
    let mut tx = conn.begin().await?;
    let mut settled = Vec::with_capacity(runs.len());
    for run in runs {
        settled.push(settle_in(&mut tx, run).await?);
    }
    tx.commit().await?;
    Ok(settled)
}

/// Ends a run in the transaction that the connection is in.
async fn settle_in(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
    let Some(outcome) = end(conn, run).await? else {
        let before = settled_before(conn, run).await?;
        return Ok(run.ending.settled_before(before.as_deref()));
    };
    if !run.effects.is_empty() {
        write_effects(conn, run.lease, run.effects).await?;
    }
    Ok(run.ending.settled(&outcome))
}

/// Writes state and attempt, and says the attempt's outcome; `None` if the lease is not ours.
async fn end(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Option<String>> {
    let Run { lease, ending, .. } = run;
    let due_in = ending.due_in.map(|delay| delay.as_secs_f64());
    let named = |sql| {
        sqlx::query_scalar(sql)
            .bind(lease.key.source.as_str())
            .bind(lease.key.id.as_str())
            .bind(lease.owner.to_bytes())
    };
    let statement = match &ending.cost {
        Cost::Time(held) => named(HOLD)
            .bind(ending.state.as_str())
            .bind(ending.error.unwrap_or_default())
            .bind(ending.outcome)
            .bind(due_in)
            .bind(held.too_long)
            .bind(HELD_MAX.as_secs_f64())
            .bind(held.already.as_secs_f64())
            .bind(held.target),
        Cost::Nothing => named(TAKE_BACK)
            .bind(ending.state.as_str())
            .bind(ending.error)
            .bind(ending.outcome)
            .bind(due_in),
        Cost::Try => named(END)
            .bind(ending.state.as_str())
            .bind(ending.error)
            .bind(ending.outcome)
            .bind(due_in)
            .bind(ending.rests()),
    };
    statement.fetch_optional(conn).await
}

async fn write_effects(conn: &mut PgConnection, lease: &Lease, effects: &[OutboxRow]) -> sqlx::Result<()> {
    sqlx::query(EFFECTS)
        .bind(lease.key.source.as_str())
        .bind(lease.key.id.as_str())
        .bind(
            effects
                .iter()
                .map(|row| row.effect_key.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(effects.iter().map(|row| row.target.as_str()).collect::<Vec<_>>())
        .bind(effects.iter().map(|row| row.kind.as_str()).collect::<Vec<_>>())
        .bind(effects.iter().map(|row| &*row.payload).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    Ok(())
}

/// The outcome of an earlier try of just this settlement, if that was committed.
async fn settled_before(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Option<String>> {
    let Lease {
        key,
        owner,
        attempt,
        generation,
    } = run.lease;
    sqlx::query_scalar(PROOF)
        .bind(key.source.as_str())
        .bind(key.id.as_str())
        .bind(generation.cast_signed())
        .bind(attempt.cast_signed())
        .bind(owner.to_bytes())
        .bind(run.ending.outcome)
        .bind(run.ending.may_bury())
        .fetch_optional(conn)
        .await
}
