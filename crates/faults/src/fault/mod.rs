//! The faults: what each is called, what it may cost, and how often it is tried. How each is done stands beside, by
//! whom it strikes.

mod card;
mod clock;
mod ledger;
mod redis;
mod replica;
mod strike;
mod worker;

use std::time::Duration;

use crate::settings::LEDGER_LIMIT;
use card::card;

pub(crate) use clock::library as clock_library;
pub(crate) use strike::Strike;

/// Everything that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    None,
    ReplicaKilledBeforeClaim,
    ReplicaKilledAfterClaim,
    ReplicaKilledInHandler,
    ReplicaKilledAfterCommit,
    ReplicaPaused,
    ReplicaClockAhead,
    ReplicaClockBehind,
    RollingRestart,
    WorkerKilledAsking,
    WorkerKilledLeased,
    WorkerKilledInCall,
    WorkerKilledBeforeSettling,
    WorkerKilledAfterSettling,
    WorkerPaused,
    RedisPaused,
    RedisFlushed,
    RedisRestartedEmpty,
    RedisOutOfMemory,
    RedisEvicting,
    RedisReadOnly,
    RedisLoading,
    RedisNoAuth,
    RedisWrongAcl,
    RedisSlow,
    RedisHalfOpen,
    ClaimReplyLost,
    ReplicaCutOffFromRedis,
    LedgerRestarted,
    LedgerDown,
    LedgerPaused,
    LedgerRowLock,
    LedgerDiskFull,
    LedgerHalfOpen,
    CommitReplyLost,
    ReplicaCutOffFromLedger,
    BothDown,
}

/// Whom a fault strikes. Two faults of one run strike two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Victim {
    Nobody,
    Replica,
    Worker,
    Redis,
    Ledger,
    BothStores,
}

impl Victim {
    /// The title of its part of the report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Nobody => "Nothing",
            Self::Replica => "Replicas",
            Self::Worker => "Workers",
            Self::Redis => "Redis",
            Self::Ledger => "The ledger",
            Self::BothStores => "Both stores",
        }
    }
}

impl Fault {
    /// All of them, in the order of the report.
    pub(crate) const ALL: [Self; 37] = [
        Self::None,
        Self::ReplicaKilledBeforeClaim,
        Self::ReplicaKilledAfterClaim,
        Self::ReplicaKilledInHandler,
        Self::ReplicaKilledAfterCommit,
        Self::ReplicaPaused,
        Self::ReplicaClockAhead,
        Self::ReplicaClockBehind,
        Self::RollingRestart,
        Self::WorkerKilledAsking,
        Self::WorkerKilledLeased,
        Self::WorkerKilledInCall,
        Self::WorkerKilledBeforeSettling,
        Self::WorkerKilledAfterSettling,
        Self::WorkerPaused,
        Self::RedisPaused,
        Self::RedisFlushed,
        Self::RedisRestartedEmpty,
        Self::RedisOutOfMemory,
        Self::RedisEvicting,
        Self::RedisReadOnly,
        Self::RedisLoading,
        Self::RedisNoAuth,
        Self::RedisWrongAcl,
        Self::RedisSlow,
        Self::RedisHalfOpen,
        Self::ClaimReplyLost,
        Self::ReplicaCutOffFromRedis,
        Self::LedgerRestarted,
        Self::LedgerDown,
        Self::LedgerPaused,
        Self::LedgerRowLock,
        Self::LedgerDiskFull,
        Self::LedgerHalfOpen,
        Self::CommitReplyLost,
        Self::ReplicaCutOffFromLedger,
        Self::BothDown,
    ];

    /// As the command line and the report call it.
    pub(crate) fn name(self) -> &'static str {
        card(self).name
    }

    /// Whom it strikes.
    pub(crate) fn victim(self) -> Victim {
        card(self).victim
    }

    /// How often a full run tries it.
    pub(crate) fn seeds(self) -> u64 {
        card(self).seeds
    }

    /// What it is.
    pub(crate) fn description(self) -> &'static str {
        card(self).description
    }

    /// By its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// What 99 of 100 answers may take under it.
    pub(crate) fn p99_max(self) -> Duration {
        match self.victim() {
            Victim::Ledger | Victim::BothStores => LEDGER_LIMIT + Duration::from_millis(200),
            Victim::Nobody | Victim::Replica | Victim::Worker | Victim::Redis => Duration::from_secs(1),
        }
    }

    /// Whether every replica must have met a Redis that could not answer, and decided without it.
    pub(crate) fn must_fall_back(self) -> bool {
        use Fault as F;
        matches!(
            self,
            F::RedisPaused
                | F::RedisOutOfMemory
                | F::RedisReadOnly
                | F::RedisLoading
                | F::RedisNoAuth
                | F::RedisWrongAcl
                | F::ReplicaCutOffFromRedis
                | F::BothDown
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own_and_is_found_by_it() {
        let names: HashSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        for fault in Fault::ALL {
            assert_eq!(Fault::named(fault.name()), Some(fault));
        }
        assert_eq!(Fault::named("no-such-fault"), None);
    }
}
