//! What every ledger promises, asked of both dialects, and what only one of them can suffer. Real Postgres,
//! real files; where something must have happened first, the tests wait for just that.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod append;
mod arrivals;
mod bulk;
mod change;
mod database;
mod deaths;
mod election;
mod forward;
mod held;
mod history;
mod lanes;
mod lost_changes;
mod minutes;
mod network;
mod paging;
mod pooler;
mod postgres;
mod power_cut;
mod queue;
mod rivals;
mod rules;
mod sample;
mod schema;
mod search;
mod settle;
mod settling;
mod slow_search;
mod sqlite;
mod sweep;
mod table;
mod targets;
mod twin_forwards;
mod twin_replays;
mod twins;
mod unanswered;

/// Runs each case of a module on both dialects.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::database::Database::postgres().await).await;
            })*
        }

        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::database::Database::sqlite()).await;
            })*
        }
    };
}
pub(crate) use on_both;
