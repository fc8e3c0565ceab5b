//! The claim store behind its breaker. Whatever goes wrong there becomes [`Unavailable`]: the ledger then
//! decides alone. Only what is wrong with the store as a whole counts for the breaker.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hookgate_claim::{
    BadRedisUrl, Claim, Claims, Epoch, Lease, MemoryClaims, Ownership, RedisClaims, Sight, Terms, Trouble,
    Unavailable,
};
use hookgate_webhook::EventKey;
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
    history_known: AtomicBool,
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
    /// Until its ledger's history is known, done marks can be neither trusted nor set: they may speak of a
    /// history that the ledger was restored away from.
    pub(super) fn new(
        claims: Arc<dyn Claims>,
        metrics: Arc<Metrics>,
        stop: CancellationToken,
        history_known: bool,
    ) -> Arc<Self> {
        metrics.claims_up.set(1);
        let guarded = Arc::new(Self {
            claims,
            breaker: Arc::default(),
            history_known: AtomicBool::new(history_known),
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
        let started = Instant::now();
        let claim = self.guard(self.claims.claim(key, terms)).await?;
        observe(&self.metrics.claim_seconds, started.elapsed());
        if matches!(&claim, Claim::First(lease) if lease.taken_over) {
            self.metrics.claims_taken_over.inc();
        }
        Ok(claim)
    }

    /// Looks without claiming.
    pub async fn look(self: &Arc<Self>, key: &EventKey) -> Result<Sight, Unavailable> {
        self.guard(self.claims.look(key)).await
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

    /// Whether the store answers.
    pub fn is_up(&self) -> bool {
        !self.breaker.is_open()
    }

    /// Sets the epoch, and with it what is known of the ledger. True if that is news.
    pub(super) fn learn(&self, epoch: Epoch) -> bool {
        let news = self.claims.epoch() != epoch;
        if news {
            self.claims.set_epoch(epoch);
        }
        !self.history_known.swap(true, Ordering::AcqRel) || news
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
            return;
        }
        self.warn_of_eviction().await;
    }

    /// Whether the store answers. A part of it that does not is found out by the requests that need it.
    async fn probe(&self) -> Result<(), Unavailable> {
        match self.claims.probe().await {
            Err(unavailable) if unavailable.trouble == Trouble::Part => Ok(()),
            probed => probed,
        }
    }

    async fn warn_of_eviction(&self) {
        if let Some(policy) = self.claims.eviction().await {
            tracing::warn!(
                "Redis forgets keys when it is full (maxmemory-policy {policy}): copies of events whose claims are \
                 gone cost the ledger a query, and without a ledger run again; set maxmemory-policy noeviction"
            );
        }
    }

    async fn guard<T>(
        self: &Arc<Self>,
        call: impl Future<Output = Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        if !self.history_known.load(Ordering::Acquire) {
            return Err(Unavailable {
                cause: "the ledger has not named its history yet".to_owned(),
                possible: None,
                trouble: Trouble::Store,
            });
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
                guarded.warn_of_eviction().await;
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

#[cfg(test)]
mod tests {
    use hookgate_webhook::{EventId, SourceName};

    use super::*;

    fn guarded() -> Arc<GuardedClaims> {
        let claims = Arc::new(MemoryClaims::new(10, Epoch::default()));
        let metrics = Arc::new(Metrics::new(std::iter::empty()).unwrap());
        GuardedClaims::new(claims, metrics, CancellationToken::new(), true)
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
        let key = EventKey {
            source: SourceName::parse("stripe").unwrap(),
            id: EventId::parse("evt_1").unwrap(),
        };
        let terms = Terms {
            ttl: Duration::from_secs(604_800),
            lease: Duration::from_secs(15),
        };
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
