//! One schedule: what happens next is drawn, until enough has happened; then nothing goes wrong any more, the provider
//! sends again until it is told 200, and all must come to a good end.

use std::time::Duration;

use hookgate_ledger::{DeliveryId, LedgerError, OnFailure, Settled};
use rand::RngExt as _;

use crate::Met;
use crate::delivery::{Delivery, Way};
use crate::worker::Worker;
use crate::world::{Broken, LEASE, Stores, World};

/// Things that happen before order returns.
const STEPS: u32 = 80;

/// Deliveries before order returns; a provider sends a few copies, and again what was not answered 200.
const DELIVERIES_MAX: usize = 6;

/// Rounds in which all must come to an end.
const ROUNDS_MAX: u32 = 40;

/// Short against a lease, and no part of one.
const A_WHILE: Duration = Duration::from_secs(70);

pub(crate) struct Schedule<'a> {
    seed: u64,
    stores: &'a Stores,
}

/// What is going on.
struct Scene<'a> {
    world: World<'a>,
    way: Way,
    deliveries: Vec<Delivery>,
    workers: Vec<Worker>,
    sent: usize,
    answered_200: bool,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(seed: u64, stores: &'a Stores) -> Self {
        Self { seed, stores }
    }

    pub(crate) async fn play(self) -> Result<Met, Broken> {
        let mut scene = Scene::new(World::new(self.seed, self.stores).await);
        for _ in 0..STEPS {
            scene.happen().await?;
            scene.world.check().await?;
        }
        scene.come_to_an_end().await?;
        Ok(scene.world.met)
    }
}

impl<'a> Scene<'a> {
    fn new(mut world: World<'a>) -> Self {
        let ways = [
            Way::Inbox,
            Way::Forward(OnFailure::ProviderRetries),
            Way::Forward(OnFailure::WorkerRetries(A_WHILE)),
        ];
        let way = ways[world.rng.random_range(0..ways.len())];
        if matches!(way, Way::Forward(OnFailure::WorkerRetries(_))) {
            // One that never sends again by itself.
            world.provider = "github";
        }
        world.tell(format!("{way:?}"));
        Self {
            world,
            way,
            deliveries: Vec::new(),
            workers: vec![Worker::new(1), Worker::new(2)],
            sent: 0,
            answered_200: false,
        }
    }

    /// One thing happens.
    async fn happen(&mut self) -> Result<(), Broken> {
        match self.world.rng.random_range(0..100) {
            0..10 if self.sent < DELIVERIES_MAX => self.send(),
            0..55 => self.step_of_a_delivery().await?,
            55..75 => self.step_of_a_worker().await?,
            75..81 => self.keep_alive().await,
            81..88 => self.world.pass(A_WHILE).await,
            88..91 => self.world.pass(LEASE + A_WHILE).await,
            91..94 => self.world.forget_claims(),
            94..96 => self.late_arrival().await?,
            96..98 => self.tell_again().await?,
            98 if self.world.chance(3) => self.promote().await,
            _ => self.crash(),
        }
        Ok(())
    }

    fn send(&mut self) {
        self.sent += 1;
        let delivery = Delivery::new(self.sent, self.way, &mut self.world);
        self.world.tell(format!("{} comes in", delivery.name));
        self.deliveries.push(delivery);
    }

    async fn step_of_a_delivery(&mut self) -> Result<(), Broken> {
        let Some(index) = self.any_delivery() else {
            return Ok(());
        };
        self.advance(index).await
    }

    async fn advance(&mut self, index: usize) -> Result<(), Broken> {
        if let Some(handled) = self.deliveries[index].step(&mut self.world).await? {
            let ended = self.deliveries.remove(index);
            self.answered_200 |= handled.is_promised() && ended.knows_the_present(&self.world);
        }
        Ok(())
    }

    async fn step_of_a_worker(&mut self) -> Result<(), Broken> {
        let index = self.world.rng.random_range(0..self.workers.len());
        self.workers[index].step(&mut self.world).await
    }

    async fn keep_alive(&mut self) {
        if let Some(index) = self.any_delivery() {
            self.deliveries[index].keep_alive(&mut self.world).await;
        }
        let index = self.world.rng.random_range(0..self.workers.len());
        self.workers[index].keep_alive(&mut self.world).await;
    }

