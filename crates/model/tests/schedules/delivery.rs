//! One delivery on its way through a replica: claim, handle, close, answer, one step at a time. What it makes of each
//! answer is decided by the very functions by which a receiver decides.

use hookgate_claim::{Epoch, Ownership, Trouble, Unavailable};
use hookgate_gateway::handler::{Closing, DecidedBy, Handled, Hold, Seen, Witness};
use hookgate_ledger::{
    Appended, Begun, DeliveryId, Lease, LedgerError, NewEvent, OnFailure, Queue, Settled, State,
};

use crate::target::Call;
use crate::world::{Broken, LEASE, TERMS, World};

/// How a source handles its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Inbox,
    /// And who runs a failed event next.
    Forward(OnFailure),
}

/// A delivery and how far it has come.
pub(crate) struct Delivery {
    pub(crate) name: String,
    way: Way,
    event: NewEvent,
    hold: Hold,
    stage: Stage,
    /// Read before anything was stored.
    epoch: Option<Epoch>,
    /// How many promotions it knew of when it decided.
    history: u32,
    /// Whether every answer came so far.
    undisturbed: bool,
}

/// What comes next.
enum Stage {
    Claim,
    Keep,
    Adopt,
    Begin { waited: bool },
    Wait { first: bool },
    Call(Lease),
    Conclude(Lease, Call),
    Close(Handled),
    Answer(Handled),
}

impl Delivery {
    pub(crate) fn new(number: usize, way: Way, world: &mut World<'_>) -> Self {
        let event = world.delivery();
        let name = format!("delivery {number} ({:08x})", event.delivery.0 >> 96);
        Self {
            name,
            way,
            event,
            hold: Hold::Unclaimed,
            stage: Stage::Claim,
            epoch: None,
            history: 0,
            undisturbed: true,
        }
    }

    /// Takes the next step; the answer, if that was the last one.
    pub(crate) async fn step(&mut self, world: &mut World<'_>) -> Result<Option<Handled>, Broken> {
        let stage = std::mem::replace(&mut self.stage, Stage::Claim);
        let is_decided = matches!(stage, Stage::Adopt | Stage::Close(_));
        self.stage = match stage {
            Stage::Claim => self.claim(world).await,
            Stage::Keep => self.keep(world).await,
            Stage::Adopt => self.adopt(world).await,
            Stage::Begin { waited } => self.begin(world, waited).await?,
            Stage::Wait { first } => self.wait(world, first).await,
            Stage::Call(lease) => {
                let call = world.call(&self.name);
                Stage::Conclude(lease, call)
            }
            Stage::Conclude(lease, call) => self.conclude(world, lease, call).await?,
            Stage::Close(handled) => self.close(world, handled).await?,
            Stage::Answer(handled) => return self.answer(world, handled).await.map(Some),
        };
        if !is_decided {
            self.history = world.met.promotions;
        }
        Ok(None)
    }

    /// Whether no standby was promoted since it decided.
    pub(crate) fn knows_the_present(&self, world: &World<'_>) -> bool {
        self.history == world.met.promotions
    }

    /// A call is under way: what keeps its claim and its row alive.
    pub(crate) async fn keep_alive(&mut self, world: &mut World<'_>) {
        let Stage::Conclude(lease, _) = &self.stage else {
            return;
        };
        let lease = lease.clone();
        if let Hold::Ours(claim) = &self.hold {
            let (claims, mut renewed) = (world.claims(), claim.clone());
            let renewal = async move { claims.renew(&mut renewed).await };
            if let Some(Ok(Ownership::Lost)) = self.send(world, "renews its claim", renewal).await {
                self.hold = Hold::Others;
            }
        }
        let (ledger, owner) = (world.ledger(), lease.owner);
        let beat = async move { ledger.heartbeat(&lease, LEASE).await };
        if let Some(Ok(Settled::Committed)) = self.send_as(Some(owner), world, "renews its lease", beat).await
        {
            world.run_renewed(owner);
        }
    }

