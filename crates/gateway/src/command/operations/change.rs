//! Changing one event or many: the flags, and the one event.

use clap::Args;
use hookgate_ledger::{Change, Changed, EventSummary, Reason, State};
use hookgate_webhook::EventKey;
use serde::Serialize;

use super::super::Failure;
use super::filter::{self, FilterArgs};
use super::look::missing;
use super::{Desk, bulk, safe};

/// One event by name, or many by filters, but never all of them by mistake.
#[derive(Debug, Args)]
#[command(group(
    clap::ArgGroup::new("which").required(true).multiple(true).args(["event", "all"]).args(filter::FILTERS)
))]
pub(super) struct ChangeArgs {
    /// Just this one: source:event_id
    #[arg(value_name = "EVENT", value_parser = filter::event, conflicts_with_all = filter::FILTERS)]
    event: Option<EventKey>,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    /// All that are dead, or for a replay done
    #[arg(long, conflicts_with = "event", conflicts_with_all = filter::FILTERS)]
    all: bool,
    #[command(flatten)]
    signed: Signed,
    /// Change nothing; say what would be changed
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) desk: Desk,
}

/// Who asks, and why: both are written down.
#[derive(Debug, Args)]
pub(super) struct Signed {
    /// Why; kept in the audit log
    #[arg(long, value_name = "TEXT", value_parser = filter::why)]
    why: String,
    /// Who; kept in the audit log as cli:WHO
    #[arg(
        long,
        value_name = "NAME",
        env = "USER",
        default_value = filter::UNKNOWN,
        value_parser = filter::who,
        hide_env_values = true
    )]
    who: String,
}

impl Signed {
    pub(super) fn reason(&self) -> Reason {
        Reason {
            actor: format!("cli:{}", self.who),
            why: self.why.clone(),
        }
    }
}

impl ChangeArgs {
    /// Changes the one, or the many in these states; the many become due at this rate.
    pub(super) fn run(&self, change: Change, states: &[State], rate: Option<u32>) -> Result<(), Failure> {
        match &self.event {
            Some(key) => self.change_one(key, change),
            None => bulk::run(self, change, states, rate),
        }
    }

    pub(super) fn reason(&self) -> Reason {
        self.signed.reason()
    }

    fn change_one(&self, key: &EventKey, change: Change) -> Result<(), Failure> {
        let changed = self.desk.attend(async |ledger| {
            // The generation that this person has seen: if another one replays it meanwhile, once is enough.
            let Some(seen) = ledger.event(key).await? else {
                return Ok(Changed::NotFound);
            };
            if self.dry_run {
                return Ok(would_be(change, &seen.summary));
            }
            let generation = Some(seen.summary.generation);
            Ok(ledger.change(key, change, generation, &self.reason()).await?)
        })?;
        let told = Told::new(key, change, &changed, self.dry_run);
        self.desk.show(&told, || told.line())?;
        told.verdict(key, change, &changed)
    }
}

/// What a change would find now.
fn would_be(change: Change, event: &EventSummary) -> Changed {
    if !change.starts_from().contains(&event.state) {
        Changed::WrongState(event.state)
    } else if event.pruned_at.is_some() && change != Change::Discard {
        Changed::Pruned
    } else {
        let replayed = u32::from(change == Change::Replay);
        Changed::Done {
            generation: event.generation + replayed,
        }
    }
}

/// A change in the past tense.
pub(super) fn past(change: Change) -> &'static str {
    match change {
        Change::Replay => "replayed",
        Change::Redrive => "redriven",
        Change::Discard => "discarded",
    }
}

/// What became of it, as a document.
#[derive(Debug, Serialize)]
struct Told {
    source: String,
    event_id: String,
    change: &'static str,
    dry_run: bool,
    /// `done`, `not_found`, `wrong_state`, `pruned` or `other_generation`.
    outcome: &'static str,
    generation: Option<u32>,
    state: Option<&'static str>,
}

impl Told {
    fn new(key: &EventKey, change: Change, changed: &Changed, dry_run: bool) -> Self {
        let (outcome, generation, state) = match changed {
            Changed::Done { generation } => ("done", Some(*generation), None),
            Changed::NotFound => ("not_found", None, None),
            Changed::WrongState(state) => ("wrong_state", None, Some(state.as_str())),
            Changed::Pruned => ("pruned", None, None),
            Changed::OtherGeneration(generation) => ("other_generation", Some(*generation), None),
        };
        Self {
            source: key.source.to_string(),
            event_id: key.id.as_str().to_owned(),
            change: change.as_str(),
            dry_run,
            outcome,
            generation,
            state,
        }
    }

    fn line(&self) -> String {
        let name = safe::text(&format!("{}:{}", self.source, self.event_id));
        match (self.outcome, self.dry_run) {
            ("done", false) => format!("{name}: {} is done\n", self.change),
            ("done", true) => format!("{name}: {} would be done\n", self.change),
            _ => String::new(),
        }
    }

    fn verdict(&self, key: &EventKey, change: Change, changed: &Changed) -> Result<(), Failure> {
        let name = safe::text(&key.to_string());
        let past = past(change);
        Err(Failure::refused(match changed {
            Changed::Done { .. } => return Ok(()),
            Changed::NotFound => return Err(missing(key)),
            Changed::WrongState(state) => {
                let needed = change.starts_from_in_words();
                format!("{name} is {state}: only what is {needed} can be {past}")
            }
            Changed::Pruned => format!("{name} was pruned: without its body it cannot be {past}"),
            Changed::OtherGeneration(generation) => {
                format!("{name} has generation {generation} by now: somebody was faster")
            }
        }))
    }
}
