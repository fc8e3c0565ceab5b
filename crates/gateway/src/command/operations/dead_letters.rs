//! `hookgate dead-letters`.

use clap::{Args, Subcommand};
use hookgate_ledger::{Change, State};

use super::super::Failure;
use super::change::ChangeArgs;
use super::events::{One, Paced};
use super::filter::{FilterArgs, PageArgs};
use super::{Desk, look};

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLetters {
    /// List dead letters, newest first
    List(List),
    /// Show one with its attempts and what people did with it
    Show(One),
    /// Run dead letters again, with all their tries
    Redrive(Paced),
    /// Give dead letters up for good
    Discard(Discard),
}

/// Flags of a list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    desk: Desk,
}

/// Events that will not run again.
#[derive(Debug, Args)]
pub struct Discard {
    #[command(flatten)]
    change: ChangeArgs,
}

impl DeadLetters {
    /// Does it.
    ///
    /// # Errors
    /// [`Failure`] with the exit codes that the help names.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::List(list) => look::list(&list.desk, &list.filter.filter(vec![State::Dead]), &list.page),
            Self::Show(one) => one.show(),
            Self::Redrive(paced) => paced.run(Change::Redrive),
            Self::Discard(discard) => discard.change.run(Change::Discard, &[], None),
        }
    }
}