    async fn claim(&mut self, world: &mut World<'_>) -> Stage {
        let (claims, key) = (world.claims(), world.key.clone());
        self.epoch.get_or_insert_with(|| claims.epoch());
        let way = world.way();
        let claimed = way
            .send(
                async move { claims.claim(&key, TERMS).await },
                None,
                &mut world.late,
            )
            .await;
        world.tell(format!("{} claims, {way:?}: {claimed:?}", self.name));
        let claimed = claimed.unwrap_or_else(|unheard| {
            self.undisturbed = false;
            world.met.fallbacks += 1;
            Err(Unavailable {
                trouble: Trouble::Store,
                cause: "no answer".to_owned(),
                possible: match unheard {
                    Some(Ok(hookgate_claim::Claim::First(lease))) => Some(Box::new(lease)),
                    _ => None,
                },
            })
        });
        match Hold::after(claimed) {
            Some(hold) => {
                let taken_over = matches!(&hold, Hold::Ours(lease) if lease.taken_over);
                world.met.taken_over += u32::from(taken_over);
                self.hold = hold;
            }
            None => return Stage::Answer(Handled::Duplicate(DecidedBy::Claim)),
        }
        match (self.way, &self.hold) {
            (Way::Inbox, _) => Stage::Keep,
            (Way::Forward(_), Hold::Others) => Stage::Wait { first: true },
            (Way::Forward(_), _) => Stage::Begin { waited: false },
        }
    }

    async fn keep(&mut self, world: &mut World<'_>) -> Stage {
        let (ledger, event) = (world.ledger(), self.event.clone());
        let append = async move { ledger.append(event, Queue::ForWorker).await };
        let appended = self.send(world, "appends", append).await.unwrap_or_else(lost);
        let handled = Handled::appended(&appended);
        match appended {
            Ok(Appended::Duplicate { state, .. }) if Handled::needs_adoption(state) => Stage::Adopt,
            Ok(_) | Err(_) => Stage::Close(handled),
        }
    }

    async fn adopt(&mut self, world: &mut World<'_>) -> Stage {
        let (ledger, key) = (world.ledger(), world.key.clone());
        let adopt = async move { ledger.adopt(&key).await };
        let adopted = self.send(world, "adopts", adopt).await.unwrap_or_else(lost);
        Stage::Close(Handled::adopted(&adopted))
    }

    async fn begin(&mut self, world: &mut World<'_>, waited: bool) -> Result<Stage, Broken> {
        let (ledger, event) = (world.ledger(), self.event.clone());
        let begin = async move { ledger.begin(&event, LEASE).await };
        let begun = self.send(world, "begins", begin).await.unwrap_or_else(lost);
        if let Ok(Begun::Run { lease, .. }) = begun {
            world.run_begins(&self.name, lease.owner)?;
            return Ok(Stage::Call(lease));
        }
        Ok(match Handled::not_begun(&begun, waited, true) {
            Some(handled) => Stage::Close(handled),
            None if waited => Stage::Close(Handled::InFlight),
            None => Stage::Wait { first: true },
        })
    }

    async fn wait(&mut self, world: &mut World<'_>, first: bool) -> Stage {
        let witness = Witness::of(&self.hold);
        match self.look(world, first, witness).await {
            Seen::Done(decided_by) => Stage::Close(Handled::Duplicate(decided_by)),
            Seen::Free if matches!(self.hold, Hold::Ours(_)) => Stage::Begin { waited: false },
            Seen::Free => Stage::Claim,
            Seen::InFlight if world.in_order || world.chance(3) => Stage::Begin { waited: true },
            Seen::InFlight => Stage::Wait { first: false },
        }
    }

    async fn look(&mut self, world: &mut World<'_>, first: bool, witness: Witness) -> Seen {
        if !first && witness == Witness::Claim {
            let (claims, key) = (world.claims(), world.key.clone());
            let look = async move { claims.look(&key).await };
            if let Some(Ok(sight)) = self.send(world, "looks at the claim", look).await {
                return Seen::by_claim(sight);
            }
        }
        let (ledger, key) = (world.ledger(), world.key.clone());
        let look = async move { ledger.entry(&key).await };
        let entry = self
            .send(world, "looks at the row", look)
            .await
            .unwrap_or_else(lost);
        match first {
            true => Seen::at_first(&entry),
            false => Seen::by_row(&entry),
        }
    }

