//! The claim store behind its breaker. Whatever goes wrong there becomes [`Unavailable`]: the ledger then
//! decides alone. Only what is wrong with the store as a whole counts for the breaker.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookgate_claim::{
    BadRedisUrl, Claim, Claims, Epoch, Lease, MemoryClaims, NodeMemory, Ownership, RedisClaims, Sight, Terms,
    Trouble, Unavailable,
};
use hookgate_ledger::History;
use hookgate_webhook::EventKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::breaker::Breaker;
use crate::config::{ClaimStore, Config};
use crate::metrics::{Metrics, observe};
use crate::stores::OnceAMinute;

/// Pause before the claim store is told again that an event is done.
const FINISH_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The claim store as the path sees it.
pub struct GuardedClaims {
    claims: Arc<dyn Claims>,
    breaker: Arc<Breaker>,
    /// The history of the ledger that done marks must speak of; `None`: there is one for ever.
    history: Option<watch::Receiver<History>>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    /// Of the store, of a part of it, and of a single key: none hides another.
    warned: OnceAMinute,
    warned_of_part: OnceAMinute,
    warned_of_key: OnceAMinute,
}

pub(super) fn open(config: &Config) -> Result<Option<Arc<dyn Claims>>, BadRedisUrl> {
    Ok(match &config.claims {
        ClaimStore::None => None,
        ClaimStore::Memory(entries) => Some(Arc::new(MemoryClaims::new(*entries, config.epoch()))),
        ClaimStore::Redis(settings) => Some(Arc::new(RedisClaims::new(settings.clone(), config.epoch())?)),
    })
}

impl GuardedClaims {
    /// While its ledger's history is in doubt, done marks can be neither trusted nor set: they may speak of a
    /// history that the ledger was restored away from.
    pub(super) fn new(
        claims: Arc<dyn Claims>,
        metrics: Arc<Metrics>,
        stop: CancellationToken,
        history: Option<watch::Receiver<History>>,
    ) -> Arc<Self> {
        metrics.claims_up.set(1);
        let guarded = Arc::new(Self {
            claims,
            breaker: Arc::default(),
            history,
            metrics,
            stop,
            warned: OnceAMinute::default(),
            warned_of_part: OnceAMinute::default(),
            warned_of_key: OnceAMinute::default(),
        });
        tokio::spawn(Arc::clone(&guarded).first_probe());
        guarded
    }

    /// Claims the key; counts what was taken over.
    pub async fn claim(self: &Arc<Self>, key: &EventKey, terms: Terms) -> Result<Claim, Unavailable> {
        let (started, history) = (Instant::now(), self.learn_history());
        let claim = self.guard(self.claims.claim(key, terms)).await?;
        if matches!(claim, Claim::Done) {
            self.still(history)?;
        }
        observe(&self.metrics.claim_seconds, started.elapsed());
        if matches!(&claim, Claim::First(lease) if lease.taken_over) {
            self.metrics.claims_taken_over.inc();
        }
        Ok(claim)
    }

    /// Looks without claiming.
    pub async fn look(self: &Arc<Self>, key: &EventKey) -> Result<Sight, Unavailable> {
        let history = self.learn_history();
        let sight = self.guard(self.claims.look(key)).await?;
        if sight == Sight::Done {
            self.still(history)?;
        }
        Ok(sight)
    }

    /// Extends a claim while its handler lives. False once it is lost.
    pub async fn renew(self: &Arc<Self>, lease: &mut Lease) -> bool {
        match self.guard(self.claims.renew(lease)).await {
            Ok(ownership) => self.kept(ownership),
            Err(_) => true,
        }
    }

    /// Marks done if still ours. False if the store could not say.
    pub async fn finish(self: &Arc<Self>, lease: &Lease) -> bool {
        let finished = self.guard(self.claims.finish(lease)).await;
        finished.is_ok_and(|ownership| {
            self.kept(ownership);
            true
        })
    }

    /// Marks done as soon as the store answers, while the lease lasts: without a ledger the mark is the only
    /// record that the target took the event.
    pub async fn finish_later(self: Arc<Self>, lease: Lease) {
        let until = Instant::now() + lease.terms.lease;
        while Instant::now() < until && !self.finish(&lease).await {
            tokio::time::sleep(FINISH_RETRY_INTERVAL).await;
        }
    }

    /// The present epoch, to be kept from before the claim until [`Self::mark_done`].
    pub fn epoch(&self) -> Epoch {
        self.claims.epoch()
    }

