//! Claiming content keys for events that were just written in the same transaction, and writing down whose twins they
//! are. Nobody else writes meanwhile, so a key that is held can be looked at together with its holder.

use std::collections::BTreeMap;

use sqlx::{FromRow as _, SqliteConnection};

use crate::NewEvent;
use crate::rows::{KeyHeld, Standing};
use crate::twins::{Claim, Fate, Holder, Judgement, Place, Verdict, claims, in_order, judge};

const CLAIM: &str = "
    INSERT INTO webhook_content_keys (source, kind, content_key, event_id, provider_time, content_sha256)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (source, kind, content_key) DO NOTHING";

/// Who holds a key.
pub(super) const HOLDER: &str = "
    SELECT source, kind, content_key, event_id, provider_time AS provider_ms,
           (SELECT now FROM clock) - claimed_at AS age_ms, content_sha256
    FROM webhook_content_keys
    WHERE source = $1 AND kind = $2 AND content_key = $3";

/// What became of a holder.
const LOOK: &str = "
    SELECT state, path, provider, ifnull(lease_until < (SELECT now FROM clock), false) AS lease_ended
    FROM webhook_events WHERE source = $1 AND event_id = $2";

const TAKE: &str = "
    UPDATE webhook_content_keys
    SET event_id = $4, provider_time = $5, content_sha256 = $6, claimed_at = (SELECT now FROM clock)
    WHERE source = $1 AND kind = $2 AND content_key = $3";

const LINK: &str = "UPDATE webhook_events SET twin_of = $3 WHERE source = $1 AND event_id = $2";

/// A twin comes to rest. A run that was only about to begin is none.
const REST: &str = "
    UPDATE webhook_events
    SET attempts = iif(state = 'running', attempts - 1, attempts), tries = iif(state = 'running', tries - 1, tries),
        state = 'twin', processed_at = (SELECT now FROM clock),
        next_attempt_at = NULL, last_error = NULL, lease_owner = NULL, lease_until = NULL
    WHERE source = $1 AND event_id = $2";

/// Judges events that this transaction wrote, and writes down what came of it, unless one is to wait.
pub(super) async fn settle<'a>(
    conn: &mut SqliteConnection,
    events: impl Iterator<Item = &'a NewEvent>,
    forwards: bool,
) -> sqlx::Result<Vec<(&'a NewEvent, Verdict)>> {
    let events = in_order(events);
    let mut held = BTreeMap::new();
    for (place, claim) in claims(&events) {
        let holder = holder(conn, &place, &claim).await?;
        held.insert(place, holder);
    }
    let Judgement { verdicts, taken } = judge(&events, held, forwards);
    if verdicts.iter().all(|(_, verdict)| verdict.fate != Fate::Wait) {
        for (place, claim) in &taken {
            write(conn, TAKE, place, claim).await?;
        }
        for (event, verdict) in &verdicts {
            link(conn, event, verdict).await?;
        }
    }
    Ok(verdicts)
}

/// Claims a key, and says who holds it.
async fn holder(conn: &mut SqliteConnection, place: &Place, claim: &Claim<'_>) -> sqlx::Result<Holder> {
    write(conn, CLAIM, place, claim).await?;
    let row = sqlx::query(HOLDER)
        .bind(&place.source)
        .bind(&place.kind)
        .bind(&place.name)
        .fetch_one(&mut *conn)
        .await?;
    let (_, mut holder) = KeyHeld::from_row(&row)?.read()?;
    let seen: Option<Standing> = sqlx::query_as(LOOK)
        .bind(&place.source)
        .bind(&holder.event_id)
        .fetch_optional(conn)
        .await?;
    if let Some(seen) = seen {
        holder.standing = seen.read()?;
    }
    Ok(holder)
}

async fn write(
    conn: &mut SqliteConnection,
    sql: &'static str,
    place: &Place,
    claim: &Claim<'_>,
) -> sqlx::Result<()> {
    sqlx::query(sql)
        .bind(&place.source)
        .bind(&place.kind)
        .bind(&place.name)
        .bind(claim.event.key.id.as_str())
        .bind(claim.provider_ms())
        .bind(claim.key.sameness.sha256().map(Vec::from))
        .execute(conn)
        .await?;
    Ok(())
}

async fn link(conn: &mut SqliteConnection, event: &NewEvent, verdict: &Verdict) -> sqlx::Result<()> {
    let Some(twin_of) = &verdict.twin_of else {
        return Ok(());
    };
    sqlx::query(LINK)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .bind(twin_of)
        .execute(&mut *conn)
        .await?;
    if verdict.fate == Fate::Twin {
        sqlx::query(REST)
            .bind(event.key.source.as_str())
            .bind(event.key.id.as_str())
            .execute(conn)
            .await?;
    }
    Ok(())
}
