//! An event as the first twelve arguments of a statement.

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use crate::{NewEvent, headers};

/// The statement, with the event bound to `$1` to `$12`.
pub(super) fn described(sql: &'static str, event: &NewEvent) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(sql)
        .bind(event.key.source.as_str())
        .bind(event.key.id.as_str())
        .bind(event.provider)
        .bind(event.account.as_ref().map(|field| field.as_str()))
        .bind(event.mode.as_str())
        .bind(event.event_type.as_ref().map(|field| field.as_str()))
        .bind(event.object_id.as_ref().map(|field| field.as_str()))
        .bind(event.provider_time.as_ref().map(|time| time.unix_ms))
        .bind(&event.delivery.to_bytes()[..])
        .bind(&event.body_sha256[..])
        .bind(headers::write(&event.headers))
        .bind(&event.body[..])
}
