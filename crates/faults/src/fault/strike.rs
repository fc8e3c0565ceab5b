//! A fault on its way: what it may touch, and the arms that all of them share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use hookgate_harness::{Answer, Fault as Wire, Gate, Trapped};
use tokio::time::{sleep, timeout};

use super::{Fault, clock, ledger, redis, replica, worker};
use crate::draw::Draw;
use crate::evidence::{Harm, Key, Source};
use crate::provider::Provider;
use crate::scene::{Place, Scene};

/// How long a trap waits for its bait. Another fault of the same run, or a busy machine, may keep it away.
const TRAP_PATIENCE: Duration = Duration::from_millis(1_500);

/// How many baits are thrown.
const BAITS_MAX: u32 = 5;

/// What a fault has at hand.
pub(crate) struct Strike {
    /// Where it strikes.
    pub(crate) scene: Arc<Scene>,
    /// Who sends its baits.
    pub(crate) provider: Arc<Provider>,
    /// What chance decides.
    pub(crate) draw: Draw,
}

impl Strike {
    /// Strikes, holds for its time, and lifts.
    pub(crate) async fn run(mut self, fault: Fault) {
        use Fault as F;
        match fault {
            F::None => {
                let time = self.outage();
                self.last(time).await;
            }
            F::ReplicaKilledBeforeClaim => replica::killed_before_claim(&mut self).await,
            F::ReplicaKilledAfterClaim => replica::killed_after_claim(&mut self).await,
            F::ReplicaKilledInHandler => replica::killed_in_handler(&mut self).await,
            F::ReplicaKilledAfterCommit => replica::killed_after_commit(&mut self).await,
            F::ReplicaPaused => replica::paused(&mut self).await,
            F::RollingRestart => replica::rolling_restart(&mut self).await,
            F::ReplicaClockAhead => clock::off(&mut self, 600).await,
            F::ReplicaClockBehind => clock::off(&mut self, -600).await,
            F::WorkerKilledAsking => worker::killed_asking(&mut self).await,
            F::WorkerKilledLeased => worker::killed_leased(&mut self).await,
            F::WorkerKilledInCall => worker::killed_in_call(&mut self).await,
            F::WorkerKilledBeforeSettling => worker::killed_before_settling(&mut self).await,
            F::WorkerKilledAfterSettling => worker::killed_after_settling(&mut self).await,
            F::WorkerPaused => worker::paused(&mut self).await,
            F::RedisPaused => redis::paused(&mut self).await,
            F::RedisFlushed => redis::flushed(&mut self).await,
            F::RedisRestartedEmpty => redis::restarted_empty(&mut self).await,
            F::RedisOutOfMemory => redis::out_of_memory(&mut self).await,
            F::RedisEvicting => redis::evicting(&mut self).await,
            F::RedisReadOnly => redis::read_only(&mut self).await,
            F::RedisLoading => redis::loading(&mut self).await,
            F::RedisNoAuth => redis::no_auth(&mut self).await,
            F::RedisWrongAcl => redis::wrong_acl(&mut self).await,
            F::RedisSlow => redis::slow(&mut self).await,
            F::RedisHalfOpen => redis::half_open(&mut self).await,
            F::ClaimReplyLost => redis::claim_reply_lost(&mut self).await,
            F::ReplicaCutOffFromRedis => redis::cut_off(&mut self).await,
            F::LedgerRestarted => ledger::restarted(&mut self).await,
            F::LedgerDown => ledger::down(&mut self).await,
            F::LedgerPaused => ledger::paused(&mut self).await,
            F::LedgerRowLock => ledger::row_lock(&mut self).await,
            F::LedgerDiskFull => ledger::disk_full(&mut self).await,
            F::LedgerHalfOpen => ledger::half_open(&mut self).await,
            F::CommitReplyLost => ledger::commit_reply_lost(&mut self).await,
            F::ReplicaCutOffFromLedger => ledger::cut_off(&mut self).await,
            F::BothDown => {
                let time = self.ledger_outage();
                tokio::join!(redis::gone_for(&self, time), ledger::gone_for(&self, time));
            }
        }
    }

