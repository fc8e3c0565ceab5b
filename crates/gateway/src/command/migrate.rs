//! `hookgate migrate`.

use hookgate_ledger::{Ledger, Limits, PostgresLedger, SqliteLedger};

use super::{Failure, print};
use crate::cli::ConfigFile;
use crate::config::{LedgerStore, Reader, database};

/// Brings the schema up to date and says so. Needs nothing but `DATABASE_URL`.
pub fn migrate(file: &ConfigFile) -> Result<(), Failure> {
    let reader = Reader::of_process(file.config.as_deref())?;
    let store = database(&reader)?;
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
    runtime.block_on(async {
        let ledger: Box<dyn Ledger> = match &store {
            LedgerStore::None => {
                return Err(Failure::usage("DATABASE_URL = none: there is nothing to migrate"));
            }
            LedgerStore::Sqlite(path) => {
                Box::new(SqliteLedger::open(path, Limits::default()).map_err(Failure::new)?)
            }
            LedgerStore::Postgres(url) => {
                Box::new(PostgresLedger::connect(url, Limits::default()).map_err(Failure::usage)?)
            }
        };
        ledger.migrate().await.map_err(Failure::new)?;
        ledger.close().await;
        print("the ledger's schema is up to date\n");
        Ok(())
    })
}
