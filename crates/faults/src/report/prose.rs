//! The sentences of the page.

use crate::oracle::Reason;
use crate::totals::Total;

pub(super) const HEAD: &str = "\
# Faults

What becomes of events when the things that hookgate stands on break: for whoever has to decide whether to trust it.
Every figure below was counted in real runs of real processes, by a program that looks at hookgate from outside
(`crates/faults`). This page is written by that program: do not edit it, run `cargo xtask faults --report docs/faults.md`.";

pub(super) fn run(total: &Total) -> String {
    format!(
        "\
## What was run

{} runs. In each of them a provider sends signed events at a steady rate through a balancer to three replicas, sends again,
with growing pauses, whatever was not answered 200, and sends one event in ten to two replicas at the same moment. A fault
strikes at a moment and a victim drawn from the run's seed, lasts longer than a lease, and is lifted. Killed processes are
started again about a second later, as an orchestrator would. Then everything has to come to rest by itself, and copies of
what is done are sent to the replicas once more.

After each run an oracle compares four independent accounts: what the provider heard, what the target's journal holds, what
the rows in Postgres say, and what the surviving replicas counted. Among other things it demands

- for each event answered 200 one row, that it is done, and a call that the target answered 2xx (else *lost*);
- at most one run of an event that is done, and at most one \"accepted\" (else *doubled*);
- no 200 that came before the row was committed (`inbox`) or the target had taken the event (`forward`);
- for each call after the first a reason that can be seen: what the target answered, or what was done to the very process
  that had called. What happened to another process, or to Redis, is never a reason;
- no two calls of one event at one time, unless the first one's process was stopped or cut off beyond its lease;
- counters that agree with the answers; liveness and readiness that are never denied; no panic, secret or body in any log;
  exit code 0 after SIGTERM;
- that the fault really struck.

Its own tests show it a run for each thing that can be wrong.",
        total.runs
    )
}

pub(super) const READING: &str = "\
## Each fault

A SIGKILL at an exact step needs no hook in hookgate: proxies between the processes and the stores hold one command, before
the server sees it or before its reply is passed on, and the process is killed while it is held. *max* is the slowest
answer of all runs; times include everything between the provider's first byte and the end of the answer, connection
included.";

pub(super) const SECOND_CALLS: &str = "\
## Second calls

With a ledger a target is called again for these reasons and no others:";

pub(super) fn of_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Refused => {
            "the target had answered something else than 2xx (it does so by chance, in every run)"
        }
        Reason::Killed => {
            "the process that had called was killed before the outcome was written down; after its lease somebody else called"
        }
        Reason::Stopped => {
            "the process that had called was stopped for longer than its lease; meanwhile somebody else called"
        }
        Reason::BrokenOff => "the process that had called was told to end, and broke the call off",
        Reason::LedgerAway => {
            "the target had been called, and the ledger could not be told how that ended before the lease was over"
        }
        Reason::TimedOut => "the target gave no answer within the handler timeout",
        Reason::Busy => "the machine was too busy to write the outcome down within a lease of one second",
    }
}

pub(super) const PROMISES: &str = "\
## What is promised, and what is not

| | |
|---|---|
| promised | an `inbox` event that was answered 200 is one committed row, and its target is called until it answers 2xx or the tries are used up |
| promised | a `forward` event that was answered 200 was taken by the target, or its row says so |
| promised | Redis may hang, die, lie, forget or refuse, for one replica or for all: nothing is lost, nothing is called twice for that, and answers stay below a second |
| promised | without the ledger nothing is promised to the provider: events are answered 503 within the ledger limit, and the provider sends them again |
| promised | a replica's clock judges no lease. One that is wrong refuses signatures that look too old, with 400; another replica takes them when the provider sends again |
| not promised | that a target is called once. Between its 2xx and the note of it a process can die: compare `Idempotency-Key`, or fence by `Hookgate-Attempt` |
| not promised | answers from a process that is stopped or killed: the provider's next try reaches another one |
| not tried here | SQLite, a Redis Sentinel or Cluster, a failover of Postgres to a standby, data lost by the disk itself, `forward` without a ledger: other tests cover the first three |";

pub(super) const REPEATING: &str = "\
## Repeating it

    cargo xtask faults                                      # everything; a release build, and a quarter of an hour
    cargo xtask faults --short                              # every fault once; also a part of `cargo xtask test`
    cargo xtask faults --fault redis-paused                 # one fault with all its seeds
    cargo xtask faults --fault redis-paused --seed 7        # one run
    cargo xtask faults --fault redis-paused+worker-paused --seed 3
    cargo xtask faults --report docs/faults.md              # everything, and this page

Each run prints its fault, its seed, its figures and its verdict; one that fails also prints the command that repeats it
and where the logs of its processes are. A seed decides what is sent, who is struck, when and for how long. What the
operating system makes of it differs from time to time, which is why there are many seeds. For the faults of the clock
`faketime` has to be installed (`cargo xtask setup` does that).";
