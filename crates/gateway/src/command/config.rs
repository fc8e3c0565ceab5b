//! `hookgate config check|show`.

use std::path::PathBuf;

use clap::Args;

use super::verify::Verify;
use super::{Failure, print};
use crate::app::StartError;
use crate::cli::ConfigFile;
use crate::config::{self, Advice, Config, Reader, Weight};
use crate::stores;

/// What to check.
#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    file: ConfigFile,
    /// Look at the settings alone, and ask neither Redis nor the database
    #[arg(long)]
    offline: bool,
    /// Also prove a source against a saved request: head and body in one file
    #[arg(long, value_name = "FILE", requires = "source")]
    sample: Option<PathBuf>,
    /// The source that the saved request was sent to
    #[arg(long, value_name = "NAME", requires = "sample")]
    source: Option<String>,
    /// Judge the saved request at this time: unix seconds, RFC 3339, or an age such as 2h
    #[arg(long, value_name = "TIME", requires = "sample")]
    at: Option<String>,
}

impl Check {
    /// Exit 0 if the configuration is accepted, 64 if a start would refuse it; advice goes to standard output either
    /// way. A store that cannot be reached is a warning: a start would wait for it, too. A saved request that would not
    /// be accepted is exit 1.
    pub fn run(&self) -> Result<(), Failure> {
        let config = Config::from_process(self.file.config.as_deref(), false)?;
        let mut advice = config::advice(&config);
        if !self.offline {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let asked = runtime.map_err(Failure::new)?.block_on(stores::ask(&config));
            advice.extend(asked.map_err(StartError::from)?);
        }
        say(&config, &advice);
        match (&self.source, &self.sample) {
            (Some(source), Some(sample)) => {
                Verify::sample(source, sample, self.at.as_deref(), &self.file).run()
            }
            _ => Ok(()),
        }
    }
}

fn say(config: &Config, advice: &[Advice]) {
    for Advice { weight, sentence } in advice {
        print(&format!("{}: {sentence}\n", weight.as_str()));
    }
    let sources = config.sources.len();
    let of_weight = |weight| advice.iter().filter(|advice| advice.weight == weight).count();
    print(&format!(
        "the configuration is accepted: {sources} source(s), {} warning(s), {} note(s)\n",
        of_weight(Weight::Warning),
        of_weight(Weight::Note),
    ));
}

/// Every setting with its value and where it stands.
pub fn show(file: &ConfigFile) -> Result<(), Failure> {
    let reader = Reader::of_process(file.config.as_deref())?;
    let sources = Config::read(&reader, false).map(|config| config.sources);
    print(&config::show(&reader, sources.as_deref().unwrap_or_default()));
    sources.map(|_| ()).map_err(Failure::from)
}