    /// Marks done whoever owns the claim, under the epoch in which the event's path began.
    pub async fn mark_done(self: &Arc<Self>, key: &EventKey, ttl: Duration, epoch: Epoch) {
        // A missing mark costs one question to the ledger later; it cannot change this answer.
        let _ = self.guard(self.claims.mark_done(key, ttl, epoch)).await;
    }

    /// Deletes the claim if still ours.
    pub async fn release(self: &Arc<Self>, lease: &Lease) {
        if let Ok(ownership) = self.guard(self.claims.release(lease)).await {
            self.kept(ownership);
        }
    }

    /// Marks done a claim that may or may not have been set.
    pub async fn finish_possible(self: &Arc<Self>, lease: &Lease) {
        let _ = self.guard(self.claims.finish(lease)).await;
    }

    /// Deletes a claim that may or may not have been set; not owning it is no loss.
    pub async fn release_possible(self: &Arc<Self>, lease: &Lease) {
        let _ = self.guard(self.claims.release(lease)).await;
    }

    /// What its servers say of their memory; past the breaker, which has no use for it.
    pub(super) async fn memory(&self) -> Result<Vec<NodeMemory>, Unavailable> {
        self.claims.memory().await
    }

    /// Whether the store answers.
    pub fn is_up(&self) -> bool {
        !self.breaker.is_open()
    }

    /// Reads which history the ledger writes, and tells the claims which epoch that makes. It is asked for at each
    /// step, so that no mark of an old history counts once the new one is known; nobody is waited for.
    pub(super) fn learn_history(&self) -> History {
        let Some(told) = &self.history else {
            return History::Timeline(0);
        };
        // Held until the epoch is set, so that none is set after a later one.
        let told = told.borrow();
        if let History::Timeline(timeline) = *told {
            let before = self.claims.epoch();
            // Not shown: then it is no reason to forget the one that was.
            let timeline = if timeline == 0 { before.timeline } else { timeline };
            if timeline != before.timeline {
                let epoch = Epoch { timeline, ..before };
                self.claims.set_epoch(epoch);
                tracing::info!(
                    timeline,
                    "claims speak of epoch {epoch}: HOOKGATE_CLAIM_EPOCH and the ledger's timeline; done marks of others are void"
                );
            }
        }
        *told
    }

    /// Refuses what was read as done if the history under which it was judged is no longer the one that is known.
    fn still(&self, history: History) -> Result<(), Unavailable> {
        match self.learn_history() == history {
            true => Ok(()),
            false => Err(doubted()),
        }
    }

    /// Waits until the ledger has named its history.
    pub(super) async fn history_named(&self) {
        if let Some(history) = &self.history {
            let named = |history: &History| *history != History::Doubted;
            // A ledger that was closed names none.
            let _ = history.clone().wait_for(named).await;
            self.learn_history();
        }
    }

    pub(super) async fn close(&self) {
        self.claims.close().await;
    }

    fn kept(&self, ownership: Ownership) -> bool {
        match ownership {
            Ownership::Kept => true,
            Ownership::Lost => {
                self.metrics.claims_lost.inc();
                false
            }
        }
    }

    /// A store that is away at the start is found out before the first request pays for it.
    async fn first_probe(self: Arc<Self>) {
        if let Err(unavailable) = self.probe().await {
            self.warn(&unavailable);
            if self.breaker.trip() {
                self.recover();
            }
        }
    }

    /// Whether the store answers. A part of it that does not is found out by the requests that need it.
    async fn probe(&self) -> Result<(), Unavailable> {
        match self.claims.probe().await {
            Err(unavailable) if unavailable.trouble == Trouble::Part => Ok(()),
            probed => probed,
        }
    }

    async fn guard<T>(
        self: &Arc<Self>,
        call: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        if self.learn_history() == History::Doubted {
            return Err(doubted());
        }
        if self.breaker.is_open() {
            return Err(Unavailable {
                trouble: Trouble::Store,
                cause: "circuit open".to_owned(),
                possible: None,
            });
        }
        let result = call.await;
        match &result {
            Ok(_) => self.breaker.succeeded(),
            Err(unavailable) => {
                self.warn(unavailable);
                match unavailable.trouble {
                    // The store answered; one broken key must not close it to all others.
                    Trouble::Key => self.breaker.succeeded(),
                    // The store itself spares those who need that part its time-out.
                    Trouble::Part => {}
                    Trouble::Store if self.breaker.failed() => self.recover(),
                    Trouble::Store => {}
                }
            }
        }
        result
    }

    fn recover(self: &Arc<Self>) {
        self.metrics.claims_up.set(0);
        let guarded = Arc::clone(self);
        tokio::spawn(async move {
            let breaker = Arc::clone(&guarded.breaker);
            breaker.recover(guarded.stop.clone(), || guarded.probe()).await;
            if guarded.is_up() {
                guarded.metrics.claims_up.set(1);
                tracing::info!("the claim store answers again");
            }
        });
    }

