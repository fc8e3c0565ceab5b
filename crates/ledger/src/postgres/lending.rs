//! Whether the sessions that we get are ours for as long as a connection stands, or lent for a transaction each by
//! a pooler in between. Nothing in an address or an answer tells that for certain, so it is found out by how
//! sessions come and go, once, with a second connection.
//!
//! Until it is known, and where it cannot be, sessions are treated as lent: that is slower and right for both. What
//! only a pooler can cause is taken as proof of one, if it was overlooked.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor as _, PgConnection, Row as _};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::sessions::Tenure;

/// Longest time to find out.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// How often two connections are compared. One look finds a pooler that nobody else uses. On a busy one others may
/// take and leave sessions meanwhile just so that ours seems to be kept, but not often in a row.
const ROUNDS: usize = 6;

const SESSION: &str = "SELECT pg_backend_pid()";
const SESSION_OF_TRANSACTION: &str = "BEGIN; SELECT pg_backend_pid()";

/// What was found out.
#[derive(Default)]
pub(super) struct Lending {
    known: AtomicU8,
    looking: Mutex<()>,
}

const KEPT: u8 = 1;
const LENT: u8 = 2;

impl Lending {
    /// What is known; `None` if nothing is.
    pub(super) fn known(&self) -> Option<Tenure> {
        match self.known.load(Ordering::Relaxed) {
            KEPT => Some(Tenure::Kept),
            LENT => Some(Tenure::Lent),
            _ => None,
        }
    }

    /// What is known, or can be found out with this connection and another one.
    pub(super) async fn find_out(&self, options: &PgConnectOptions, conn: &mut PgConnection) -> Tenure {
        if let Some(known) = self.known() {
            return known;
        }
        // Others that connect at the same time wait for the answer of one.
        let _turn = self.looking.lock().await;
        if let Some(known) = self.known() {
            return known;
        }
        let Ok(Ok(found)) = timeout(LOOK_TIMEOUT, look(options, conn)).await else {
            return Tenure::Lent;
        };
        self.known.store(
            match found {
                Tenure::Kept => KEPT,
                Tenure::Lent => LENT,
            },
            Ordering::Relaxed,
        );
        found
    }

    /// Learns from an error: a statement that we prepared is unknown, or one that we did not prepare is there. No
    /// session of our own does that.
    pub(super) fn learn(&self, error: &sqlx::Error) {
        let code = error.as_database_error().and_then(|error| error.code());
        if matches!(code.as_deref(), Some("26000" | "42P05"))
            && self.known.swap(LENT, Ordering::Relaxed) != LENT
        {
            tracing::warn!(
                "the database is behind a pooler that lends a session for each transaction; from now on each call is one"
            );
        }
    }
}

async fn look(options: &PgConnectOptions, ours: &mut PgConnection) -> sqlx::Result<Tenure> {
    let mut other = options.connect().await?;
    let found = compare(ours, &mut other).await;
    let _ = other.close().await;
    found
}

/// A session that is kept is the same before and after, and nobody else's meanwhile. A pooler gives the session that
/// was left last, or that has rested longest: either way one of both shows.
async fn compare(ours: &mut PgConnection, other: &mut PgConnection) -> sqlx::Result<Tenure> {
    for _ in 0..ROUNDS {
        let before = session(ours, SESSION).await?;
        let others = session(other, SESSION_OF_TRANSACTION).await?;
        // Asked again now, a pooler with one session for all would let us wait for the other transaction.
        let lent = others == before || session(ours, SESSION).await? != before;
        other.execute("ROLLBACK").await?;
        if lent {
            return Ok(Tenure::Lent);
        }
    }
    Ok(Tenure::Kept)
}

async fn session(conn: &mut PgConnection, question: &'static str) -> sqlx::Result<i32> {
    sqlx::raw_sql(question).fetch_one(conn).await?.try_get(0)
}
