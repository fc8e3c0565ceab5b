//! What people do from the command line with what is in the ledger. It needs `DATABASE_URL` and nothing else:
//! no server runs for it, no source is configured, no secret known.

mod bulk;
mod change;
pub mod dead_letters;
pub mod events;
mod filter;
mod look;
pub(super) mod safe;
pub mod stats;
pub mod targets;

use std::sync::Arc;

use hookgate_ledger::{LedgerError, Limits, Operations};
use serde::Serialize;

use super::{Failure, print};
use crate::cli::ConfigFile;
use crate::config::{LedgerStore, Reader, database};
use crate::stores::{self, Opened};

/// What the exit codes mean, for the help of each of these commands.
pub const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 nothing found; \
    4 refused (wrong state, pruned, or somebody was faster); 64 DATABASE_URL cannot be used";

/// Where the events are, and how to show them.
#[derive(Debug, clap::Args)]
pub struct Desk {
    #[command(flatten)]
    config: ConfigFile,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

impl Desk {
    /// Does it on the ledger, and closes that.
    fn attend<T>(
        &self,
        act: impl AsyncFnOnce(Arc<dyn Operations>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let reader = Reader::of_process(self.config.config.as_deref())?;
        let store = database(&reader)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::new)?;
        runtime.block_on(async {
            let opened = open(&store)?;
            let done = act(opened.operations).await;
            opened.ledger.close().await;
            done
        })
    }

    /// Prints the one or the other form.
    fn show(&self, document: &impl Serialize, table: impl FnOnce() -> String) -> Result<(), Failure> {
        let text = match self.json {
            true => safe::json(document).map_err(Failure::new)?,
            false => table(),
        };
        print(&text);
        Ok(())
    }
}

/// Opens the ledger, and makes no file: one that is not there holds no event.
fn open(store: &LedgerStore) -> Result<Opened, Failure> {
    if let LedgerStore::Sqlite(path) = store
        && !path.is_file()
    {
        return Err(Failure::usage(format!(
            "DATABASE_URL: there is no file {}: name the one that the gateway writes",
            path.display()
        )));
    }
    let opened = stores::open(store, Limits::default()).map_err(Failure::usage)?;
    opened.ok_or_else(|| Failure::usage("DATABASE_URL = none: without a ledger there is nothing to look at"))
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Unusable(_) | LedgerError::Migration(_) => {
                Self::usage(format!("DATABASE_URL: {error}"))
            }
            LedgerError::TooSlow(_) => Self::new(format!(
                "{error}; narrow it down, e.g. by --since, --source or --object"
            )),
            LedgerError::Unavailable(_) | LedgerError::Locked(_) | LedgerError::Refused(_) => {
                Self::new(error)
            }
        }
    }
}
