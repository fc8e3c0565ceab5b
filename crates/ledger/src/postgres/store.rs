//! How to connect to Postgres, and what each connection promises before it is used.
//!
//! Where a pooler lends a session for each transaction, settings made at connect would stay behind with whoever gets
//! the session next, and so would prepared statements. There, everything that is done is one transaction, which
//! begins with its settings and takes its statements back before it ends.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor, FromRow as _, PgConnection};

use super::fault;
use super::lending::Lending;
use crate::fault::Fault;
use crate::history::Histories;
use crate::sessions::{Act, Opened, Store, Tenure};
use crate::{LedgerError, Limits};

/// A session that holds locks and says nothing for so long belongs to a process that is stopped or cut off.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// What must be true of the server, and how far its commits go.
const FACTS: &str = "SELECT current_setting('fsync'), current_setting('server_encoding'), current_setting('synchronous_commit')";

/// The timeline that is written to now: the first eight digits of the name of the log file in use. The
/// control file knows it too, but after a promotion only from the next checkpoint on.
const TIMELINE: &str = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int";

/// The server's word for a question that a standby cannot answer.
const IN_RECOVERY: &str = "55000";

/// A Postgres database.
pub(crate) struct Postgres {
    options: PgConnectOptions,
    limits: Limits,
    common: Arc<Common>,
}

/// What is known of the database, whoever connects to it.
#[derive(Default)]
struct Common {
    lending: Lending,
    histories: Histories,
    timeline: AtomicU32,
    timeline_hidden: AtomicBool,
    /// Whether commits of the server wait for more than its own disk; then ours do, too.
    applies_remotely: AtomicBool,
}

/// What the server says of the timeline.
pub(super) enum Shown {
    Timeline(u32),
    /// It does not say.
    Hidden,
    /// It is a standby, and writes none.
    Standby,
}

impl Postgres {
    /// Reads the URL. Statements are not logged: they would fill the log, and errors name what matters.
    pub(crate) fn parse(url: &SecretString, limits: &Limits) -> Result<Self, LedgerError> {
        let url = url.expose_secret();
        let ours = url.starts_with("postgres://") || url.starts_with("postgresql://");
        let options = PgConnectOptions::from_str(url)
            .ok()
            .filter(|_| ours)
            .ok_or_else(|| {
                LedgerError::Unusable(
                    "the database address must have the form postgres://user:password@host:port/database, \
                 with special characters percent-encoded"
                        .into(),
                )
            })?;
        Ok(Self {
            // Poolers refuse a setting at the greeting that they do not know, and we read no float as text.
            options: options
                .application_name("hookgate")
                .extra_float_digits(None)
                .disable_statement_logging(),
            limits: *limits,
            common: Arc::default(),
        })
    }

    /// The same database within other limits.
    pub(crate) fn within(&self, limits: Limits) -> Self {
        Self {
            options: self.options.clone(),
            limits,
            common: Arc::clone(&self.common),
        }
    }

    /// How it is reached.
    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Whether its sessions are ours; `None` as long as nobody knows.
    pub(super) fn tenure(&self) -> Option<Tenure> {
        self.common.lending.known()
    }

    pub(super) fn common_histories(&self) -> &Histories {
        &self.common.histories
    }

    /// Reads what must be true of the server, and makes the settings of a session that is ours. Simple queries, since
    /// a prepared one takes two steps, and a pooler may take the session away between them.
    async fn settle_in(&self, conn: &mut PgConnection, tenure: Tenure) -> Result<(), Fault> {
        let row = sqlx::raw_sql(FACTS).fetch_one(&mut *conn).await;
        let row = row.map_err(|error| fault::judge(&error))?;
        let (fsync, encoding, commit) =
            <(String, String, String)>::from_row(&row).map_err(|error| fault::judge(&error))?;
        if fsync == "off" {
            return Err(Fault::Unusable(
                "Postgres runs with fsync = off, so a crash can lose events that were accepted; \
                 turn fsync on"
                    .into(),
            ));
        }
        if encoding != "UTF8" {
            return Err(Fault::Unusable(format!(
                "the database has the encoding {encoding} and cannot keep every event id; \
                 create it with encoding UTF8"
            )));
        }
        self.common
            .applies_remotely
            .store(commit == "remote_apply", Ordering::Relaxed);
        if tenure == Tenure::Lent {
            return Ok(());
        }
        conn.execute(AssertSqlSafe(self.settings("SET")))
            .await
            .map_err(|error| fault::judge(&error))?;
        Ok(())
    }