    /// Tells the ledger what came of the call. One that took effect is remembered until the ledger hears.
    async fn conclude(&mut self, world: &mut World<'_>, lease: Lease, call: Call) -> Result<Stage, Broken> {
        let Way::Forward(next) = self.way else {
            unreachable!("an inbox calls nobody")
        };
        world.run_ended(lease.owner);
        let before = world.row().await;
        let (ledger, of) = (world.ledger(), lease.clone());
        let ended = async move {
            match call.succeeded() {
                true => ledger.finish(&of).await,
                false => ledger.release(&of, "as told", next).await,
            }
        };
        let settled = self
            .send_as(Some(lease.owner), world, "ends its run", ended)
            .await;
        let settled = settled.unwrap_or_else(lost);
        world.settled_by(lease.owner, before, &settled).await?;
        if settled.is_err() && call.succeeded() {
            world.untold.push((self.name.clone(), lease));
        }
        Ok(Stage::Close(match call.succeeded() {
            true => Handled::finished(&settled),
            false => Handled::released(&settled, next),
        }))
    }

    async fn close(&mut self, world: &mut World<'_>, handled: Handled) -> Result<Stage, Broken> {
        let hold = std::mem::replace(&mut self.hold, Hold::Unclaimed);
        let was_ours = matches!(hold, Hold::Ours(_));
        let (claims, key) = (world.claims(), world.key.clone());
        let before = claims.look(&key).await.unwrap();
        let lost = match Closing::of(handled, hold, true) {
            Closing::MarkDone => {
                let epoch = self.epoch.unwrap_or_default();
                let mark = async move { claims.mark_done(&key, TERMS.ttl, epoch).await };
                self.send(world, "marks the claim done", mark).await;
                false
            }
            Closing::Release(lease) => {
                let release = async move { claims.release(&lease).await };
                matches!(
                    self.send(world, "deletes its claim", release).await,
                    Some(Ok(Ownership::Lost))
                )
            }
            Closing::ReleasePossible(lease) => {
                let release = async move { claims.release(&lease).await };
                self.send(world, "deletes what may be its claim", release).await;
                false
            }
            Closing::Finish(_) | Closing::FinishPossible(_) => {
                unreachable!("with a ledger, marks say what it holds")
            }
            Closing::Nothing => false,
        };
        if lost && world.claims().look(&world.key).await.unwrap() != before {
            return Err(world.broken("a late owner changed its successor's claim"));
        }
        world.met.late_owners += u32::from(lost);
        if handled == Handled::Failed && was_ours && self.undisturbed && !lost {
            world.expects_to_run_at_once().await?;
        }
        Ok(Stage::Answer(handled))
    }

    async fn answer(&self, world: &mut World<'_>, handled: Handled) -> Result<Handled, Broken> {
        world.tell(format!("{} is answered: {handled:?}", self.name));
        match handled {
            Handled::Accepted | Handled::AcceptedUnrecorded => world.met.accepted += 1,
            Handled::Duplicate(DecidedBy::Claim) => world.met.duplicates_by_claim += 1,
            Handled::Duplicate(DecidedBy::Ledger) => world.met.duplicates_by_ledger += 1,
            Handled::Duplicate(DecidedBy::Content) => unreachable!("no event here has twins"),
            Handled::InFlight | Handled::Failed | Handled::Unavailable => {}
        }
        // What was true when it was decided may be lost with the ledger that held it.
        if handled.is_promised() && self.knows_the_present(world) {
            let by_mark = handled == Handled::Duplicate(DecidedBy::Claim);
            world.was_promised(by_mark).await?;
        }
        Ok(handled)
    }

    /// Sends a call to a store; `None`: there was no answer.
    async fn send<T: std::fmt::Debug + 'static>(
        &mut self,
        world: &mut World<'_>,
        what: &str,
        call: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        self.send_as(None, world, what, call).await
    }

    /// The same about a run.
    async fn send_as<T: std::fmt::Debug + 'static>(
        &mut self,
        owner: Option<DeliveryId>,
        world: &mut World<'_>,
        what: &str,
        call: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let way = world.way();
        let answer = way.send(call, owner, &mut world.late).await;
        world.tell(format!("{} {what}, {way:?}: {answer:?}", self.name));
        self.undisturbed &= answer.is_ok();
        answer.ok()
    }
}

fn lost<T>() -> Result<T, LedgerError> {
    Err(LedgerError::Unavailable("no answer".to_owned()))
}

/// Whether a row in this state is safe: somebody will see it through, or nobody needs to.
pub(crate) fn is_safe(state: &str, path: &str) -> bool {
    match State::parse(state) {
        Some(State::Running) => path == "inbox",
        Some(State::Failed) | None => false,
        Some(State::Queued | State::Done | State::Dead | State::Discarded | State::Parked | State::Twin) => {
            true
        }
    }
}
