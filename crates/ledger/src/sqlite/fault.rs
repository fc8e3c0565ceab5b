//! What SQLite's result codes mean for us: <https://www.sqlite.org/rescode.html>.

use sqlx::error::DatabaseError;

use crate::fault::Fault;

/// Translates one error.
pub(super) fn judge(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => by_code(&**error),
        sqlx::Error::Configuration(_) => Fault::Unusable(error.to_string()),
        sqlx::Error::Encode(_) | sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
            Fault::Data(error.to_string())
        }
        _ => Fault::Broken(error.to_string()),
    }
}

fn by_code(error: &dyn DatabaseError) -> Fault {
    let code: i32 = error
        .code()
        .and_then(|code| code.parse().ok())
        .unwrap_or_default();
    let why = format!("{} (SQLite error {code})", error.message());
    // The lowest byte is the kind, the rest its finer shade.
    match code & 0xff {
        // Busy, locked: another process writes.
        5 | 6 => Fault::Conflict(why),
        // Interrupted at its limit, and nothing was done.
        9 => Fault::TooSlow(why),
        // Too big, constraint (also what a trigger raises), mismatch.
        18..=20 => Fault::Data(why),
        // A missing table or column.
        1 => Fault::Unusable(format!(
            "{why}; the schema is missing or older: run `hookgate migrate`"
        )),
        // Read-only, damaged, cannot be opened, no database.
        8 | 11 | 14 | 26 => Fault::Unusable(format!("the ledger's file cannot be used: {why}")),
        // A full disk and errors of the device may pass.
        _ => Fault::Broken(why),
    }
}
