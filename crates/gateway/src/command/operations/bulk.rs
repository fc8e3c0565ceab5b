//! Changing many events, step by step from the oldest on. Each step is committed by itself, so a command that
//! was cut off can be given again and goes on where it stopped.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use hookgate_ledger::{Bulk, Change, LedgerError, Operations, State};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::super::Failure;
use super::change::{ChangeArgs, past};

/// What became of it, as a document.
#[derive(Debug, Serialize)]
struct Told {
    change: &'static str,
    dry_run: bool,
    events: u64,
}

/// Changes all events that are meant: in these states, or if none is named in the one that the change means.
pub(super) fn run(
    args: &ChangeArgs,
    change: Change,
    states: &[State],
    rate: Option<u32>,
) -> Result<(), Failure> {
    let spacing = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate);
    let bulk = Bulk {
        change,
        filter: args.filter.filter(states.to_vec()),
        after: None,
        limit: Bulk::most(args.dry_run),
        dry_run: args.dry_run,
        first_in: Duration::ZERO,
        spacing,
    };
    let events = args.desk.attend(async |ledger| {
        let bar = progress(&*ledger, &bulk, args).await?;
        let changed = all_steps(&*ledger, bulk, args, &bar).await;
        bar.finish_and_clear();
        changed
    })?;
    let told = Told {
        change: change.as_str(),
        dry_run: args.dry_run,
        events,
    };
    args.desk.show(&told, || line(&told, change))?;
    match events {
        0 => Err(Failure::nothing(format!(
            "no event is meant that could be {}",
            past(change)
        ))),
        _ => Ok(()),
    }
}

fn line(told: &Told, change: Change) -> String {
    let (events, past) = (told.events, past(change));
    let noun = if events == 1 { "event" } else { "events" };
    match told.dry_run {
        true => format!("{events} {noun} would be {past}\n"),
        false => format!("{events} {noun} {past}\n"),
    }
}

/// A bar for whoever watches. What it goes up to is counted beforehand.
async fn progress(ledger: &dyn Operations, bulk: &Bulk, args: &ChangeArgs) -> Result<ProgressBar, Failure> {
    if bulk.dry_run || !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let count = Bulk {
        dry_run: true,
        limit: Bulk::most(true),
        ..bulk.clone()
    };
    let total = all_steps(ledger, count, args, &ProgressBar::hidden()).await?;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} events, {eta} to go");
    Ok(ProgressBar::new(total).with_style(style.map_err(Failure::new)?))
}

/// Repeats steps to the end, and counts. The time that the steps take is taken off the time that later events
/// have to wait, so that the rate holds from the first to the last.
async fn all_steps(
    ledger: &dyn Operations,
    mut bulk: Bulk,
    args: &ChangeArgs,
    bar: &ProgressBar,
) -> Result<u64, Failure> {
    let begun = Instant::now();
    let mut events = 0;
    loop {
        let place = bulk.spacing * u32::try_from(events).unwrap_or(u32::MAX);
        bulk.first_in = place.saturating_sub(begun.elapsed());
        let step = ledger
            .change_many(&bulk, &args.reason())
            .await
            .map_err(|error| after(events, error))?;
        events += step.events;
        bar.inc(step.events);
        bulk.after = step.next;
        if bulk.after.is_none() {
            return Ok(events);
        }
    }
}

/// A failure in the middle says what is done already.
fn after(events: u64, error: LedgerError) -> Failure {
    let mut failure = Failure::from(error);
    if events > 0 {
        failure.sentence = format!(
            "{}; {events} events are changed already, the same command goes on with the rest",
            failure.sentence
        );
    }
    failure
}
