//! How much of the world a check looks at: which mode, how many replicas, deliveries and faults; and how time passes
//! there.

use std::fmt;
use std::time::Duration;

use hookgate_claim::Terms;
use hookgate_ledger::OnFailure;

/// Deliveries that a state has room for.
pub const DELIVERIES_MAX: usize = 5;

/// Milliseconds of one tick.
pub const TICK_MS: i64 = 1_000;

/// A lease of claim and row. It ends between the first and the second tick, so that the two stores, of which one
/// counts a lease as over at its last moment and one just after it, need no tick to tell them apart.
pub const LEASE_MS: i64 = 1_500;

/// Ticks after which every lease that nobody renewed is over.
pub const LEASE_TICKS: u32 = 2;

/// Tries of an event before it is a dead letter. More than there are faults, so that no event dies of them.
pub const TRIES_MAX: u32 = 5;

/// How long claims live: longer than their lease, and short enough for a done mark to end within a check.
pub const TERMS: Terms = Terms {
    ttl: Duration::from_secs(3),
    lease: Duration::from_millis(1_500),
};

/// How the event is handled, and by which stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Kept in the ledger, delivered by workers.
    Inbox,
    /// Posted before the answer, fenced by the ledger.
    Forward,
    /// The same for a provider that never tries again: workers run what failed.
    ForwardSilent,
    /// Posted before the answer, with Redis alone.
    ForwardAlone,
    /// A rolling change of the source from forward to inbox: the first replica has still the old configuration.
    Rolling,
}

/// What a source's replica does with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// Appends it.
    Inbox,
    /// Posts it.
    Forward,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Inbox,
        Self::Forward,
        Self::ForwardSilent,
        Self::ForwardAlone,
        Self::Rolling,
    ];

    /// As said on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Forward => "forward",
            Self::ForwardSilent => "forward-silent",
            Self::ForwardAlone => "forward-alone",
            Self::Rolling => "rolling",
        }
    }

    /// Whether there is a ledger.
    pub fn has_ledger(self) -> bool {
        self != Self::ForwardAlone
    }

    /// Whether workers may find events to run.
    pub fn has_workers(self) -> bool {
        match self {
            Self::Inbox | Self::ForwardSilent | Self::Rolling => true,
            Self::Forward | Self::ForwardAlone => false,
        }
    }

    /// What this replica does.
    pub fn handling(self, replica: usize) -> Handling {
        match self {
            Self::Inbox => Handling::Inbox,
            Self::Rolling if replica > 0 => Handling::Inbox,
            Self::Forward | Self::ForwardSilent | Self::ForwardAlone | Self::Rolling => Handling::Forward,
        }
    }

    /// Who runs an event next whose forward failed.
    pub fn on_failure(self) -> OnFailure {
        match self {
            Self::ForwardSilent => OnFailure::WorkerRetries(Duration::ZERO),
            Self::Inbox | Self::Forward | Self::ForwardAlone | Self::Rolling => OnFailure::ProviderRetries,
        }
    }

    /// Whether Redis may lose what it holds. Without a ledger the promise ends there, so it may not.
    pub fn may_lose_keys(self) -> bool {
        self.has_ledger()
    }
}

/// The bounds of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Which stores and handling.
    pub mode: Mode,
    /// Processes behind the balancer.
    pub replicas: usize,
    /// How often the provider sends the event.
    pub deliveries: usize,
    /// How many faults of any class may happen.
    pub faults: u8,
}

impl Bounds {
    /// What the tests check: two replicas, three deliveries, two faults.
    pub fn of(mode: Mode) -> Self {
        Self {
            mode,
            replicas: 2,
            deliveries: 3,
            faults: 2,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            mode,
            replicas,
            deliveries,
            faults,
        } = self;
        let mode = mode.name();
        write!(
            f,
            "{mode}: {replicas} replicas, {deliveries} deliveries, {faults} faults"
        )
    }
}
