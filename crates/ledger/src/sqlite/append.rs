//! Appending a batch: one transaction, and so one wait for the disk. Within it nobody else writes, so a row
//! that loses against the unique key can look at its original at once.

use sqlx::{Connection, SqliteConnection};

use super::event::described;
use super::twins;
use crate::columns::{Original, bytes};
use crate::group::Row;
use crate::{Appended, NewEvent};

const INSERT: &str = "
    INSERT INTO webhook_events
        (source, event_id, provider, account, mode, event_type, object_id, provider_time, path,
         state, next_attempt_at, processed_at, last_error, delivery_id, body_sha256, headers, body)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, 'inbox',
           iif($13 IS NULL, 'queued', 'done'), iif($13 IS NULL, now, NULL), iif($13 IS NULL, NULL, now),
           $13, $9, $10, $11, $12
    FROM clock
    WHERE true -- Else the parser takes what follows for a join's condition.
    ON CONFLICT (source, event_id) DO NOTHING";

const LOOK: &str = "
    SELECT delivery_id, state, body_sha256, twin_of IS NOT NULL FROM webhook_events WHERE source = $1 AND event_id = $2";

/// Appends the rows.
pub(super) async fn append(
    conn: &mut SqliteConnection,
    rows: &[&Row],
) -> sqlx::Result<Vec<Option<Appended>>> {
    let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
    let (mut found, mut new) = (Vec::with_capacity(rows.len()), Vec::new());
    for (n, row) in rows.iter().enumerate() {
        let appended = match insert(&mut tx, row).await? {
            true => {
                new.push(n);
                Appended::Accepted
            }
            false => look(&mut tx, &row.event).await?.meets(&row.event),
        };
        found.push(Some(appended));
    }
    let new = new.into_iter().map(|n: usize| &rows[n].event);
    for (event, verdict) in twins::settle(&mut tx, new, false).await? {
        let place = rows.iter().position(|row| row.event.delivery == event.delivery);
        if let Some(n) = place {
            found[n] = Some(verdict.appended());
        }
    }
    tx.commit().await?;
    Ok(found)
}

/// Whether the row was new.
async fn insert(conn: &mut SqliteConnection, row: &Row) -> sqlx::Result<bool> {
    let inserted = described(INSERT, &row.event)
        .bind(row.queue.reason())
        .execute(conn)
        .await?;
    Ok(inserted.rows_affected() == 1)
}

async fn look(conn: &mut SqliteConnection, event: &NewEvent) -> sqlx::Result<Original> {
    let (delivery, state, sha, is_linked): (Vec<u8>, String, Vec<u8>, bool) = sqlx::query_as(LOOK)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .fetch_one(conn)
        .await?;
    Original::read(bytes(&delivery)?, &state, bytes(&sha)?, is_linked)
}
