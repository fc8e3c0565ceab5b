//! `hookgate stats`.

use clap::Args;
use hookgate_ledger::UnixMicros;
use hookgate_webhook::SourceName;
use serde::Serialize;

use super::super::Failure;
use super::{Desk, filter, safe};
use crate::clock;
use crate::view::{MinuteView, moment};

/// Counts per minute and source, summed over replicas.
#[derive(Debug, Args)]
pub struct Stats {
    /// From then on: RFC 3339, or an age such as 2h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = filter::when)]
    since: UnixMicros,
    /// Until then: RFC 3339, or an age; by default until now
    #[arg(long, value_name = "TIME", value_parser = filter::when)]
    until: Option<UnixMicros>,
    /// Of this source only
    #[arg(long, value_name = "NAME", value_parser = filter::source)]
    source: Option<SourceName>,
    #[command(flatten)]
    desk: Desk,
}

/// The counts as a document.
#[derive(Debug, Serialize)]
struct StatsView {
    since: String,
    until: String,
    minutes: Vec<MinuteView>,
}

impl Stats {
    /// Prints the counts, oldest minute first.
    ///
    /// # Errors
    /// [`Failure`] with the exit codes that the help names.
    pub fn run(&self) -> Result<(), Failure> {
        let until = self.until.unwrap_or_else(clock::unix_micros);
        let source = self.source.as_ref();
        let minutes = self
            .desk
            .attend(async |ledger| Ok(ledger.stats(self.since, until, source).await?))?;
        let view = StatsView {
            since: moment::show(self.since),
            until: moment::show(until),
            minutes: minutes.into_iter().map(MinuteView::from).collect(),
        };
        self.desk.show(&view, || table(&view.minutes))?;
        match view.minutes.is_empty() {
            true => Err(Failure::nothing("nothing was counted in that time")),
            false => Ok(()),
        }
    }
}

/// One row for each name that was counted.
fn table(minutes: &[MinuteView]) -> String {
    let rows = minutes.iter().flat_map(|minute| {
        let row = |(name, count): (&String, &u64)| {
            [
                minute.minute.clone(),
                minute.source.clone(),
                name.clone(),
                count.to_string(),
            ]
        };
        minute.counts.iter().map(row)
    });
    safe::table(["MINUTE", "SOURCE", "COUNTED", "COUNT"], rows)
}
