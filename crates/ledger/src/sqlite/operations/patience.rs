//! A limit for a statement. SQLite has none of its own, but asks now and then whether to go on.

use std::time::{Duration, Instant};

use sqlx::SqliteConnection;

/// Steps of SQLite's machine between two questions: about a tenth of a millisecond.
const STEPS: i32 = 1000;

/// From now on a statement ends as interrupted after that time, until [`lift`].
pub(super) async fn limit(conn: &mut SqliteConnection, within: Duration) -> sqlx::Result<()> {
    let begun = Instant::now();
    conn.lock_handle()
        .await?
        .set_progress_handler(STEPS, move || begun.elapsed() < within);
    Ok(())
}

/// Lifts the limit. To be called however the statement ended: the next one has time of its own.
pub(super) async fn lift(conn: &mut SqliteConnection) -> sqlx::Result<()> {
    conn.lock_handle().await?.remove_progress_handler();
    Ok(())
}
