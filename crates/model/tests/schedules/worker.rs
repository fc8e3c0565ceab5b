//! A worker: it frees what others left, leases the event when it is due, calls the target and settles, one step at a
//! time.

use std::time::Duration;

use hookgate_ledger::{Effects, Fetch, Lane, Lease, LedgerError, Outcome, Settled, Ticket, TriesMax};

use crate::target::Call;
use crate::world::{Broken, LEASE, World};

/// Before the next try.
const PAUSE: Duration = Duration::from_secs(100);

/// A worker and how far it has come with the event, if it has it.
pub(crate) struct Worker {
    pub(crate) name: String,
    run: Option<(Lease, Option<Call>)>,
}

impl Worker {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            name: format!("worker {number}"),
            run: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.run.is_none()
    }

    /// Takes the next step.
    pub(crate) async fn step(&mut self, world: &mut World<'_>) -> Result<(), Broken> {
        match self.run.take() {
            None => self.seek(world).await,
            Some((lease, None)) => {
                let call = world.call(&self.name);
                self.run = Some((lease, Some(call)));
                Ok(())
            }
            Some((lease, Some(call))) => self.settle(world, lease, call).await,
        }
    }

    /// A call is under way: what keeps its row alive.
    pub(crate) async fn keep_alive(&mut self, world: &mut World<'_>) {
        let Some((lease, Some(_))) = &self.run else { return };
        let (ledger, lease) = (world.ledger(), lease.clone());
        let owner = lease.owner;
        let beat = async move { ledger.heartbeat(&lease, LEASE).await };
        if let Ok(Ok(Settled::Committed)) = world.way().send(beat, Some(owner), &mut world.late).await {
            world.tell(format!("{} renews its lease", self.name));
            world.run_renewed(owner);
        }
    }

    async fn seek(&mut self, world: &mut World<'_>) -> Result<(), Broken> {
        let (ledger, source) = (world.ledger(), world.key.source.clone());
        let tries = TriesMax {
            by_source: Vec::new(),
            otherwise: u32::MAX,
        };
        let freed = ledger.rescue(&tries).await.unwrap();
        let want = Fetch {
            lanes: vec![Lane {
                source,
                room: 1,
                pool: 0,
                pool_room: 1,
            }],
            limit: 1,
            bytes_max: 1 << 20,
            lease: LEASE,
            ticket: Ticket::draw(),
        };
        let way = world.way();
        let jobs = way
            .send(async move { ledger.fetch(want).await }, None, &mut world.late)
            .await;
        world.tell(format!(
            "{} frees {}, and looks, {way:?}: {jobs:?}",
            self.name, freed.freed
        ));
        if let Ok(Ok(mut jobs)) = jobs
            && let Some(job) = jobs.pop()
        {
            world.run_begins(&self.name, job.lease.owner)?;
            self.run = Some((job.lease, None));
        }
        Ok(())
    }

    async fn settle(&mut self, world: &mut World<'_>, lease: Lease, call: Call) -> Result<(), Broken> {
        let outcome = match call.succeeded() {
            true => Outcome::Done,
            false => Outcome::Retry {
                after: PAUSE,
                error: "as told".to_owned(),
            },
        };
        world.run_ended(lease.owner);
        let before = world.row().await;
        let (ledger, of) = (world.ledger(), lease.clone());
        let settle = async move { ledger.settle(&of, outcome, Effects::default()).await };
        let way = world.way();
        let settled = way.send(settle, Some(lease.owner), &mut world.late).await;
        world.tell(format!("{} settles, {way:?}: {settled:?}", self.name));
        let settled = settled.unwrap_or_else(|_| Err(LedgerError::Unavailable("no answer".to_owned())));
        world.settled_by(lease.owner, before, &settled).await?;
        // Tells it again: a settlement is repeated while the process lives.
        if settled.is_err() {
            self.run = Some((lease, Some(call)));
        }
        Ok(())
    }
}