    fn warn(&self, unavailable: &Unavailable) {
        let warned = match unavailable.trouble {
            Trouble::Store => &self.warned,
            Trouble::Part => &self.warned_of_part,
            Trouble::Key => &self.warned_of_key,
        };
        if warned.due() {
            tracing::warn!(cause = %unavailable.cause, "{}; deciding without it", unavailable.trouble);
        }
    }
}

fn doubted() -> Unavailable {
    Unavailable {
        cause: "the ledger has not named the history that it writes".to_owned(),
        possible: None,
        trouble: Trouble::Store,
    }
}

#[cfg(test)]
mod tests {
    use hookgate_webhook::{EventId, SourceName};

    use super::*;

    fn guarded() -> Arc<GuardedClaims> {
        let claims = Arc::new(MemoryClaims::new(10, Epoch::default()));
        let metrics = Arc::new(Metrics::new(std::iter::empty()).unwrap());
        GuardedClaims::new(claims, metrics, CancellationToken::new(), None)
    }

    fn key() -> EventKey {
        EventKey {
            source: SourceName::parse("stripe").unwrap(),
            id: EventId::parse("evt_1").unwrap(),
        }
    }

    fn terms() -> Terms {
        Terms {
            ttl: Duration::from_secs(604_800),
            lease: Duration::from_secs(15),
        }
    }

    async fn suffer(claims: &Arc<GuardedClaims>, trouble: Trouble) {
        let unavailable = Unavailable {
            trouble,
            cause: String::new(),
            possible: None,
        };
        let passed_on = claims.guard(async { Err::<(), _>(unavailable) }).await;
        assert_eq!(passed_on.unwrap_err().trouble, trouble);
    }

    #[tokio::test]
    async fn a_mark_counts_only_while_the_ledger_stands_by_the_history_it_speaks_of() {
        let tell = watch::Sender::new(History::Doubted);
        let claims = Arc::new(MemoryClaims::new(10, Epoch::default()));
        let metrics = Arc::new(Metrics::new(std::iter::empty()).unwrap());
        let claims = GuardedClaims::new(claims, metrics, CancellationToken::new(), Some(tell.subscribe()));
        let (key, terms) = (key(), terms());
        assert!(claims.claim(&key, terms).await.is_err(), "nothing is known yet");
        tell.send_replace(History::Timeline(1));
        assert!(matches!(
            claims.claim(&key, terms).await.unwrap(),
            Claim::First(_)
        ));
        claims.mark_done(&key, terms.ttl, claims.epoch()).await;
        assert!(matches!(claims.claim(&key, terms).await.unwrap(), Claim::Done));
        tell.send_replace(History::Doubted);
        assert!(claims.claim(&key, terms).await.is_err() && claims.look(&key).await.is_err());
        // The same server after all.
        tell.send_replace(History::Timeline(1));
        assert_eq!(claims.look(&key).await.unwrap(), Sight::Done);
        tell.send_replace(History::Timeline(2));
        assert_eq!(claims.look(&key).await.unwrap(), Sight::Free);
        assert!(matches!(
            claims.claim(&key, terms).await.unwrap(),
            Claim::First(_)
        ));
        // One that hides its timeline is no reason to forget the one that was.
        tell.send_replace(History::Timeline(0));
        assert_eq!(claims.learn_history(), History::Timeline(0));
        assert_eq!(claims.epoch().timeline, 2);
    }

    #[tokio::test]
    async fn a_broken_key_or_node_does_not_close_the_store_to_others() {
        let claims = guarded();
        for _ in 0..10 {
            suffer(&claims, Trouble::Key).await;
        }
        for _ in 0..10 {
            suffer(&claims, Trouble::Part).await;
        }
        assert!(claims.is_up());
        for _ in 0..3 {
            suffer(&claims, Trouble::Store).await;
        }
        assert!(!claims.is_up());
    }

    #[tokio::test]
    async fn a_renewal_that_finds_its_claim_lost_says_so_and_counts_it() {
        let claims = guarded();
        let (key, terms) = (key(), terms());
        let Claim::First(mut lease) = claims.claim(&key, terms).await.unwrap() else {
            panic!("nobody else claims here");
        };
        assert!(claims.renew(&mut lease).await);
        assert_eq!(claims.metrics.claims_lost.get(), 0);
        claims.mark_done(&key, terms.ttl, claims.epoch()).await;
        assert!(!claims.renew(&mut lease).await);
        assert_eq!(claims.metrics.claims_lost.get(), 1);
    }
}
