//! What all the actors of one schedule share: the stores, the clock, the dice and the story so far; and the promises
//! that are checked whenever something happened.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate_claim::{Claims, Epoch, Sight, Terms};
use hookgate_harness::{PATIENCE, PostgresServer};
use hookgate_ledger::{
    DeliveryId, Lease, Ledger, LedgerError, Limits, NewEvent, PostgresLedger, Settled, SqliteLedger,
};
use hookgate_webhook::{EventId, EventKey, Mode, SourceName};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use crate::Met;
use crate::claims::ClaimStore;
use crate::delivery::is_safe;
use crate::desk::{Desk, Row};
use crate::network::{Late, Way};
use crate::target::Call;

/// Of claims and rows alike.
pub(crate) const LEASE: Duration = Duration::from_secs(300);

/// Of every claim.
pub(crate) const TERMS: Terms = Terms {
    ttl: Duration::from_secs(604_800),
    lease: LEASE,
};

/// A pair of stores that schedules play on one after another, each with a source of its own.
pub(crate) struct Stores {
    ledger: Arc<dyn Ledger>,
    desk: Desk,
    redis: bool,
    _directory: Option<TempDir>,
}

/// One schedule's share of the world.
pub(crate) struct World<'a> {
    stores: &'a Stores,
    claims: ClaimStore,
    pub(crate) key: EventKey,
    pub(crate) rng: StdRng,
    /// Nothing goes wrong any more.
    pub(crate) in_order: bool,
    pub(crate) now: Duration,
    pub(crate) late: Vec<Late>,
    /// Runs that took effect, and whose ledger has to be told again, with the replica that remembers.
    pub(crate) untold: Vec<(String, Lease)>,
    /// As the provider's events are written down: it decides who runs a lost one next.
    pub(crate) provider: &'static str,
    pub(crate) met: Met,
    pub(crate) calls: Vec<Call>,
    /// Who has the right to call the target and does not know better yet, and until when.
    runs: Vec<(DeliveryId, Duration)>,
    story: Vec<String>,
}

/// A promise that was not kept.
pub(crate) type Broken = String;

impl Stores {
    pub(crate) async fn embedded() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hookgate.db");
        let ledger = SqliteLedger::open(&path, patient()).unwrap();
        ledger.migrate().await.unwrap();
        Self {
            ledger: Arc::new(ledger),
            desk: Desk::sqlite(path.to_str().unwrap()).await,
            redis: false,
            _directory: Some(directory),
        }
    }

    pub(crate) async fn shared() -> Self {
        let url = PostgresServer::shared().await.create_database().await;
        let ledger = PostgresLedger::connect(&url.clone().into(), patient()).unwrap();
        ledger.migrate().await.unwrap();
        Self {
            ledger: Arc::new(ledger),
            desk: Desk::postgres(&url).await,
            redis: true,
            _directory: None,
        }
    }
}

fn patient() -> Limits {
    Limits {
        append: PATIENCE,
        pool_wait: PATIENCE,
        lock: PATIENCE,
        statement: PATIENCE,
        ..Limits::default()
    }
}

impl<'a> World<'a> {
    pub(crate) async fn new(seed: u64, stores: &'a Stores) -> Self {
        let claims = match stores.redis {
            true => ClaimStore::redis().await,
            false => ClaimStore::memory(Epoch::default()),
        };
        let source = format!("s{seed:x}-{:x}", rand::random::<u64>());
        Self {
            stores,
            claims,
            key: EventKey {
                source: SourceName::parse(&source).unwrap(),
                id: EventId::parse("evt_1").unwrap(),
            },
            rng: StdRng::seed_from_u64(seed),
            in_order: false,
            now: Duration::ZERO,
            late: Vec::new(),
            untold: Vec::new(),
            provider: "stripe",
            met: Met::default(),
            calls: Vec::new(),
            runs: Vec::new(),
            story: Vec::new(),
        }
    }

    pub(crate) fn claims(&self) -> Arc<dyn Claims> {
        self.claims.claims()
    }

