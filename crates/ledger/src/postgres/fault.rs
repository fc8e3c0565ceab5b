//! What Postgres's error codes mean for us: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.

use sqlx::error::DatabaseError;

use crate::fault::Fault;

/// Translates one error. Texts keep the server's message and leave its details out: those can quote a row.
pub(super) fn judge(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => by_code(&**error),
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => Fault::Unusable(format!(
            "connecting to Postgres is not possible as configured: {error}"
        )),
        sqlx::Error::Encode(_) | sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
            Fault::Data(error.to_string())
        }
        _ => Fault::Broken(error.to_string()),
    }
}

fn by_code(error: &dyn DatabaseError) -> Fault {
    let code = error.code().unwrap_or_default();
    let why = format!("{} (Postgres error {code})", error.message());
    match &*code {
        // Serialization failure, deadlock.
        "40001" | "40P01" => Fault::Conflict(why),
        "55P03" => Fault::Locked(why),
        // The statement timeout, and nothing was done. Asking again for each row would be the wrong answer
        // to a server that is slow.
        "57014" => Fault::TooSlow(why),
        // A statement that we prepared is gone, or one is there that we did not prepare: the session is not ours.
        "26000" | "42P05" => Fault::Broken(why),
        // The database does not exist; the server refuses the name or password.
        "3D000" => Fault::Unusable(why),
        _ => match code.get(..2) {
            // Data exceptions, constraints, limits of a row, and what a trigger raises.
            Some("22" | "23" | "54" | "P0") => Fault::Data(why),
            Some("28") => Fault::Unusable(why),
            Some("42") => Fault::Unusable(format!(
                "{why}; the schema or a permission is missing: run `hookgate migrate` as the tables' owner"
            )),
            // Shutdown, start-up, read-only after a failover, no space, no memory, too many connections.
            _ => Fault::Broken(why),
        },
    }
}
