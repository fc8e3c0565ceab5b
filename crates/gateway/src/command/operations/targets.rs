//! `hookgate targets`.

use clap::{Args, Subcommand};
use hookgate_ledger::TargetRecord;
use serde::Serialize;

use super::super::Failure;
use super::change::Signed;
use super::{Desk, safe};
use crate::view::TargetView;

/// What to do with targets.
#[derive(Debug, Subcommand)]
pub enum Targets {
    /// List the targets that workers deliver to, with pauses and outages
    List(List),
    /// Deliver nothing to a target until it is resumed; its events wait
    Pause(One),
    /// Deliver to a target again
    Resume(One),
}

/// Flags of a list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    desk: Desk,
}

/// One target.
#[derive(Debug, Args)]
pub struct One {
    /// Its name
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    signed: Signed,
    #[command(flatten)]
    desk: Desk,
}

/// The list as a document.
#[derive(Debug, Serialize)]
struct TargetList {
    targets: Vec<TargetView>,
}

/// What became of a pause, as a document.
#[derive(Debug, Serialize)]
struct Told<'a> {
    name: &'a str,
    paused: bool,
    /// Whether it was otherwise before.
    changed: bool,
}

impl Targets {
    /// Does it.
    ///
    /// # Errors
    /// [`Failure`] with the exit codes that the help names.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(),
            Self::Pause(one) => one.set(true),
            Self::Resume(one) => one.set(false),
        }
    }
}

impl List {
    fn run(&self) -> Result<(), Failure> {
        let targets = self.desk.attend(async |ledger| Ok(ledger.targets().await?))?;
        let targets = targets.into_iter().map(TargetView::from).collect();
        let list = TargetList { targets };
        self.desk.show(&list, || table(&list.targets))
    }
}

fn table(targets: &[TargetView]) -> String {
    let row = |target: &TargetView| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        [
            target.name.clone(),
            text(&target.paused_at),
            text(&target.paused_by),
            safe::short(target.paused_why.as_deref()),
            text(&target.down_since),
        ]
    };
    safe::table(
        ["TARGET", "PAUSED SINCE", "BY", "WHY", "DOWN SINCE"],
        targets.iter().map(row),
    )
}

impl One {
    fn set(&self, paused: bool) -> Result<(), Failure> {
        let (name, reason) = (&self.name, self.signed.reason());
        let changed = self.desk.attend(async |ledger| {
            let known = ledger.targets().await?;
            if !known.iter().any(|target| target.name == *name) {
                return Err(unknown(name, &known));
            }
            Ok(match paused {
                true => ledger.pause(name, &reason).await?,
                false => ledger.resume(name, &reason).await?,
            })
        })?;
        let state = if paused { "paused" } else { "resumed" };
        let shown = safe::text(name);
        self.desk.show(
            &Told {
                name,
                paused,
                changed,
            },
            || match changed {
                true => format!("{shown} is {state}\n"),
                false => String::new(),
            },
        )?;
        match (changed, paused) {
            (true, _) => Ok(()),
            (false, true) => Err(Failure::refused(format!("{shown} was paused already"))),
            (false, false) => Err(Failure::refused(format!("{shown} was not paused"))),
        }
    }
}

/// To pause a name that nobody delivers to would hold back nothing.
fn unknown(name: &str, known: &[TargetRecord]) -> Failure {
    let names: Vec<_> = known.iter().map(|target| safe::text(&target.name)).collect();
    Failure::nothing(format!(
        "no worker has named a target {}; there are: {}",
        safe::text(name),
        if names.is_empty() {
            "none yet".to_owned()
        } else {
            names.join(", ")
        }
    ))
}

fn name(text: &str) -> Result<String, String> {
    const BYTES_MAX: usize = 255;
    let fits = (1..=BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned())
        .ok_or_else(|| format!("expected 1 to {BYTES_MAX} bytes without control characters"))
}