    pub(crate) fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.stores.ledger)
    }

    pub(crate) async fn row(&self) -> Option<Row> {
        self.stores.desk.row(&self.key).await
    }

    /// A delivery of the event as the ledger gets it.
    pub(crate) fn delivery(&mut self) -> NewEvent {
        NewEvent {
            key: self.key.clone(),
            provider: self.provider,
            account: None,
            mode: Mode::Live,
            event_type: None,
            object_id: None,
            provider_time: None,
            body_sha256: [7; 32],
            headers: Vec::new(),
            body: Bytes::from_static(b"{}"),
            delivery: DeliveryId(self.rng.random()),
            content_keys: Vec::new(),
        }
    }

    pub(crate) fn way(&mut self) -> Way {
        match self.in_order {
            true => Way::Through,
            false => Way::draw(&mut self.rng),
        }
    }

    pub(crate) fn chance(&mut self, one_in: u32) -> bool {
        self.rng.random_range(0..one_in) == 0
    }

    pub(crate) fn tell(&mut self, line: impl Display) {
        self.story.push(line.to_string());
    }

    pub(crate) fn forget_claims(&mut self) {
        self.tell("the claim store loses its keys");
        self.claims.forget(&self.key);
    }

    pub(crate) async fn pass(&mut self, time: Duration) {
        self.tell(format!("{} s pass", time.as_secs()));
        self.now += time;
        self.claims.pass(&self.key, time).await;
        self.stores.desk.pass(&self.key, time).await;
    }

    /// The event is called at the target.
    pub(crate) fn call(&mut self, who: &str) -> Call {
        let call = Call::draw(&mut self.rng, self.in_order);
        self.met.second_calls += u32::from(!self.calls.is_empty());
        self.calls.push(call);
        self.tell(format!("{who} calls the target: {call:?}"));
        call
    }

    pub(crate) fn was_taken(&self) -> bool {
        self.calls.iter().any(|call| call.took())
    }

    /// Somebody is told that the event is theirs to run, until the lease ends.
    pub(crate) fn run_begins(&mut self, who: &str, owner: DeliveryId) -> Result<(), Broken> {
        self.tell(format!("{who} runs the event as {:08x}", owner.0 >> 96));
        let now = self.now;
        self.runs.retain(|&(other, until)| other != owner && until > now);
        let others = self.runs.len();
        self.runs.push((owner, now + LEASE));
        match others {
            0 => Ok(()),
            _ => Err(self.broken("two runs of one event at one time, and no lease had ended")),
        }
    }

    pub(crate) fn run_renewed(&mut self, owner: DeliveryId) {
        let until = self.now + LEASE;
        for run in self.runs.iter_mut().filter(|run| run.0 == owner) {
            run.1 = until;
        }
    }

    /// The call is over, whatever came of it.
    pub(crate) fn run_ended(&mut self, owner: DeliveryId) {
        self.runs.retain(|run| run.0 != owner);
    }

    /// Somebody ended a run, or tried to. Whoever was not its owner any more must have changed nothing.
    pub(crate) async fn settled_by(
        &mut self,
        owner: DeliveryId,
        before: Option<Row>,
        settled: &Result<Settled, LedgerError>,
    ) -> Result<(), Broken> {
        let own = format!("{:032x}", owner.0);
        let is_late = before.as_ref().is_some_and(|row| row.owner != own);
        if is_late && self.row().await != before {
            return Err(self.broken("a late owner changed the row"));
        }
        if settled.is_ok() {
            self.met.late_owners += u32::from(is_late);
        }
        Ok(())
    }

    /// A standby takes the ledger's place that never had the row, and claims hear of the new history.
    pub(crate) async fn promote(&mut self) {
        self.tell("a standby is promoted that lacks the row");
        self.met.promotions += 1;
        self.stores.desk.lose(&self.key).await;
        self.runs.clear();
        let claims = self.claims();
        claims.set_epoch(Epoch {
            timeline: claims.epoch().timeline + 1,
            ..claims.epoch()
        });
    }

    /// A 200 was answered: the event took effect, or somebody will see it through. One by a done mark must be true of the
    /// present ledger.
    pub(crate) async fn was_promised(&mut self, by_mark: bool) -> Result<(), Broken> {
        let is_safe = self.row().await.is_some_and(|row| is_safe(&row.state, &row.path));
        match is_safe || (self.was_taken() && !by_mark) {
            true => Ok(()),
            false if by_mark => Err(self.broken("a done mark speaks of what the ledger does not have")),
            false => Err(self.broken("a 200 for an event that is neither finished nor durable")),
        }
    }

    /// A delivery failed and nothing was in its way: nothing of it may be in the way of the next one.
    pub(crate) async fn expects_to_run_at_once(&mut self) -> Result<(), Broken> {
        let is_run = self.row().await.is_some_and(|row| row.state == "running");
        let sight = self.claims().look(&self.key).await.unwrap();
        // What arrives late may claim once more, and then dies by its lease.
        match is_run || sight == Sight::Free || !self.late.is_empty() {
            true => Ok(()),
            false => Err(self.broken("a failed event cannot run at once")),
        }
    }

    /// What must hold after every step.
    pub(crate) async fn check(&mut self) -> Result<(), Broken> {
        match self.row().await {
            Some(row) if row.done > 1 => Err(self.broken("the event took effect twice at the ledger")),
            Some(row) if row.done == 1 && !self.was_taken() => {
                Err(self.broken("the ledger says done, and the target has never taken it"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A promise, and all that led to its end.
    pub(crate) fn broken(&self, promise: &str) -> Broken {
        format!("{promise}\n  {}", self.story.join("\n  "))
    }
}
