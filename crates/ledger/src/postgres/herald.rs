//! News between processes by LISTEN and NOTIFY. A message carries nothing: the table knows what there is.

use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::timeout;

use super::store::Postgres;
use crate::bell::Herald;
use crate::fault::Fault;
use crate::sessions::{Store, Tenure};

const CHANNEL: &str = "hookgate_events";

/// A message is a transaction of its own. That it survives a crash is of no use, so it does not wait for the
/// disk. Only this transaction does not: behind a pooler the same session may be lent to one that appends.
const TELL: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify('hookgate_events', '')";

/// After so long a silence the connection is asked whether it lives: one that was cut off says nothing either.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Longest wait for that answer, and for a connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

impl Herald for Postgres {
    const SHARED: bool = true;

    async fn tell(conn: &mut PgConnection) -> Result<(), Fault> {
        // Not prepared: behind a pooler that takes two sessions.
        sqlx::raw_sql(TELL)
            .execute(conn)
            .await
            .map_err(|error| Self::judge(&error))?;
        Ok(())
    }

    async fn hear(&self, heard: impl Fn() + Send) -> Fault {
        let Err(fault) = self.listen(heard).await;
        fault
    }
}

impl Postgres {
    async fn listen(&self, heard: impl Fn() + Send) -> Result<std::convert::Infallible, Fault> {
        if self.tenure().is_none() {
            // Whoever connects first finds it out, and nobody may have yet.
            let opened = timeout(ANSWER_TIMEOUT, self.open()).await;
            drop(opened.map_err(|_| Fault::Broken("the database did not answer in time".into()))??);
        }
        if self.tenure() != Some(Tenure::Kept) {
            return Err(Fault::Broken("a session that is lent hears nothing".into()));
        }
        // A pool of one, since a listener is made from nothing else.
        let one = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ANSWER_TIMEOUT)
            .connect_lazy_with(self.options().clone());
        let mut listener = in_time(PgListener::connect_with(&one)).await?;
        in_time(listener.listen(CHANNEL)).await?;
        heard();
        loop {
            match timeout(SILENCE_MAX, listener.try_recv()).await {
                // Also after it connected anew by itself: what was told meanwhile is lost, so look.
                Ok(Ok(_)) => heard(),
                Ok(Err(error)) => return Err(Self::judge(&error)),
                Err(_) => {
                    in_time(sqlx::query("SELECT 1").execute(&mut listener)).await?;
                }
            }
        }
    }
}

async fn in_time<T>(answer: impl Future<Output = sqlx::Result<T>>) -> Result<T, Fault> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| Postgres::judge(&error)),
        Err(_) => Err(Fault::Broken("the database did not answer in time".into())),
    }
}

#[cfg(test)]
mod tests {
    use hookgate_harness::PostgresServer;
    use sqlx::Connection;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_session_that_told_waits_for_the_disk_again() {
        let server = PostgresServer::shared().await;
        let url = server.create_database().await;
        let mut conn = PgConnection::connect(&url).await.unwrap();
        let mut listener = PgListener::connect(&url).await.unwrap();
        listener.listen(CHANNEL).await.unwrap();
        Postgres::tell(&mut conn).await.unwrap();
        assert_eq!(listener.recv().await.unwrap().channel(), CHANNEL);
        let waits: String = sqlx::query_scalar("SELECT current_setting('synchronous_commit')")
            .fetch_one(&mut conn)
            .await
            .unwrap();
        assert_eq!(waits, "on");
    }
}
