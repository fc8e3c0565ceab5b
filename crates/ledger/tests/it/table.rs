//! Events as they shall stand in the table, whatever led there.

use hookgate_ledger::{Ledger, Listing, Queue, State, UnixMicros};
use hookgate_webhook::{EventId, EventKey, Field};

use crate::database::Database;
use crate::sample::{event, source};

/// Ten seconds after the beginning of the year 2026.
pub(crate) const BASE: UnixMicros = UnixMicros(1_767_225_610_000_000);

pub(crate) fn at(seconds: i64) -> UnixMicros {
    UnixMicros(BASE.0 + seconds * 1_000_000)
}

/// An event as it shall stand in the table.
pub(crate) struct Row {
    pub(crate) key: EventKey,
    pub(crate) event_type: &'static str,
    pub(crate) object_id: &'static str,
    pub(crate) state: State,
    pub(crate) received_at: UnixMicros,
    pub(crate) error: &'static str,
}

pub(crate) fn row(source_name: &str, id: &str, received_at: UnixMicros) -> Row {
    Row {
        key: EventKey {
            source: source(source_name),
            id: EventId::parse(id).unwrap(),
        },
        event_type: "invoice.paid",
        object_id: "in_1",
        state: State::Done,
        received_at,
        error: "",
    }
}

pub(crate) async fn put(db: &Database, ledger: &dyn Ledger, rows: &[Row]) {
    let mut sql = String::new();
    for row in rows {
        let mut new = event(row.key.id.as_str());
        new.key = row.key.clone();
        new.event_type = Field::parse(row.event_type);
        new.object_id = Field::parse(row.object_id);
        let _ = ledger.append(new, Queue::Finished("no_consumer")).await.unwrap();
        let (waits, rests) = match row.state {
            State::Queued => ("received_at", "NULL"),
            State::Failed => ("NULL", "NULL"),
            _ => ("NULL", "received_at"),
        };
        sql += &format!(
            "UPDATE webhook_events SET received_at = {}, state = '{}', last_error = '{}',
                    next_attempt_at = {waits}, processed_at = {rests}
             WHERE source = '{}' AND event_id = '{}';\n",
            db.moment(row.received_at),
            row.state,
            row.error.replace('\'', "''"),
            row.key.source,
            row.key.id.as_str(),
        );
    }
    db.run(&sql).await;
}

pub(crate) fn ids(listing: &Listing) -> Vec<&str> {
    listing.events.iter().map(|event| event.key.id.as_str()).collect()
}
