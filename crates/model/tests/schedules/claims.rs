//! Claims that can forget, and whose time can pass.

use std::sync::Arc;
use std::time::Duration;

use hookgate_claim::{Claims, Epoch, MemoryClaims, RedisClaims, RedisMode, RedisSettings};
use hookgate_harness::{PATIENCE, RedisServer};
use hookgate_webhook::EventKey;

/// Shortens the life of a key, as time does.
const AGE: &str = "
    local left = redis.call('PTTL', KEYS[1]) - ARGV[1]
    if left <= 0 then return redis.call('DEL', KEYS[1]) end
    return redis.call('PEXPIRE', KEYS[1], left)";

/// The real claims of one schedule.
pub(crate) enum ClaimStore {
    Memory(Arc<MemoryClaims>),
    Redis(Arc<RedisClaims>, &'static RedisServer),
}

impl ClaimStore {
    pub(crate) fn memory(epoch: Epoch) -> Self {
        Self::Memory(Arc::new(MemoryClaims::new(1_000, epoch)))
    }

    pub(crate) async fn redis() -> Self {
        let server = RedisServer::shared().await;
        let settings = RedisSettings::new(RedisMode::Single, vec![server.url().into()], PATIENCE);
        let claims = RedisClaims::new(settings, Epoch::default()).unwrap();
        Self::Redis(Arc::new(claims), server)
    }

    /// As the protocol sees them.
    pub(crate) fn claims(&self) -> Arc<dyn Claims> {
        match self {
            Self::Memory(claims) => Arc::clone(claims) as Arc<dyn Claims>,
            Self::Redis(claims, _) => Arc::clone(claims) as Arc<dyn Claims>,
        }
    }

    /// The claim of this event is lost.
    pub(crate) fn forget(&mut self, key: &EventKey) {
        match self {
            // All of them are: as when the process starts again.
            Self::Memory(claims) => *self = Self::memory(claims.epoch()),
            Self::Redis(_, server) => drop(server.cli(&["DEL", &key.claim_key()])),
        }
    }

    pub(crate) async fn pass(&self, key: &EventKey, time: Duration) {
        match self {
            Self::Memory(_) => {
                tokio::time::pause();
                tokio::time::advance(time).await;
                tokio::time::resume();
            }
            Self::Redis(_, server) => {
                let ms = time.as_millis().to_string();
                server.cli(&["EVAL", AGE, "1", &key.claim_key(), &ms]);
            }
        }
    }
}
