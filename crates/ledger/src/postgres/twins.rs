//! Claiming content keys for events that were just written in the same transaction, and writing down whose twins they
//! are.
//!
//! The claim locks every key it names until the transaction ends, in sorted order, whoever holds it. Only then is it
//! looked what became of the holders, by a statement of its own, because one that waited for a lock sees nothing that
//! was committed after it began. Most events meet nobody, and then the claim is all.

use std::collections::BTreeMap;

use sqlx::{FromRow as _, PgConnection, Row as _};

use crate::NewEvent;
use crate::rows::{KeyHeld, Standing};
use crate::twins::{Claim, Fate, Holder, Judgement, Place, Verdict, claims, in_order, judge};

/// Claims what is free, and locks what is held. The update changes nothing.
const CLAIM: &str = "
    INSERT INTO webhook_content_keys AS held
        (source, kind, content_key, event_id, provider_time, content_sha256)
    SELECT source, kind, content_key, event_id, to_timestamp(provider_ms / 1000.0), content_sha256
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
         AS new (source, kind, content_key, event_id, provider_ms, content_sha256)
    ON CONFLICT (source, kind, content_key) DO UPDATE SET event_id = held.event_id
    RETURNING source, kind, content_key, event_id,
              (extract(epoch FROM provider_time) * 1000)::bigint AS provider_ms,
              (extract(epoch FROM clock_timestamp() - claimed_at) * 1000)::bigint AS age_ms, content_sha256";

/// What became of the holders.
const LOOK: &str = "
    SELECT n, state, path, provider, COALESCE(lease_until < clock_timestamp(), false) AS lease_ended
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS holders (source, event_id, n)
    JOIN webhook_events USING (source, event_id)";

/// Passes keys on.
const TAKE: &str = "
    UPDATE webhook_content_keys AS held
    SET event_id = new.event_id, provider_time = to_timestamp(provider_ms / 1000.0),
        content_sha256 = new.content_sha256, claimed_at = clock_timestamp()
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bytea[])
         AS new (source, kind, content_key, event_id, provider_ms, content_sha256)
    WHERE held.source = new.source AND held.kind = new.kind AND held.content_key = new.content_key";

/// A twin comes to rest. A run that was only about to begin is none.
const LINK: &str = "
    UPDATE webhook_events AS e
    SET twin_of = new.twin_of,
        attempts = CASE WHEN rests AND state = 'running' THEN attempts - 1 ELSE attempts END,
        tries = CASE WHEN rests AND state = 'running' THEN tries - 1 ELSE tries END,
        state = CASE WHEN rests THEN 'twin' ELSE state END,
        processed_at = CASE WHEN rests THEN now() ELSE processed_at END,
        next_attempt_at = CASE WHEN rests THEN NULL ELSE next_attempt_at END,
        last_error = CASE WHEN rests THEN NULL ELSE last_error END,
        lease_owner = CASE WHEN rests THEN NULL ELSE lease_owner END,
        lease_until = CASE WHEN rests THEN NULL ELSE lease_until END
    FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS new (source, event_id, twin_of, rests)
    WHERE e.source = new.source AND e.event_id = new.event_id";

/// Judges events that this transaction wrote, and writes down what came of it, unless one is to wait.
pub(super) async fn settle<'a>(
    conn: &mut PgConnection,
    events: impl Iterator<Item = &'a NewEvent>,
    forwards: bool,
) -> sqlx::Result<Vec<(&'a NewEvent, Verdict)>> {
    let events = in_order(events);
    let claims = claims(&events);
    if claims.is_empty() {
        return Ok(Vec::new());
    }
    let mut held = claim(conn, &claims).await?;
    look(conn, &claims, &mut held).await?;
    let Judgement { verdicts, taken } = judge(&events, held, forwards);
    if verdicts.iter().all(|(_, verdict)| verdict.fate != Fate::Wait) {
        take(conn, &taken).await?;
        link(conn, &verdicts).await?;
    }
    Ok(verdicts)
}

async fn claim(
    conn: &mut PgConnection,
    claims: &BTreeMap<Place, Claim<'_>>,
) -> sqlx::Result<BTreeMap<Place, Holder>> {
    let rows = described(CLAIM, claims).fetch_all(conn).await?;
    rows.iter().map(|row| KeyHeld::from_row(row)?.read()).collect()
}

/// Sees how those stand who were there before.
async fn look(
    conn: &mut PgConnection,
    claims: &BTreeMap<Place, Claim<'_>>,
    held: &mut BTreeMap<Place, Holder>,
) -> sqlx::Result<()> {
    let is_own = |place: &Place, holder: &Holder| {
        claims
            .get(place)
            .is_some_and(|claim| claim.event.key.id.as_str() == holder.event_id)
    };
    let others = held.iter_mut().filter(|(place, holder)| !is_own(place, holder));
    let mut others: Vec<_> = others.collect();
    if others.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(LOOK)
        .bind(
            others
                .iter()
                .map(|(place, _)| place.source.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            others
                .iter()
                .map(|(_, holder)| holder.event_id.as_str())
                .collect::<Vec<_>>(),
        )
        .fetch_all(conn)
        .await?;
    for row in rows {
        let n: i64 = row.try_get("n")?;
        let other = usize::try_from(n - 1).ok().and_then(|n| others.get_mut(n));
        if let Some((_, holder)) = other {
            holder.standing = Standing::from_row(&row)?.read()?;
        }
    }
    Ok(())
}

async fn take(conn: &mut PgConnection, taken: &BTreeMap<Place, Claim<'_>>) -> sqlx::Result<()> {
    if !taken.is_empty() {
        described(TAKE, taken).execute(conn).await?;
    }
    Ok(())
}

async fn link(conn: &mut PgConnection, verdicts: &[(&NewEvent, Verdict)]) -> sqlx::Result<()> {
    let linked: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict.twin_of.is_some())
        .collect();
    if linked.is_empty() {
        return Ok(());
    }
    sqlx::query(LINK)
        .bind(
            linked
                .iter()
                .map(|(event, _)| event.key.source.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            linked
                .iter()
                .map(|(event, _)| event.key.id.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(
            linked
                .iter()
                .map(|(_, verdict)| verdict.twin_of.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(
            linked
                .iter()
                .map(|(_, verdict)| verdict.fate == Fate::Twin)
                .collect::<Vec<_>>(),
        )
        .execute(conn)
        .await?;
    Ok(())
}

/// A statement about claims, as its six arguments.
fn described(
    sql: &'static str,
    claims: &BTreeMap<Place, Claim<'_>>,
) -> sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments> {
    let text = |of: fn(&Place) -> &str| {
        claims
            .keys()
            .map(|place| of(place).to_owned())
            .collect::<Vec<_>>()
    };
    let ids = claims
        .values()
        .map(|claim| claim.event.key.id.as_str().to_owned());
    sqlx::query(sql)
        .bind(text(|place| &place.source))
        .bind(text(|place| &place.kind))
        .bind(text(|place| &place.name))
        .bind(ids.collect::<Vec<_>>())
        .bind(claims.values().map(Claim::provider_ms).collect::<Vec<_>>())
        .bind(
            claims
                .values()
                .map(|claim| claim.key.sameness.sha256())
                .collect::<Vec<_>>(),
        )
}