    /// The settings under which everything is done. `synchronous_commit` is only ever raised: an operator may ask for
    /// more than `on`. To compile a statement takes longer than all of ours run.
    fn settings(&self, set: &str) -> String {
        let commit = match self.common.applies_remotely.load(Ordering::Relaxed) {
            true => "remote_apply",
            false => "on",
        };
        format!(
            "{set} jit = off; {set} lock_timeout = {}; {set} statement_timeout = {}; \
             {set} idle_in_transaction_session_timeout = {}; {set} synchronous_commit = {commit}",
            milliseconds(self.limits.lock),
            milliseconds(self.limits.statement),
            milliseconds(SILENCE_MAX),
        )
    }

    /// Asks for the timeline. Why it is not shown is said once.
    pub(super) async fn timeline_shown<'c>(
        &self,
        conn: impl Executor<'c, Database = sqlx::Postgres>,
    ) -> Result<Shown, Fault> {
        // All rows, so that nothing of the answer is left on the connection.
        let rows = sqlx::raw_sql(TIMELINE).fetch_all(conn).await;
        let timeline = rows.and_then(|rows| match rows.first() {
            Some(row) => <(i32,)>::from_row(row),
            None => Err(sqlx::Error::RowNotFound),
        });
        match timeline {
            Ok((timeline,)) => Ok(Shown::Timeline(timeline.cast_unsigned())),
            Err(error) => match error.as_database_error() {
                None => Err(fault::judge(&error)),
                Some(refused) if refused.code().as_deref() == Some(IN_RECOVERY) => Ok(Shown::Standby),
                Some(refused) => {
                    if !self.common.timeline_hidden.swap(true, Ordering::Relaxed) {
                        tracing::warn!(
                            error = %refused,
                            "Postgres does not show its timeline; after a restore or a failover raise HOOKGATE_CLAIM_EPOCH by hand"
                        );
                    }
                    Ok(Shown::Hidden)
                }
            },
        }
    }
}

impl Store for Postgres {
    type Connection = PgConnection;

    async fn open(&self) -> Result<Opened<PgConnection>, Fault> {
        let mut connection = self
            .options
            .connect()
            .await
            .map_err(|error| fault::judge(&error))?;
        let tenure = self.common.lending.find_out(&self.options, &mut connection).await;
        self.settle_in(&mut connection, tenure).await?;
        let timeline = match self.timeline_shown(&mut connection).await? {
            Shown::Timeline(timeline) => timeline,
            Shown::Hidden | Shown::Standby => 0,
        };
        self.common.timeline.store(timeline, Ordering::Relaxed);
        self.common.histories.seen(timeline);
        Ok(Opened {
            connection,
            tenure,
            timeline,
        })
    }

    async fn lent<A: Sync, T: Send, E: From<sqlx::Error> + Send>(
        &self,
        conn: &mut PgConnection,
        args: &A,
        act: Act<Self, A, T, E>,
    ) -> Result<T, E> {
        let begin = format!("BEGIN; {}", self.settings("SET LOCAL"));
        let mut tx = conn.begin_with(AssertSqlSafe(begin)).await?;
        let done = act(&mut tx, args).await?;
        tx.clear_cached_statements().await?;
        tx.commit().await?;
        Ok(done)
    }

    fn learn(&self, error: &sqlx::Error) {
        self.common.lending.learn(error);
    }

    fn judge(error: &sqlx::Error) -> Fault {
        fault::judge(error)
    }

    fn timeline(&self) -> u32 {
        self.common.timeline.load(Ordering::Relaxed)
    }
}

fn milliseconds(limit: Duration) -> String {
    format!("'{}ms'", limit.as_millis().max(1))
}
