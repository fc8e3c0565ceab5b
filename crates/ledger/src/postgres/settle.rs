//! Ending a run: the event's state, the attempt's row and the effects commit together or not at all.
//!
//! The update names the lease's owner. Who lost the lease updates nothing, and then nothing else is written
//! either. A settlement whose answer was lost finds on repetition that its attempt is written with its own
//! outcome, and so that it was committed.

use sqlx::{Connection, PgConnection};

use crate::run::{HELD_MAX, HELD_TOO_LONG, Run};
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
            lease_owner = NULL, lease_until = NULL
        WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'
        RETURNING source, event_id, generation, attempts, leased_at
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, $6, $5 FROM ended";

/// Holds an event, whose run gives its try back, or buries it when it was held for too long.
const HOLD: &str = "
    WITH ended AS (
        UPDATE webhook_events
        SET state = CASE WHEN deadline_at <= now() THEN 'dead' ELSE $4::text END,
            last_error = CASE WHEN deadline_at <= now() THEN $8::text ELSE '' END || $5::text,
            processed_at = CASE WHEN deadline_at <= now() THEN now() END,
            deadline_at = COALESCE(deadline_at, now() + make_interval(secs => $9)),
            next_attempt_at = now() + make_interval(secs => $7),
            tries = tries - 1,
            lease_owner = NULL, lease_until = NULL
        WHERE source = $1 AND event_id = $2 AND lease_owner = $3 AND state = 'running'
        RETURNING source, event_id, generation, attempts, leased_at
    )
    INSERT INTO webhook_attempts (source, event_id, generation, attempt, owner, started_at, outcome, error)
    SELECT source, event_id, generation, attempts, $3, leased_at, $6, $5 FROM ended";

const PROOF: &str = "
    SELECT EXISTS (
        SELECT FROM webhook_attempts
        WHERE source = $1 AND event_id = $2 AND generation = $3 AND attempt = $4 AND owner = $5
          AND outcome = $6)";

const EFFECTS: &str = "
    INSERT INTO outbox (source, event_id, effect_key, target, kind, payload)
    SELECT $1, $2, effect_key, target, kind, payload
    FROM unnest($3::text[], $4::text[], $5::text[], $6::bytea[]) AS new (effect_key, target, kind, payload)
    ORDER BY effect_key
    ON CONFLICT (effect_key) DO NOTHING";

/// Ends a run. Without effects this is one statement, which is its own transaction.
pub(super) async fn settle(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<Settled> {
    let committed = if run.effects.is_empty() {
        end(conn, run).await?
    } else {
        let mut tx = conn.begin().await?;
        let ours = end(&mut tx, run).await?;
        if ours {
            write_effects(&mut tx, run.lease, run.effects).await?;
        }
        tx.commit().await?;
        ours
    };
    match committed || settled_before(conn, run).await? {
        true => Ok(Settled::Committed),
        false => Ok(Settled::Lost),
    }
}

/// Writes state and attempt; false if the lease is not ours.
async fn end(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<bool> {
    let Run { lease, ending, .. } = run;
    let due_in = ending.due_in.map(|delay| delay.as_secs_f64());
    let named = |sql| {
        sqlx::query(sql)
            .bind(lease.key.source.as_str())
            .bind(lease.key.id.as_str())
            .bind(lease.owner.to_bytes())
    };
    let statement = match ending.held {
        true => named(HOLD)
            .bind(ending.state.as_str())
            .bind(ending.error.unwrap_or_default())
            .bind(ending.outcome)
            .bind(due_in)
            .bind(HELD_TOO_LONG)
            .bind(HELD_MAX.as_secs_f64()),
        false => named(END)
            .bind(ending.state.as_str())
            .bind(ending.error)
            .bind(ending.outcome)
            .bind(due_in)
            .bind(ending.rests()),
    };
    Ok(statement.execute(conn).await?.rows_affected() == 1)
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

/// Whether an earlier try of just this settlement was committed.
async fn settled_before(conn: &mut PgConnection, run: &Run<'_>) -> sqlx::Result<bool> {
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
        .fetch_one(conn)
        .await
}