    /// One replica, by its number.
    pub(super) fn replica(&mut self) -> usize {
        self.draw.below(self.scene.replicas().len())
    }

    /// How a network is away.
    pub(super) fn silence_or_refusal(&mut self) -> Wire {
        match self.draw.percent(50) {
            true => Wire::Blackhole,
            false => Wire::Refuse,
        }
    }

    /// How long Redis is away: longer than the lease.
    pub(super) fn outage(&mut self) -> Duration {
        self.draw.ms(1_300..2_500)
    }

    /// How long the ledger is away: longer than an append is tried for, so that it cannot be ridden out.
    pub(super) fn ledger_outage(&mut self) -> Duration {
        self.draw.ms(2_300..3_300)
    }

    /// Lets a time pass in which the fault lasts.
    pub(super) async fn last(&self, time: Duration) {
        sleep(time).await;
    }

    /// Throws one bait after the other to a replica until a trap holds one. The traps, and which of them; without any
    /// if none ever did, since another fault kept them all away.
    pub(super) async fn catch(
        &mut self,
        sources: &[Source],
        place: usize,
        set: impl Fn(&Key) -> Vec<Trapped>,
    ) -> (Vec<Trapped>, usize) {
        for _ in 0..BAITS_MAX {
            let bait = self.provider.bait(self.draw.one_of(sources));
            let traps = set(&bait);
            self.provider.throw(&bait, place);
            let any = select_all(traps.iter().map(|trap| Box::pin(trap.struck())));
            let sprung = timeout(TRAP_PATIENCE, any).await.map(|(_, which, _)| which);
            if let Ok(which) = sprung {
                return (traps, which);
            }
        }
        self.scene.miss("nothing was caught");
        (Vec::new(), 0)
    }

    /// Holds every request at the target, and waits until a bait is there. The place that called; the gate lets
    /// them all go on.
    async fn catch_at_target(&self, source: Source, place: usize) -> (Option<usize>, Gate) {
        let gate = Gate::closed();
        self.scene.target.answer(Answer::Gate(gate.clone(), 200));
        let bait = self.provider.bait(source);
        self.provider.throw(&bait, place);
        let id = bait.to_string();
        let called = async {
            loop {
                let requests = self.scene.target.requests_for(&id);
                if let Some(request) = requests.last() {
                    break request.path.trim_start_matches('/').to_owned();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let caller = timeout(BAITS_MAX * TRAP_PATIENCE, called).await.ok();
        let mut places = self.scene.places.iter();
        let caller = places.position(|place| caller.as_ref() == Some(&place.present().name));
        if caller.is_none() {
            self.scene.miss("nothing came to the target");
        }
        (caller, gate)
    }

    /// Kills a process while the target works for it.
    pub(super) async fn kill_at_target(&mut self, source: Source, place: usize) {
        let scene = Arc::clone(&self.scene);
        let (caller, gate) = self.catch_at_target(source, place).await;
        let caller = caller.map(|number| &scene.places[number]);
        if let Some(caller) = caller {
            scene.kill(caller).await;
        }
        scene.restore_target();
        gate.open();
        if let Some(caller) = caller {
            self.kill_and_replace(caller).await;
        }
    }

    /// Kills whoever is in a place and, soon after, starts another one there, as an orchestrator would.
    pub(super) async fn kill_and_replace(&mut self, place: &Place) {
        self.scene.kill(place).await;
        let pause = self.draw.ms(200..1_200);
        self.last(pause).await;
        self.scene.start(place).await;
    }

    /// Stops a process for longer than its leases last.
    pub(super) async fn pause(&mut self, place: &Place) {
        let (running, time) = (place.present(), self.draw.ms(1_300..2_600));
        let from = self.scene.now();
        running.process.signal("STOP");
        self.last(time).await;
        running.process.signal("CONT");
        self.scene.note(Harm::Stopped, Some(&running.name), from);
    }
}
