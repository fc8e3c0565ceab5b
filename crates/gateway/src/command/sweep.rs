//! `hookgate sweep`: retention as a process that stays, or once for a job that somebody else starts.

use std::sync::Arc;

use clap::Args;
use hookgate_ledger::{Limits, Swept};
use tokio_util::sync::CancellationToken;

use super::{Failure, print, serve};
use crate::app::Roles;
use crate::cli::ConfigFile;
use crate::config::{Reader, database, retention};
use crate::metrics::Metrics;
use crate::stores;
use crate::sweeper::{Pass, Sweeper};

/// The arguments.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Sweep until nothing is left to do, say what was done, and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    file: ConfigFile,
}

impl Sweep {
    /// Sweeps.
    pub fn run(&self) -> Result<(), Failure> {
        if self.once {
            once(&self.file)
        } else {
            serve::serve(&self.file, Roles::SWEEP)
        }
    }
}

/// Needs nothing but `DATABASE_URL` and the times of retention.
fn once(file: &ConfigFile) -> Result<(), Failure> {
    let reader = Reader::of_process(file.config.as_deref())?;
    let (store, retention) = (database(&reader)?, retention(&reader)?);
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
    runtime.block_on(async {
        let opened = stores::open(&store, Limits::default()).map_err(Failure::usage)?;
        let opened =
            opened.ok_or_else(|| Failure::usage("DATABASE_URL = none: there is nothing to sweep"))?;
        let metrics = Metrics::new(std::iter::empty()).map_err(Failure::new)?;
        let sweeper = Sweeper::new(opened.upkeep, retention, Arc::new(metrics));
        let stop: CancellationToken = serve::shutdown().map_err(Failure::new)?;
        // It holds no secrets that could be read again, and goes on.
        serve::hangups(false, &Arc::default(), &stop).map_err(Failure::new)?;
        let pass = sweeper.run_once(&stop).await.map_err(Failure::new)?;
        opened.ledger.close().await;
        tell(pass)
    })
}

fn tell(pass: Pass) -> Result<(), Failure> {
    match pass {
        Pass::Elsewhere => print("another process is sweeping now; nothing was done\n"),
        Pass::Swept(Swept {
            pruned,
            deleted,
            more,
        }) => {
            print(&format!("{pruned} bodies emptied, {deleted} rows deleted\n"));
            if more {
                return Err(Failure::new(
                    "stopped before everything was swept; the next sweep goes on from there",
                ));
            }
        }
    }
    Ok(())
}
