//! Appending a batch: one statement inserts, a second one looks at those that were there before.
//!
//! `ON CONFLICT DO NOTHING` on the one unique key makes the database the judge, also between two copies in
//! one batch and between batches of two replicas: the later one waits for the earlier to commit, then finds
//! it. The look needs a statement of its own, because the first one cannot see what was committed after it
//! began. Events with content keys claim them before the transaction ends.

use std::collections::{HashMap, HashSet};

use hookgate_webhook::EventKey;
use sqlx::postgres::PgRow;
use sqlx::{Connection, FromRow, PgConnection};

use super::twins;
use crate::columns::Original;
use crate::group::Row;
use crate::{Appended, headers};

const INSERT: &str = "
    INSERT INTO webhook_events
        (source, event_id, provider, account, mode, event_type, object_id, provider_time, path,
         state, next_attempt_at, processed_at, last_error, delivery_id, body_sha256, headers, body)
    SELECT source, event_id, provider, account, mode, event_type, object_id,
           to_timestamp(provider_ms / 1000.0), 'inbox',
           CASE WHEN reason IS NULL THEN 'queued' ELSE 'done' END,
           CASE WHEN reason IS NULL THEN now() END,
           CASE WHEN reason IS NOT NULL THEN now() END,
           reason, delivery_id, body_sha256, headers, body
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::text[], $10::bytea[], $11::bytea[], $12::text[], $13::bytea[])
         AS new (source, event_id, provider, account, mode, event_type, object_id,
                 provider_ms, reason, delivery_id, body_sha256, headers, body)
    ON CONFLICT (source, event_id) DO NOTHING
    RETURNING delivery_id";

const LOOK: &str = "
    SELECT n, delivery_id, state, body_sha256, twin_of IS NOT NULL
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS copies (source, event_id, n)
    JOIN webhook_events USING (source, event_id)";

/// Appends the rows, which are sorted by key so that two batches cannot wait for each other in a circle. Without
/// content keys the one statement is its own transaction.
pub(super) async fn append(conn: &mut PgConnection, rows: &[&Row]) -> sqlx::Result<Vec<Option<Appended>>> {
    if rows.iter().all(|row| row.event.content_keys.is_empty()) {
        return append_in(conn, rows).await;
    }
    let mut tx = conn.begin().await?;
    let found = append_in(&mut tx, rows).await?;
    tx.commit().await?;
    Ok(found)
}

async fn append_in(conn: &mut PgConnection, rows: &[&Row]) -> sqlx::Result<Vec<Option<Appended>>> {
    let inserted = insert(conn, rows).await?;
    let mut found = vec![Some(Appended::Accepted); rows.len()];
    let is_copy = |row: &Row| !inserted.contains(&row.event.delivery.to_bytes());
    let new = rows.iter().map(|row| &**row).filter(|row| !is_copy(row));
    for (event, verdict) in twins::settle(conn, new.map(|row| &row.event), false).await? {
        let place = rows.iter().position(|row| row.event.delivery == event.delivery);
        if let Some(n) = place {
            found[n] = Some(verdict.appended());
        }
    }
    let copies: Vec<usize> = (0..rows.len()).filter(|&n| is_copy(rows[n])).collect();
    if copies.is_empty() {
        return Ok(found);
    }
    let originals = look(conn, copies.iter().map(|&n| &rows[n].event.key)).await?;
    for (ordinal, n) in (1..).zip(copies) {
        found[n] = originals
            .get(&ordinal)
            .map(|original| original.meets(&rows[n].event));
    }
    Ok(found)
}

/// Inserts what is new and says which deliveries that were.
async fn insert(conn: &mut PgConnection, rows: &[&Row]) -> sqlx::Result<HashSet<[u8; 16]>> {
    let events = || rows.iter().map(|row| &row.event);
    let inserted: Vec<[u8; 16]> = sqlx::query_scalar(INSERT)
        .bind(
            events()
                .map(|event| event.key.source.as_str())
                .collect::<Vec<_>>(),
        )
        .bind(events().map(|event| event.key.id.as_str()).collect::<Vec<_>>())
        .bind(events().map(|event| event.provider).collect::<Vec<_>>())
        .bind(
            events()
                .map(|event| event.account.as_ref().map(|f| f.as_str()))
                .collect::<Vec<_>>(),
        )
        .bind(events().map(|event| event.mode.as_str()).collect::<Vec<_>>())
        .bind(
            events()
                .map(|event| event.event_type.as_ref().map(|f| f.as_str()))
                .collect::<Vec<_>>(),
        )
        .bind(
            events()
                .map(|event| event.object_id.as_ref().map(|f| f.as_str()))
                .collect::<Vec<_>>(),
        )
        .bind(
            events()
                .map(|event| event.provider_time.as_ref().map(|t| t.unix_ms))
                .collect::<Vec<_>>(),
        )
        .bind(rows.iter().map(|row| row.queue.reason()).collect::<Vec<_>>())
        .bind(
            events()
                .map(|event| event.delivery.to_bytes())
                .collect::<Vec<_>>(),
        )
        .bind(events().map(|event| event.body_sha256).collect::<Vec<_>>())
        .bind(
            events()
                .map(|event| headers::write(&event.headers))
                .collect::<Vec<_>>(),
        )
        .bind(events().map(|event| &*event.body).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?;
    Ok(inserted.into_iter().collect())
}

/// The rows that the keys name, by the key's place in the list, from 1.
async fn look(
    conn: &mut PgConnection,
    keys: impl Iterator<Item = &EventKey> + Clone,
) -> sqlx::Result<HashMap<i64, Original>> {
    let rows = sqlx::query(LOOK)
        .bind(keys.clone().map(|key| key.source.as_str()).collect::<Vec<_>>())
        .bind(keys.map(|key| key.id.as_str()).collect::<Vec<_>>())
        .fetch_all(conn)
        .await?;
    let original = |row: &PgRow| {
        let (n, delivery, state, sha, is_linked): (_, _, String, _, _) = FromRow::from_row(row)?;
        Ok((n, Original::read(delivery, &state, sha, is_linked)?))
    };
    rows.iter().map(original).collect()
}
