//! How to connect to Postgres, and what each connection promises before it is used.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use super::fault;
use crate::fault::Fault;
use crate::sessions::Store;
use crate::{LedgerError, Limits};

/// A session that holds locks and says nothing for so long belongs to a process that is stopped or cut off.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Makes the settings of a session and reads what must be true of the server. `synchronous_commit` is only
/// ever raised: an operator may ask for more than `on`. To compile a statement takes longer than all of ours
/// run.
const SETTINGS: &str = "
    SELECT set_config('jit', 'off', false),
           set_config('lock_timeout', $1, false),
           set_config('statement_timeout', $2, false),
           set_config('idle_in_transaction_session_timeout', $3, false),
           CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
                THEN set_config('synchronous_commit', 'on', false) END,
           current_setting('fsync'), current_setting('server_encoding')";

/// The timeline that is written to now: the first eight digits of the name of the log file in use. The
/// control file knows it too, but after a promotion only from the next checkpoint on.
const TIMELINE: &str = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int";

/// A Postgres database.
pub(crate) struct Postgres {
    options: PgConnectOptions,
    lock: Duration,
    statement: Duration,
    timeline: AtomicU32,
    timeline_hidden: AtomicBool,
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
            options: options.application_name("hookgate").disable_statement_logging(),
            lock: limits.lock,
            statement: limits.statement,
            timeline: AtomicU32::new(0),
            timeline_hidden: AtomicBool::new(false),
        })
    }

    /// How it is reached.
    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    async fn settle_in(&self, conn: &mut PgConnection) -> Result<(), Fault> {
        type Settings = (String, String, String, String, Option<String>, String, String);
        let (.., fsync, encoding): Settings = sqlx::query_as(SETTINGS)
            .bind(milliseconds(self.lock))
            .bind(milliseconds(self.statement))
            .bind(milliseconds(SILENCE_MAX))
            .fetch_one(conn)
            .await
            .map_err(|error| fault::judge(&error))?;
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
        Ok(())
    }

    /// Reads the timeline; 0 where it is not shown, which is said once.
    async fn read_timeline(&self, conn: &mut PgConnection) {
        let timeline = match sqlx::query_scalar::<_, i32>(TIMELINE).fetch_one(conn).await {
            Ok(timeline) => timeline.cast_unsigned(),
            Err(error) => {
                if !self.timeline_hidden.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        %error,
                        "Postgres does not show its timeline; after a restore raise HOOKGATE_CLAIM_EPOCH by hand"
                    );
                }
                0
            }
        };
        self.timeline.store(timeline, Ordering::Relaxed);
    }
}

impl Store for Postgres {
    type Connection = PgConnection;

    async fn open(&self) -> Result<PgConnection, Fault> {
        let mut conn = self
            .options
            .connect()
            .await
            .map_err(|error| fault::judge(&error))?;
        self.settle_in(&mut conn).await?;
        self.read_timeline(&mut conn).await;
        Ok(conn)
    }

    fn judge(error: &sqlx::Error) -> Fault {
        fault::judge(error)
    }

    fn timeline(&self) -> u32 {
        self.timeline.load(Ordering::Relaxed)
    }
}

fn milliseconds(limit: Duration) -> String {
    format!("{}ms", limit.as_millis().max(1))
}
