//! What people do, on any SQL database: every call is one act in its dialect, on the connections for people.
//! A dialect says only what differs.
//!
//! A change is repeated when the answer to its commit was lost. Each carries a request of its own, which its
//! audit rows keep: a repetition that finds them knows that it was committed, and reports it as done.

mod order;
mod rows;
mod selection;

use async_trait::async_trait;
use hookgate_webhook::{EventKey, SourceName};

use crate::fault::Fault;
use crate::operations::PAGE_MAX;
use crate::sessions::Act;
use crate::sql::{Dialect, SqlLedger};
use crate::{
    Bulk, BulkStep, Change, Changed, Cursor, EventDetail, Filter, LedgerError, Listing, MinuteStats,
    Operations, Reason, StoredBody, TargetRecord, UnixMicros,
};
pub(crate) use order::{Order, PauseOrder, Standing};
pub(crate) use rows::{AttemptRow, AuditRow, CountRow, DetailRow, SummaryRow, TargetRow, Touched, by_minute};
pub(crate) use selection::{Direction, Phrases, Selection, Window, micros};

/// The acts of people in one database's SQL. Each is atomic.
#[async_trait]
pub(crate) trait OperationsDialect: Dialect {
    /// The selected events.
    async fn list(conn: &mut Self::Connection, selection: &Selection) -> sqlx::Result<Vec<SummaryRow>>;

    /// As [`Operations::event`].
    async fn event(conn: &mut Self::Connection, key: &EventKey) -> sqlx::Result<Option<EventDetail>>;

    /// As [`Operations::body`].
    async fn body(conn: &mut Self::Connection, key: &EventKey) -> sqlx::Result<Option<StoredBody>>;

    /// The selected events, without changing one.
    async fn count(conn: &mut Self::Connection, selection: &Selection) -> sqlx::Result<Vec<Touched>>;

    /// Changes the selected events and writes each down, oldest first.
    async fn change(conn: &mut Self::Connection, order: &Order<'_>) -> sqlx::Result<Vec<Touched>>;

    /// Waits for a change of this request that was cut off and still runs on the server.
    async fn await_earlier(conn: &mut Self::Connection, request: &[u8; 16]) -> sqlx::Result<()>;

    /// The events that a request has changed, oldest first.
    async fn written(conn: &mut Self::Connection, request: &[u8; 16]) -> sqlx::Result<Vec<Touched>>;

    /// What a change looks at.
    async fn standing(conn: &mut Self::Connection, key: &EventKey) -> sqlx::Result<Option<Standing>>;

    /// As [`Operations::targets`].
    async fn targets(conn: &mut Self::Connection) -> sqlx::Result<Vec<TargetRow>>;

    /// As [`Operations::pause`]; true if this request has done it.
    async fn pause(conn: &mut Self::Connection, order: &PauseOrder<'_>) -> sqlx::Result<bool>;

    /// As [`Operations::resume`]; true if this request has done it.
    async fn resume(conn: &mut Self::Connection, order: &PauseOrder<'_>) -> sqlx::Result<bool>;

    /// As [`Operations::stats`], one row a count.
    async fn stats(conn: &mut Self::Connection, window: &Window) -> sqlx::Result<Vec<CountRow>>;
}

/// Does it on a connection for people.
async fn attend<L, A, T>(ledger: &L, args: &A, act: Act<L::Dialect, A, T>) -> Result<T, LedgerError>
where
    L: SqlLedger,
    A: Sync,
    T: Send,
{
    let done = ledger.parts().desk.attempt(args, act).await;
    done.map_err(|fault| match fault {
        Fault::TooSlow(why) => LedgerError::TooSlow(why),
        other => other.into(),
    })
}

#[async_trait]
impl<L> Operations for L
where
    L: SqlLedger,
    L::Dialect: OperationsDialect,
{
    async fn list(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Listing, LedgerError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let selection = Selection {
            after: after.cloned(),
            // One more, which says whether there is a next page.
            limit: limit + 1,
            within: self.parts().desk.limits().statement,
            ..Selection::of(filter.clone(), Direction::NewestFirst)
        };
        let rows = match selection.is_impossible() {
            true => Vec::new(),
            false => attend(self, &selection, |conn, wanted| L::Dialect::list(conn, wanted)).await?,
        };
        rows::listing(rows, limit).map_err(|error| LedgerError::Refused(error.to_string()))
    }

    async fn event(&self, key: &EventKey) -> Result<Option<EventDetail>, LedgerError> {
        attend(self, key, |conn, key| L::Dialect::event(conn, key)).await
    }

    async fn body(&self, key: &EventKey) -> Result<Option<StoredBody>, LedgerError> {
        attend(self, key, |conn, key| L::Dialect::body(conn, key)).await
    }

    async fn change(
        &self,
        key: &EventKey,
        change: Change,
        generation: Option<u32>,
        reason: &Reason,
    ) -> Result<Changed, LedgerError> {
        let order = Order::one(key, change, generation, reason);
        attend(self, &order, |conn, order| {
            Box::pin(order::change_one::<L::Dialect>(conn, order))
        })
        .await
    }

    async fn change_many(&self, bulk: &Bulk, reason: &Reason) -> Result<BulkStep, LedgerError> {
        let most = Bulk::most(bulk.dry_run);
        let mut order = Order::many(bulk, bulk.limit.clamp(1, most), reason);
        order.selection.within = self.parts().desk.limits().statement;
        let touched = match order.selection.is_impossible() {
            true => Vec::new(),
            false => {
                attend(self, &order, |conn, order| {
                    Box::pin(order::change_many::<L::Dialect>(conn, order))
                })
                .await?
            }
        };
        rows::step(&touched, order.selection.limit).map_err(|error| LedgerError::Refused(error.to_string()))
    }

    async fn targets(&self) -> Result<Vec<TargetRecord>, LedgerError> {
        let rows = attend(self, &(), |conn, ()| L::Dialect::targets(conn)).await?;
        Ok(rows.into_iter().map(TargetRow::record).collect())
    }

    async fn pause(&self, target: &str, reason: &Reason) -> Result<bool, LedgerError> {
        let order = PauseOrder::new(target, reason);
        attend(self, &order, |conn, order| L::Dialect::pause(conn, order)).await
    }

    async fn resume(&self, target: &str, reason: &Reason) -> Result<bool, LedgerError> {
        let order = PauseOrder::new(target, reason);
        attend(self, &order, |conn, order| L::Dialect::resume(conn, order)).await
    }

    async fn stats(
        &self,
        since: UnixMicros,
        until: UnixMicros,
        source: Option<&SourceName>,
    ) -> Result<Vec<MinuteStats>, LedgerError> {
        let window = Window {
            since,
            until,
            source: source.cloned(),
            within: self.parts().desk.limits().statement,
        };
        let counts = attend(self, &window, |conn, window| L::Dialect::stats(conn, window)).await?;
        Ok(by_minute(counts))
    }
}
