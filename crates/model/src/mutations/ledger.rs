//! Changed rules of the row.

use hookgate_ledger::rules::{self, Appended, Begun, Row, RunId};
use hookgate_ledger::{DeliveryId, OnFailure, Outcome, Path, Settled, State as RowState};

use super::mutation;
use crate::naive::Suspect;
use crate::protocol::Real;

/// Makes the row somebody's, whoever had it.
fn seize(row: &mut Row) {
    row.state = RowState::Failed;
    row.lease = None;
}

/// The same run, under the name of whoever has the row.
fn disguised(row: &Row, run: &RunId) -> RunId {
    RunId {
        owner: row.lease.map_or(run.owner, |lease| lease.owner),
        ..*run
    }
}

/// Of the ways in, and of leases.
pub(super) fn of_taking_in() -> Vec<Suspect> {
    vec![
        mutation!("ledger: append", "accepts every delivery", Inbox breaks OnceAtTheLedger, {
            fn append(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Appended {
                let _ = Real.append(row, delivery);
                Appended::Accepted
            }
        }),
        mutation!("ledger: append", "writes over the row", Inbox breaks OnceAtTheLedger, {
            fn append(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Appended {
                *row = None;
                Real.append(row, delivery)
            }
        }),
        mutation!("ledger: append", "accepts, but keeps nothing", Inbox breaks NoEmptyPromise, {
            fn append(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Appended {
                let appended = Real.append(row, delivery);
                *row = None;
                appended
            }
        }),
        mutation!("ledger: append", "keeps it as finished", Inbox breaks TakesEffect, {
            fn append(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Appended {
                rules::append(row, delivery, hookgate_ledger::Queue::Finished("no_consumer"), 0)
            }
        }),
        mutation!("ledger: begin", "takes a row whose lease has not ended", Forward breaks TakenOverOnlyWhenOver, {
            fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Begun {
                if let Some(row) = row && row.state == RowState::Running {
                    seize(row);
                }
                Real.begin(row, delivery)
            }
        }),
        mutation!("ledger: begin", "never takes a row whose owner let the lease end", Forward breaks StuckFrees, {
            fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Begun {
                match row {
                    Some(row) if row.state == RowState::Running && row.run().is_some_and(|run| run.owner != delivery) => Begun::Running,
                    _ => Real.begin(row, delivery),
                }
            }
        }),
        mutation!("ledger: begin", "takes a finished row", Forward breaks NoSecondEffectWithoutReason, {
            fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Begun {
                if let Some(row) = row && row.state == RowState::Done {
                    seize(row);
                }
                Real.begin(row, delivery)
            }
        }),
        mutation!("ledger: begin", "does not take a failed row", Forward breaks FailedRunsAtOnce, {
            fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Begun {
                match row {
                    Some(row) if row.state == RowState::Failed => Begun::Running,
                    _ => Real.begin(row, delivery),
                }
            }
        }),
        mutation!("ledger: begin", "does not know its own run", Forward breaks NeverItsOwnRival, {
            fn begin(&self, row: &mut Option<Row>, delivery: DeliveryId) -> Begun {
                let before = row.clone();
                match Real.begin(row, delivery) {
                    Begun::Run(_) if *row == before => Begun::Running,
                    other => other,
                }
            }
        }),
        mutation!("ledger: adopt", "changes nothing", Rolling breaks NoEmptyPromise, {
            fn adopt(&self, _: &mut Row) {}
        }),
        mutation!("ledger: adopt", "forgets the row that runs", Rolling breaks NoEmptyPromise, {
            fn adopt(&self, row: &mut Row) {
                if row.state == RowState::Failed {
                    Real.adopt(row);
                }
            }
        }),
        mutation!("ledger: fetch", "leases the row and leaves it in the queue", Inbox breaks TakenOverOnlyWhenOver, {
            fn fetch(&self, row: &mut Row, owner: DeliveryId) -> Option<RunId> {
                let run = Real.fetch(row, owner);
                row.state = RowState::Queued;
                run
            }
        }),
        mutation!("ledger: fetch", "finds nothing", Inbox breaks TakesEffect, {
            fn fetch(&self, _: &mut Row, _: DeliveryId) -> Option<RunId> {
                None
            }
        }),
        mutation!("ledger: heartbeat", "does not compare the owner", Inbox breaks LateOwnerChangesNothing, {
            fn heartbeat(&self, row: &mut Row, run: &RunId) -> Settled {
                Real.heartbeat(row, &disguised(row, run))
            }
        }),
        mutation!("ledger: heartbeat", "gives no new life", Inbox breaks NoSecondEffectWithoutReason, {
            fn heartbeat(&self, _: &mut Row, _: &RunId) -> Settled {
                Settled::Committed
            }
        }),
    ]
}

/// Of the ways out.
pub(super) fn of_ending() -> Vec<Suspect> {
    vec![
        mutation!("ledger: settle", "does not compare the owner", Inbox breaks LateOwnerChangesNothing, {
            fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
                Real.settle(row, &disguised(row, run), outcome)
            }
        }),
        mutation!("ledger: finish", "does not compare the owner", Forward breaks LateOwnerChangesNothing, {
            fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
                Real.settle(row, &disguised(row, run), outcome)
            }
        }),
        mutation!("ledger: settle", "says committed and writes nothing", Inbox breaks NoSecondEffectWithoutReason, {
            fn settle(&self, _: &mut Row, _: &RunId, _: &Outcome) -> Settled {
                Settled::Committed
            }
        }),
        mutation!("ledger: settle", "leaves a finished row to be run again", Inbox breaks NoSecondEffectWithoutReason, {
            fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
                let settled = Real.settle(row, run, outcome);
                if row.state == RowState::Done {
                    row.state = RowState::Queued;
                    row.due = Some(0);
                }
                settled
            }
        }),
        mutation!("ledger: settle", "buries what is to be tried again", Inbox breaks TakesEffect, {
            fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
                match outcome {
                    Outcome::Retry { error, .. } => Real.settle(row, run, &Outcome::Dead { error: error.clone() }),
                    other => Real.settle(row, run, other),
                }
            }
        }),
        mutation!("ledger: settle", "does not know its own repetition", Forward breaks NoFalseFailure, {
            fn finished(&self, finished: &Result<Settled, hookgate_ledger::LedgerError>) -> hookgate_gateway::handler::Handled {
                match finished {
                    Ok(Settled::Lost) => hookgate_gateway::handler::Handled::Failed,
                    other => Real.finished(other),
                }
            }
            fn settle(&self, row: &mut Row, run: &RunId, outcome: &Outcome) -> Settled {
                match Real.settle(row, run, outcome) {
                    Settled::Repeated { .. } => Settled::Lost,
                    other => other,
                }
            }
        }),
        mutation!("ledger: release", "does not compare the owner", Forward breaks LateOwnerChangesNothing, {
            fn release_row(&self, row: &mut Row, run: &RunId, next: OnFailure) -> Settled {
                Real.release_row(row, &disguised(row, run), next)
            }
        }),
        mutation!("ledger: release", "leaves the row running", Forward breaks FailedRunsAtOnce, {
            fn release_row(&self, _: &mut Row, _: &RunId, _: OnFailure) -> Settled {
                Settled::Committed
            }
        }),
        mutation!("ledger: release", "writes done for what failed", Forward breaks TakesEffect, {
            fn release_row(&self, row: &mut Row, run: &RunId, _: OnFailure) -> Settled {
                Real.settle(row, run, &Outcome::Done)
            }
        }),
        mutation!("ledger: release", "leaves a failed row to a provider that never tries again", ForwardSilent breaks NoEmptyPromise, {
            fn release_row(&self, row: &mut Row, run: &RunId, _: OnFailure) -> Settled {
                Real.release_row(row, run, OnFailure::ProviderRetries)
            }
        }),
        mutation!("ledger: release", "forgets that the row was adopted while it ran", Rolling breaks TakesEffect, {
            fn release_row(&self, row: &mut Row, run: &RunId, next: OnFailure) -> Settled {
                let settled = Real.release_row(row, run, next);
                if settled == Settled::Committed && next == OnFailure::ProviderRetries {
                    row.state = RowState::Failed;
                    row.path = Path::Forward;
                }
                settled
            }
        }),
        mutation!("ledger: rescue", "frees a row whose lease has not ended", Inbox breaks NoSecondEffectWithoutReason, {
            fn rescue(&self, row: &mut Row, provider_retries: bool) -> bool {
                let freed = rules::rescue(row, crate::bounds::TRIES_MAX, provider_retries, i64::MAX);
                if freed {
                    row.due = Some(0);
                }
                freed
            }
        }),
        mutation!("ledger: rescue", "frees nothing", Inbox breaks TakesEffect, {
            fn rescue(&self, _: &mut Row, _: bool) -> bool {
                false
            }
        }),
        mutation!("ledger: rescue", "leaves an inbox row to the provider", Inbox breaks TakesEffect, {
            fn rescue(&self, row: &mut Row, provider_retries: bool) -> bool {
                let freed = Real.rescue(row, provider_retries);
                if freed {
                    row.state = RowState::Failed;
                    row.due = None;
                }
                freed
            }
        }),
        mutation!("ledger: rescue", "queues a forward where nobody runs the queue", Forward breaks StuckFrees, {
            fn rescue(&self, row: &mut Row, _: bool) -> bool {
                Real.rescue(row, false)
            }
        }),
    ]
}
