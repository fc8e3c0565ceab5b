//! `hookgate events`.

use clap::{Args, Subcommand};
use hookgate_ledger::{Bulk, Change, State};
use hookgate_webhook::EventKey;

use super::super::Failure;
use super::change::ChangeArgs;
use super::filter::{self, FilterArgs, PageArgs};
use super::{Desk, look};

/// What to do with events.
#[derive(Debug, Subcommand)]
pub enum Events {
    /// List events, newest first
    List(List),
    /// Show one event with its attempts and what people did with it
    Show(One),
    /// Print the body of one event, byte for byte
    Body(One),
    /// Deliver finished events again, or twins after all, under new ids for their targets
    Replay(Replay),
}

/// Flags of a list.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    filter: FilterArgs,
    /// In this state; may be given several times
    #[arg(long = "state", value_name = "STATE", value_parser = filter::state, value_delimiter = ',')]
    states: Vec<State>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    desk: Desk,
}

/// One event.
#[derive(Debug, Args)]
pub struct One {
    /// The event: source:event_id
    #[arg(value_name = "EVENT", value_parser = filter::event)]
    event: EventKey,
    #[command(flatten)]
    desk: Desk,
}

/// Events that run again, or for the first time if they were kept as twins.
#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    paced: Paced,
    /// In this state, of done and twin; may be given several times. Of many, done ones are meant unless it is given
    #[arg(
        long = "state",
        value_name = "STATE",
        value_parser = filter::replayable,
        value_delimiter = ',',
        group = "which",
        conflicts_with_all = ["event", "all"]
    )]
    states: Vec<State>,
}

/// Events that run again, at a rate.
#[derive(Debug, Args)]
pub struct Paced {
    #[command(flatten)]
    change: ChangeArgs,
    /// Events a second that targets get, when there are many
    #[arg(long, value_name = "N", default_value_t = Bulk::RATE, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
}

impl Paced {
    pub(super) fn run(&self, change: Change) -> Result<(), Failure> {
        self.run_in(change, &[])
    }

    fn run_in(&self, change: Change, states: &[State]) -> Result<(), Failure> {
        self.change.run(change, states, Some(self.rate))
    }
}

impl One {
    pub(super) fn show(&self) -> Result<(), Failure> {
        look::show(&self.desk, &self.event)
    }
}

impl Events {
    /// Does it.
    ///
    /// # Errors
    /// [`Failure`] with the exit codes that the help names.
    pub fn run(&self) -> Result<(), Failure> {
        match self {
            Self::List(list) => look::list(&list.desk, &list.filter.filter(list.states.clone()), &list.page),
            Self::Show(one) => one.show(),
            Self::Body(one) => look::body(&one.desk, &one.event),
            Self::Replay(replay) => replay.paced.run_in(Change::Replay, &replay.states),
        }
    }
}