    async fn late_arrival(&mut self) -> Result<(), Broken> {
        if self.world.late.is_empty() {
            return Ok(());
        }
        let index = self.world.rng.random_range(0..self.world.late.len());
        let late = self.world.late.remove(index);
        let before = self.world.row().await;
        late.call.await;
        self.world.met.late_arrivals += 1;
        self.world.tell("a delayed call arrives");
        let is_owned = |owner: DeliveryId| {
            before
                .as_ref()
                .is_some_and(|row| row.owner == format!("{:032x}", owner.0))
        };
        match late.owner {
            Some(owner) if !is_owned(owner) && self.world.row().await != before => {
                Err(self.world.broken("a call of a late owner changed the row"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A replica tells the ledger again what a target took.
    async fn tell_again(&mut self) -> Result<(), Broken> {
        if self.world.untold.is_empty() {
            return Ok(());
        }
        let (name, lease) = self.world.untold.remove(0);
        let before = self.world.row().await;
        let (ledger, of) = (self.world.ledger(), lease.clone());
        let way = self.world.way();
        let finish = async move { ledger.finish(&of).await };
        let told = way.send(finish, Some(lease.owner), &mut self.world.late).await;
        self.world.tell(format!(
            "{name} tells again that the target took it, {way:?}: {told:?}"
        ));
        let told = told.unwrap_or_else(|_| Err(LedgerError::Unavailable("no answer".to_owned())));
        self.world.settled_by(lease.owner, before, &told).await?;
        match told {
            Ok(settled) => self.world.met.told_later += u32::from(settled != Settled::Lost),
            Err(_) => self.world.untold.push((name, lease)),
        }
        Ok(())
    }

    /// What was answered before counts no more: a person has it all sent again.
    async fn promote(&mut self) {
        self.world.promote().await;
        self.answered_200 = false;
    }

    /// A process dies, and all that it had in hand with it.
    fn crash(&mut self) {
        self.world.met.crashes += 1;
        if let Some(index) = self.any_delivery()
            && self.world.chance(2)
        {
            let dead = self.deliveries.remove(index);
            self.world.untold.clear();
            self.world.tell(format!("the replica of {} dies", dead.name));
        } else {
            let index = self.world.rng.random_range(0..self.workers.len());
            self.world.tell(format!("{} dies", self.workers[index].name));
            self.workers[index] = Worker::new(self.workers.len() + index + 1);
        }
    }

    fn any_delivery(&mut self) -> Option<usize> {
        let number = self.deliveries.len();
        (number > 0).then(|| self.world.rng.random_range(0..number))
    }

    /// Order returns: what is under way ends, and one lease later nothing stands in the way of the event.
    async fn come_to_an_end(&mut self) -> Result<(), Broken> {
        self.world.tell("order returns");
        self.world.in_order = true;
        while !self.world.late.is_empty() {
            self.late_arrival().await?;
        }
        while !self.world.untold.is_empty() {
            self.tell_again().await?;
        }
        while !self.deliveries.is_empty() {
            self.advance(0).await?;
            self.world.check().await?;
        }
        self.let_workers_end().await?;
        self.world.pass(LEASE + A_WHILE).await;
        // They free what belongs to them; a copy waits for that as long as it may.
        self.workers[0].step(&mut self.world).await?;
        self.let_workers_end().await?;
        if !self.answered_200 {
            self.send();
            while !self.deliveries.is_empty() {
                self.advance(0).await?;
            }
            if !self.answered_200 {
                return Err(self
                    .world
                    .broken("one lease after all had ended, the event was not accepted"));
            }
        }
        self.wait_for_effect().await
    }

    async fn let_workers_end(&mut self) -> Result<(), Broken> {
        for worker in &mut self.workers {
            while !worker.is_idle() {
                worker.step(&mut self.world).await?;
            }
        }
        Ok(())
    }

    /// What was promised happens.
    async fn wait_for_effect(&mut self) -> Result<(), Broken> {
        for _ in 0..ROUNDS_MAX {
            let row = self.world.row().await;
            // A forward whose target took it, and whose ledger could never be told, is nobody's any more: it failed as
            // far as anybody knows, and is run again only if the provider sends it again.
            let ended = row
                .is_some_and(|row| row.state == "done" || (row.path == "forward" && row.state == "failed"));
            if ended && self.world.was_taken() {
                return self.world.check().await;
            }
            self.workers[0].step(&mut self.world).await?;
            self.world.check().await?;
            if self.workers[0].is_idle() {
                self.world.pass(A_WHILE * 2).await;
            }
        }
        Err(self
            .world
            .broken("an event that was answered 200 never took effect"))
    }
}
