//! What a run leaves behind, as plain data: what the provider sent and heard, what the target was asked, what the rows
//! say, what the replicas counted, and what was done to whom. The oracle judges this and nothing else, so that its own
//! tests can show it a run that never happened.
//!
//! Moments are times since the run began, by the one monotonic clock of the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::fault::Fault;

/// The two endpoints of a run: each fault meets both ways of handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// Kept, and delivered by workers. A Stripe endpoint, so its signatures carry a time.
    Inbox,
    /// Posted to the target before the answer, with a ledger. A Shopify endpoint.
    Forward,
}

impl Source {
    /// As the gateway is configured.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Inbox => "stripe",
            Self::Forward => "shopify",
        }
    }

    /// By its configured name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Inbox, Self::Forward]
            .into_iter()
            .find(|source| source.name() == name)
    }
}

/// An event's identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Where it is sent.
    pub(crate) source: Source,
    /// The provider's id.
    pub(crate) id: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source.name(), self.id)
    }
}

/// One delivery of an event to one process.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    /// Which event.
    pub(crate) key: Key,
    /// The process that it went to.
    pub(crate) process: String,
    /// When it left.
    pub(crate) at: Duration,
    /// When its answer was there, or given up.
    pub(crate) until: Duration,
    /// What came back.
    pub(crate) reply: Reply,
}

/// What a provider hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// An answer; `duplicate` as its body says, on 200.
    Answer {
        /// HTTP status.
        status: u16,
        /// The field of a 200.
        duplicate: Option<bool>,
        /// When it came, in unix microseconds by the machine's clock.
        unix_us: i64,
    },
    /// Nobody listened: the gateway never heard of it.
    Refused,
    /// The connection broke, or the answer did not come in time.
    Nothing,
}

impl Reply {
    /// Its status, if there is one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            Self::Refused | Self::Nothing => None,
        }
    }
}

/// One request at the target.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Which event.
    pub(crate) key: Key,
    /// The fence that the ledger gave it.
    pub(crate) attempt: u32,
    /// The process that called: each has a path of its own.
    pub(crate) caller: String,
    /// When the target had it.
    pub(crate) began: Duration,
    /// When the target answered or lost the caller.
    pub(crate) ended: Option<Duration>,
    /// What the target answered, if it did.
    pub(crate) answered: Option<u16>,
}

impl Call {
    /// Whether the target took the event.
    pub(crate) fn took_effect(&self) -> bool {
        self.answered.is_some_and(|status| (200..300).contains(&status))
    }

    /// Whether both were in the target's hands at one time.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let is_before = |one: &Self, two: &Self| one.ended.is_some_and(|ended| ended <= two.began);
        !is_before(self, other) && !is_before(other, self)
    }
}

/// An event's row after the run.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// `done`, one hopes.
    pub(crate) state: String,
    /// Runs so far.
    pub(crate) attempts: u32,
    /// Replays by people: none here.
    pub(crate) generation: u32,
    /// When it was written, in unix microseconds by the machine's clock.
    pub(crate) received_us: i64,
}

/// A run of an event that came to an end.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// `done`, `retry`, `failed`, `lost`, …
    pub(crate) outcome: String,
    /// Why.
    pub(crate) error: String,
}

/// What a surviving replica has counted.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    /// Which.
    pub(crate) process: String,
    /// Its metrics page.
    pub(crate) series: BTreeMap<String, f64>,
}

impl Counters {
    /// A series with its labels in alphabetical order; 0 if it is not there.
    pub(crate) fn of(&self, series: &str) -> f64 {
        self.series.get(series).copied().unwrap_or_default()
    }
}

/// What was done to a process, or to what it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// SIGKILL.
    Killed,
    /// SIGSTOP, until SIGCONT.
    Stopped,
    /// SIGTERM.
    Terminated,
    /// It could not reach the ledger, or the ledger could not act.
    LedgerAway,
    /// It could not reach Redis, or Redis could not act.
    RedisAway,
}

/// One thing that the suite did, and to whom.
#[derive(Clone, Debug)]
pub(crate) struct Disturbance {
    /// What.
    pub(crate) harm: Harm,
    /// To whom; `None` is everybody.
    pub(crate) process: Option<String>,
    /// From when on.
    pub(crate) from: Duration,
    /// Until when.
    pub(crate) until: Duration,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// What was to happen.
    pub(crate) faults: Vec<Fault>,
    /// Faults that did not get to happen.
    pub(crate) missed: Vec<String>,
    /// What happened.
    pub(crate) disturbances: Vec<Disturbance>,
    /// Every event that the provider has.
    pub(crate) events: Vec<Key>,
    /// Every delivery, in the order they ended.
    pub(crate) sends: Vec<Send>,
    /// Copies sent after everything had come to rest.
    pub(crate) echoes: Vec<Send>,
    /// Every request at the target.
    pub(crate) calls: Vec<Call>,
    /// How many of them there were when the copies were sent.
    pub(crate) calls_before_echoes: usize,
    /// Rows by event.
    pub(crate) rows: BTreeMap<Key, Row>,
    /// Runs by event and number.
    pub(crate) attempts: BTreeMap<(Key, u32), Attempt>,
    /// Of replicas that lived to the end.
    pub(crate) counters: Vec<Counters>,
    /// What the logs must not hold, and probes must not say: one finding a line.
    pub(crate) findings: Vec<String>,
    /// What had not come to rest when patience ended.
    pub(crate) unfinished: Vec<String>,
    /// Which process said in its log of which event that the ledger did not take its note in time.
    pub(crate) unsettled: BTreeSet<(String, Key)>,
    /// Whether the machine may be too busy to keep a lease of a second, so that what logs say is an excuse.
    pub(crate) tolerant: bool,
}

impl Evidence {
    /// Whether a call's process says that it could not settle it, on a machine that may be too busy.
    pub(crate) fn was_too_busy(&self, call: &Call) -> bool {
        self.tolerant && self.unsettled.contains(&(call.caller.clone(), call.key.clone()))
    }

    /// Whether this process suffered this harm at some time between these two.
    pub(crate) fn suffered(&self, process: &str, harm: Harm, from: Duration, until: Duration) -> bool {
        let meets = |disturbance: &Disturbance| {
            disturbance.harm == harm
                && disturbance.process.as_deref().is_none_or(|name| name == process)
                && disturbance.from <= until
                && from <= disturbance.until
        };
        self.disturbances.iter().any(meets)
    }
}
