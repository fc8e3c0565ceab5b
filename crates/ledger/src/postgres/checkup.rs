//! What an operator should know of the server, as any session may read it.

use sqlx::PgConnection;

use crate::Finding;

/// The oldest version that all of our statements run on.
const OLDEST: u32 = 13;

/// The setting that a session begins with: ours are raised.
const LOOK: &str = "
    SELECT pg_is_in_recovery(), current_setting('server_version_num')::int, current_setting('server_version'),
           (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
           current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication)";

pub(super) async fn checkup(conn: &mut PgConnection) -> sqlx::Result<Vec<Finding>> {
    type Seen = (bool, i32, String, String, String, i64);
    let (standby, number, version, commit, waits_for, followers): Seen =
        sqlx::query_as(LOOK).fetch_one(conn).await?;
    let mut found = Vec::new();
    if number.unsigned_abs() / 10_000 < OLDEST {
        found.push(Finding::Old {
            version,
            oldest: OLDEST,
        });
    }
    if standby {
        found.push(Finding::Standby);
        return Ok(found);
    }
    if !matches!(commit.as_str(), "on" | "remote_apply") {
        found.push(Finding::CommitsEarly(commit));
    }
    if followers > 0 && waits_for.is_empty() {
        found.push(Finding::StandbysBehind(followers.unsigned_abs()));
    }
    Ok(found)
}
