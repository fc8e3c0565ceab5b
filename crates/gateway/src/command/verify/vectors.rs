//! `hookgate verify --jsonl`: verdicts for recorded deliveries, one a line.

use std::io::BufRead as _;
use std::path::Path;

use hookgate_webhook::vectors;

use super::super::{Failure, print};
use super::read;

/// Judges every line, and fails if a verdict differs from what its line expects.
pub(super) fn judge(path: &Path) -> Result<(), Failure> {
    let text = read(path)?;
    let mut differing = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = |problem: &dyn std::fmt::Display| {
            Failure::new(format!("{} line {}: {problem}", path.display(), number + 1))
        };
        let line = line.map_err(|error| at(&error))?;
        if line.trim().is_empty() {
            continue;
        }
        let verdict = vectors::judge(&line).map_err(|bad| at(&bad))?;
        let json = serde_json::to_string(&verdict).map_err(|error| at(&error))?;
        print(&format!("{json}\n"));
        if !verdict.as_expected {
            differing.push(format!("line {} ({})", number + 1, verdict.name));
        }
    }
    if differing.is_empty() {
        Ok(())
    } else {
        let (count, lines) = (differing.len(), differing.join(", "));
        Err(Failure::new(format!(
            "{count} verdict(s) differ from what their line expects: {lines}"
        )))
    }
}
