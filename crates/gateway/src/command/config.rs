//! `hookgate config check|show`.

use super::{Failure, print};
use crate::cli::ConfigFile;
use crate::config::{self, Advice, Config, Reader, Weight};

/// Exit 0 if the configuration is accepted; advice goes to standard output either way.
pub fn check(file: &ConfigFile) -> Result<(), Failure> {
    let config = Config::from_process(file.config.as_deref(), false)?;
    let advice = config::advice(&config);
    for Advice { weight, sentence } in &advice {
        print(&format!("{}: {sentence}\n", weight.as_str()));
    }
    let sources = config.sources.len();
    let of_weight = |weight| advice.iter().filter(|advice| advice.weight == weight).count();
    print(&format!(
        "the configuration is accepted: {sources} source(s), {} warning(s), {} note(s)\n",
        of_weight(Weight::Warning),
        of_weight(Weight::Note),
    ));
    Ok(())
}

/// Every setting with its value and where it stands.
pub fn show(file: &ConfigFile) -> Result<(), Failure> {
    let reader = Reader::of_process(file.config.as_deref())?;
    let sources = Config::read(&reader, false).map(|config| config.sources);
    print(&config::show(&reader, sources.as_deref().unwrap_or_default()));
    sources.map(|_| ()).map_err(Failure::from)
}
