//! `hookgate config check|show`.

use clap::Args;

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
}

impl Check {
    /// Exit 0 if the configuration is accepted, 64 if a start would refuse it; advice goes to standard output either
    /// way. A store that cannot be reached is a warning: a start would wait for it, too.
    pub fn run(&self) -> Result<(), Failure> {
        let config = Config::from_process(self.file.config.as_deref(), false)?;
        let mut advice = config::advice(&config);
        if !self.offline {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let asked = runtime.map_err(Failure::new)?.block_on(stores::ask(&config));
            advice.extend(asked.map_err(StartError::from)?);
        }
        say(&config, &advice);
        Ok(())
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
