//! The card of each fault: its name, its victim, how often a full run tries it, and what it is, in the words of the
//! report.

use super::{Fault, Victim};

/// What is known of a fault.
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) victim: Victim,
    /// Seeds of a full run.
    pub(super) seeds: u64,
    pub(super) description: &'static str,
}

/// Seeds of what the order of things decides.
const MANY: u64 = 20;

/// Seeds of the rest.
const FEW: u64 = 5;

pub(super) fn card(fault: Fault) -> Card {
    use Fault as F;
    use Victim as V;
    match fault {
        F::None => of("none", V::Nobody, FEW, "nothing goes wrong"),
        F::ReplicaKilledBeforeClaim => of(
            "replica-killed-before-claim",
            V::Replica,
            MANY,
            "SIGKILL while its `SET … NX` is on the way",
        ),
        F::ReplicaKilledAfterClaim => of(
            "replica-killed-after-claim",
            V::Replica,
            MANY,
            "SIGKILL when Redis has executed the `SET … NX` and before the replica knows",
        ),
        F::ReplicaKilledInHandler => of(
            "replica-killed-in-handler",
            V::Replica,
            MANY,
            "SIGKILL while the append is on the way (inbox), or while the target works (forward)",
        ),
        F::ReplicaKilledAfterCommit => of(
            "replica-killed-after-commit",
            V::Replica,
            MANY,
            "SIGKILL after the commit of append or finish, before the answer",
        ),
        F::ReplicaPaused => of(
            "replica-paused",
            V::Replica,
            MANY,
            "SIGSTOP, for longer than the lease, then SIGCONT",
        ),
        F::ReplicaClockAhead => of(
            "replica-clock-ahead",
            V::Replica,
            FEW,
            "one replica's clock is 10 minutes ahead",
        ),
        F::ReplicaClockBehind => of(
            "replica-clock-behind",
            V::Replica,
            FEW,
            "one replica's clock is 10 minutes behind",
        ),
        F::RollingRestart => of(
            "rolling-restart",
            V::Replica,
            FEW,
            "every replica and worker is replaced in turn under load (SIGTERM)",
        ),
        F::WorkerKilledAsking => of(
            "worker-killed-asking",
            V::Worker,
            MANY,
            "SIGKILL while it asks for events",
        ),
        F::WorkerKilledLeased => of(
            "worker-killed-leased",
            V::Worker,
            MANY,
            "SIGKILL when the ledger has leased it an event and before it knows",
        ),
        F::WorkerKilledInCall => of(
            "worker-killed-in-call",
            V::Worker,
            MANY,
            "SIGKILL while the target works",
        ),
        F::WorkerKilledBeforeSettling => of(
            "worker-killed-before-settling",
            V::Worker,
            MANY,
            "SIGKILL between the target's 200 and the settlement",
        ),
        F::WorkerKilledAfterSettling => of(
            "worker-killed-after-settling",
            V::Worker,
            MANY,
            "SIGKILL when the settlement is executed and before the worker knows",
        ),
        F::WorkerPaused => of(
            "worker-paused",
            V::Worker,
            MANY,
            "SIGSTOP, for longer than the lease, then SIGCONT",
        ),
        F::RedisPaused => of(
            "redis-paused",
            V::Redis,
            MANY,
            "SIGSTOP, then SIGCONT: it hangs, and executes late what has piled up",
        ),
        F::RedisFlushed => of(
            "redis-flushed",
            V::Redis,
            MANY,
            "FLUSHALL, several times under load",
        ),
        F::RedisRestartedEmpty => of(
            "redis-restarted-empty",
            V::Redis,
            FEW,
            "SIGKILL, and started again without its data",
        ),
        F::RedisOutOfMemory => of(
            "redis-out-of-memory",
            V::Redis,
            FEW,
            "maxmemory reached under `noeviction`: every write is an OOM error",
        ),
        F::RedisEvicting => of(
            "redis-evicting",
            V::Redis,
            FEW,
            "maxmemory reached under `allkeys-random`: claims vanish",
        ),
        F::RedisReadOnly => of("redis-read-only", V::Redis, FEW, "demoted to a replica: READONLY"),
        F::RedisLoading => of(
            "redis-loading",
            V::Redis,
            FEW,
            "every command is answered LOADING",
        ),
        F::RedisNoAuth => of(
            "redis-no-auth",
            V::Redis,
            FEW,
            "a password is set and connections are closed: NOAUTH",
        ),
        F::RedisWrongAcl => of(
            "redis-wrong-acl",
            V::Redis,
            FEW,
            "the user may not write nor run scripts any more: NOPERM",
        ),
        F::RedisSlow => of(
            "redis-slow",
            V::Redis,
            FEW,
            "replies take 50 ms to 5 s, drawn anew all the time",
        ),
        F::RedisHalfOpen => of(
            "redis-half-open",
            V::Redis,
            FEW,
            "open connections carry nothing any more, new ones work",
        ),
        F::ClaimReplyLost => of(
            "claim-reply-lost",
            V::Redis,
            MANY,
            "`SET … NX` is executed and its reply lost, by a reset or by silence, again and again",
        ),
        F::ReplicaCutOffFromRedis => of(
            "replica-cut-off-from-redis",
            V::Redis,
            MANY,
            "one replica cannot reach Redis, the others can",
        ),
        F::LedgerRestarted => of(
            "ledger-restarted",
            V::Ledger,
            FEW,
            "all of Postgres is killed and started at once",
        ),
        F::LedgerDown => of(
            "ledger-down",
            V::Ledger,
            FEW,
            "all of Postgres is killed, and stays away for seconds",
        ),
        F::LedgerPaused => of(
            "ledger-paused",
            V::Ledger,
            MANY,
            "SIGSTOP to all of Postgres, then SIGCONT: it hangs",
        ),
        F::LedgerRowLock => of(
            "ledger-row-lock",
            V::Ledger,
            FEW,
            "another session locks rows and holds keys of events to come, for seconds",
        ),
        F::LedgerDiskFull => of(
            "ledger-disk-full",
            V::Ledger,
            FEW,
            "every write is refused with Postgres's error 53100, raised inside the server by a trigger",
        ),
        F::LedgerHalfOpen => of(
            "ledger-half-open",
            V::Ledger,
            FEW,
            "open connections carry nothing any more, new ones work",
        ),
        F::CommitReplyLost => of(
            "commit-reply-lost",
            V::Ledger,
            MANY,
            "an append or a finish is committed and its reply lost, by a reset or by silence",
        ),
        F::ReplicaCutOffFromLedger => of(
            "replica-cut-off-from-ledger",
            V::Ledger,
            MANY,
            "one replica cannot reach Postgres, the others can",
        ),
        F::BothDown => of(
            "both-down",
            V::BothStores,
            FEW,
            "Redis and all of Postgres are killed, and stay away for seconds",
        ),
    }
}

fn of(name: &'static str, victim: Victim, seeds: u64, description: &'static str) -> Card {
    Card {
        name,
        victim,
        seeds,
        description,
    }
}
