//! Migrating. Processes that start together take turns by the dialect's lock and find the work done. A failure
//! leaves the schema as it was. A schema newer than this binary is left alone, so that the binary before an
//! upgrade runs on beside the one after it.

use std::time::Duration;

use sqlx::migrate::MigrateError;
use tokio::time::{Instant, timeout_at};

use crate::LedgerError;
use crate::fault::{Fault, Pauses};
use crate::sessions::Sessions;
use crate::sql::Dialect;

/// Processes that wait for the one that migrates, and a migration of a big table, may take longer than any
/// statement of the path.
const PATIENCE: Duration = Duration::from_secs(120);

/// Brings the schema up to date. Only who collides with another process tries again: a database that is away
/// should not hold up a start.
pub(crate) async fn migrate<D: Dialect>(sessions: &Sessions<D>) -> Result<(), LedgerError> {
    let deadline = Instant::now() + PATIENCE;
    let mut pauses = Pauses::new();
    loop {
        match once(sessions, deadline).await {
            Err(Fault::Conflict(_)) if Instant::now() < deadline => {
                tokio::time::sleep(pauses.next()).await;
            }
            outcome => return Ok(outcome?),
        }
    }
}

async fn once<D: Dialect>(sessions: &Sessions<D>, deadline: Instant) -> Result<(), Fault> {
    let mut session = sessions.open(deadline).await?;
    session.at_rest = false;
    let migrated = timeout_at(
        deadline,
        sessions.act(&mut session, &(), |conn, ()| D::migrate(conn)),
    )
    .await;
    match migrated {
        Ok(Ok(())) => {
            sessions.put_back(session, None);
            Ok(())
        }
        Ok(Err(error)) => Err(explain(sessions.store(), error)),
        Err(_) => Err(Fault::Broken(format!(
            "migrating took more than {} s, or another process migrates for so long",
            PATIENCE.as_secs()
        ))),
    }
}

/// A database that went away meanwhile, or that another process holds, is no fault of a migration.
fn explain<D: Dialect>(store: &D, error: MigrateError) -> Fault {
    let fault = match &error {
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            store.learn(cause);
            Some(D::judge(cause))
        }
        _ => None,
    };
    fault
        .filter(Fault::passes)
        .unwrap_or_else(|| Fault::Migration(error.to_string()))
}
