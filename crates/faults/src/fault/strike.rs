//! A fault on its way: what it may touch, and the arms that all of them share.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hookgate_harness::{Answer, Fault as Wire, Gate, Trapped};
use tokio::time::{sleep, timeout};

use super::{Fault, clock, ledger, redis, replica, worker};
use crate::draw::Draw;
use crate::evidence::{Harm, Key, Source};
use crate::provider::Provider;
use crate::scene::{Place, Scene};

/// How long a trap waits for its prey. Another fault of the same run may keep it away.
const TRAP_PATIENCE: Duration = Duration::from_secs(3);

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
                let time = self.outage();
                tokio::join!(redis::gone_for(&self, time), ledger::gone_for(&self, time));
            }
        }
    }

    /// One replica, by its number.
    pub(super) fn replica(&mut self) -> usize {
        self.draw.below(self.scene.replicas().len())
    }

    /// An event to catch, of either source.
    pub(super) fn bait(&mut self) -> Key {
        let source = self.draw.one_of(&[Source::Inbox, Source::Forward]);
        self.provider.bait(source)
    }

    /// How a network is away.
    pub(super) fn silence_or_refusal(&mut self) -> Wire {
        match self.draw.percent(50) {
            true => Wire::Blackhole,
            false => Wire::Refuse,
        }
    }

    /// How long a store is away: longer than the lease.
    pub(super) fn outage(&mut self) -> Duration {
        self.draw.ms(1_300..2_500)
    }

    /// Lets a time pass in which the fault lasts.
    pub(super) async fn last(&self, time: Duration) {
        sleep(time).await;
    }

    /// Throws a bait to a replica and waits until a trap holds it. Which one; `None` if none ever did.
    pub(super) async fn catch(&self, bait: &Key, place: usize, traps: &[Trapped]) -> Option<usize> {
        self.provider.throw(bait, place);
        let any = futures_util::future::select_all(traps.iter().map(|trap| Box::pin(trap.struck())));
        self.within(bait, async { any.await.1 }).await
    }

    /// Holds every request at the target, and waits until the bait is there. Who called, if it came; the gate lets
    /// them all go on.
    pub(super) async fn catch_at_target(&self, bait: &Key, place: usize) -> (Option<String>, Gate) {
        let gate = Gate::closed();
        self.scene.target.answer(Answer::Gate(gate.clone(), 200));
        self.provider.throw(bait, place);
        let id = bait.to_string();
        let caller = async {
            loop {
                let requests = self.scene.target.requests_for(&id);
                if let Some(request) = requests.last() {
                    break request.path.trim_start_matches('/').to_owned();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        (self.within(bait, caller).await, gate)
    }

    async fn within<T>(&self, bait: &Key, prey: impl Future<Output = T>) -> Option<T> {
        let caught = timeout(TRAP_PATIENCE, prey).await.ok();
        if caught.is_none() {
            self.scene.miss(&format!("{bait} was not caught"));
        }
        caught
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
