//! Claims in Redis: one key each, one round trip for a fresh claim or a duplicate.
//!
//! The first step is `SET key value NX GET EX ttl` with `PTTL` behind it in one write. Everything later
//! (takeover, renewal, finish, release) is one script on that one key which compares the value first, so it
//! holds on a cluster too, and a late owner changes nothing. Every command is safe to repeat, because a
//! claim that meets its own value has won; so a connection found dropped may be replaced and asked again.
//! Only Redis's clock counts.
//!
//! An ACL user needs `~webhook:* +set +get +pttl +expire +del +eval +evalsha +info`, on a cluster also
//! `+cluster|slots +asking`; on the Sentinels `+sentinel|get-master-addr-by-name`.

mod answer;
mod cluster;
mod connection;
mod lanes;
mod memory;
mod scripts;
mod sentinel;
mod server;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use hookgate_webhook::EventKey;

use self::answer::Failure;
use self::server::Server;
pub use self::settings::{BadRedisUrl, RedisMode, RedisSettings};
use crate::cell::{Attempt, Held, Replaced, Value};
use crate::claims::{Claim, Claims, Epoch, Lease, NodeMemory, Ownership, Sight, Terms, Unavailable};

/// Life of the key that [`Claims::probe`] writes.
const PROBE_SECONDS: u64 = 10;

/// A store of claims in Redis: a single server, the primary that Sentinels name, or a cluster.
pub struct RedisClaims {
    server: Server,
    epoch: ArcSwap<Epoch>,
    /// Set once a server has refused `NX` with `GET`, which Redis knows since 7.0.
    before_7: AtomicBool,
    probe_key: String,
}

impl RedisClaims {
    /// Checks the settings. Connects to nothing yet: connections are made when the first command needs
    /// them, so a Redis that is down or hangs stops no start.
    ///
    /// Connections run on the tokio runtime this is called in (without one: that of the first command), so
    /// that they outlive the worker thread that happened to need them first.
    ///
    /// # Errors
    /// [`BadRedisUrl`] if a URL is not of the accepted form.
    pub fn new(settings: RedisSettings, epoch: Epoch) -> Result<Self, BadRedisUrl> {
        Ok(Self {
            server: settings.into_server()?,
            epoch: ArcSwap::from_pointee(epoch),
            before_7: AtomicBool::new(false),
            // No source name begins with `_`, so this is nobody's claim.
            probe_key: format!("webhook:_probe:{:032x}", rand::random::<u128>()),
        })
    }

    /// Speaks as to a server older than 7.0 from the start, without finding out by its refusal.
    #[must_use]
    pub fn assuming_redis_before_7(self) -> Self {
        self.before_7.store(true, Ordering::Relaxed);
        self
    }

    /// Tries to store the lease. `None`: stored; else what stands there.
    async fn take(&self, lease: &Lease) -> Result<Option<Held>, Failure> {
        if !self.before_7.load(Ordering::Relaxed) {
            match self.set_or_get(lease).await {
                Err(Failure::UnknownSyntax) => {
                    tracing::info!("Redis is older than 7.0: duplicates take two round trips");
                    self.before_7.store(true, Ordering::Relaxed);
                }
                outcome => return outcome,
            }
        }
        self.set_then_get(lease).await
    }

    /// Redis 7.0 and later.
    async fn set_or_get(&self, lease: &Lease) -> Result<Option<Held>, Failure> {
        let (key, ttl) = (lease.key.claim_key(), lease.terms.ttl_seconds());
        let mut commands = redis::pipe();
        commands
            .cmd("SET")
            .arg(&key)
            .arg(lease.value())
            .arg("NX")
            .arg("GET")
            .arg("EX")
            .arg(ttl);
        commands.cmd("PTTL").arg(&key);
        self.server.send(&key, &commands).await?.held()
    }

    /// Redis before 7.0. The key may vanish between the two writes; then the first is tried once more.
    async fn set_then_get(&self, lease: &Lease) -> Result<Option<Held>, Failure> {
        let (key, ttl) = (lease.key.claim_key(), lease.terms.ttl_seconds());
        let mut set = redis::pipe();
        set.cmd("SET")
            .arg(&key)
            .arg(lease.value())
            .arg("NX")
            .arg("EX")
            .arg(ttl);
        for _ in 0..2 {
            let answer = self.server.send(&key, &set).await?;
            let resent = answer.resent;
            if answer.stored()? {
                return Ok(None);
            }
            let read = self.read(&lease.key).await;
            if let Some(held) =
                read.map_err(|failure| if resent { failure.after_another() } else { failure })?
            {
                return Ok(Some(held));
            }
        }
        Err(Failure::OfKey("it came and went twice".into()))
    }

    async fn read(&self, key: &EventKey) -> Result<Option<Held>, Failure> {
        let key = key.claim_key();
        let mut commands = redis::pipe();
        commands.cmd("GET").arg(&key).cmd("PTTL").arg(&key);
        self.server.send(&key, &commands).await?.held()
    }

    /// Puts the lease in place of an expired claim or a void mark, unless that changed since it was `seen`.
    async fn replace(&self, lease: Lease, seen: &Held, left_ms_max: i64) -> Result<Claim, Unavailable> {
        let script = scripts::REPLACE
            .on(&lease.key.claim_key())
            .arg(seen.value.written())
            .arg(lease.value())
            .arg(lease.terms.ttl_seconds())
            .arg(left_ms_max);
        let replaced = async { self.server.run(script).await?.replaced() };
        match replaced.await.map_err(|failure| failure.about(&lease))? {
            Replaced::Free => Ok(Claim::First(Lease {
                taken_over: false,
                ..lease
            })),
            Replaced::Seen => Ok(Claim::First(lease)),
            Replaced::No(held) => Ok(match held.judge(&lease.claim, &self.epoch.load()).unfought() {
                Attempt::Won => Claim::First(lease),
                Attempt::Done => Claim::Done,
                Attempt::InFlight { age } | Attempt::Replace { age, .. } => Claim::InFlight { age },
            }),
        }
    }

    /// Runs a script that does something only if the lease still owns its key.
    async fn if_owned(&self, script: scripts::Call) -> Result<Ownership, Unavailable> {
        let owned = async { self.server.run(script).await?.owned() };
        owned.await.map_err(Failure::unavailable)
    }
}

#[async_trait]
impl Claims for RedisClaims {
    async fn claim(&self, key: &EventKey, terms: Terms) -> Result<Claim, Unavailable> {
        let lease = Lease::new(key, terms, &self.epoch.load());
        let Some(seen) = self.take(&lease).await.map_err(|failure| failure.about(&lease))? else {
            return Ok(Claim::First(lease));
        };
        match seen.judge(&lease.claim, &self.epoch.load()) {
            Attempt::Won => Ok(Claim::First(lease)),
            Attempt::Done => Ok(Claim::Done),
            Attempt::InFlight { age } => Ok(Claim::InFlight { age }),
            Attempt::Replace {
                taken_over,
                left_ms_max,
                ..
            } => {
                let lease = Lease { taken_over, ..lease };
                self.replace(lease, &seen, left_ms_max).await
            }
        }
    }

    async fn look(&self, key: &EventKey) -> Result<Sight, Unavailable> {
        let held = self.read(key).await.map_err(Failure::unavailable)?;
        Ok(held.map_or(Sight::Free, |held| held.sight(&self.epoch.load())))
    }

    async fn renew(&self, lease: &mut Lease) -> Result<Ownership, Unavailable> {
        let script = scripts::RENEW.on(&lease.key.claim_key()).arg(lease.value());
        self.if_owned(script.arg(lease.terms.ttl_seconds())).await
    }

    async fn finish(&self, lease: &Lease) -> Result<Ownership, Unavailable> {
        let script = scripts::FINISH.on(&lease.key.claim_key()).arg(lease.value());
        self.if_owned(script.arg(lease.done_mark()).arg(lease.terms.ttl_seconds()))
            .await
    }

    async fn mark_done(&self, key: &EventKey, ttl: Duration, epoch: Epoch) -> Result<(), Unavailable> {
        let ttl = Terms {
            ttl,
            lease: Duration::ZERO,
        }
        .ttl_seconds();
        let mark = Value::Done(epoch).written();
        let (key, mut set) = (key.claim_key(), redis::pipe());
        set.cmd("SET").arg(&key).arg(mark).arg("EX").arg(ttl);
        let stored = async { self.server.send(&key, &set).await?.stored() };
        stored.await.map(|_| ()).map_err(Failure::unavailable)
    }

    async fn release(&self, lease: &Lease) -> Result<Ownership, Unavailable> {
        self.if_owned(scripts::RELEASE.on(&lease.key.claim_key()).arg(lease.value()))
            .await
    }

    /// A real write and a read of it. On a cluster it speaks for the node that holds the probe's key.
    async fn probe(&self) -> Result<(), Unavailable> {
        let token = format!("{:032x}", rand::random::<u128>());
        let mut commands = redis::pipe();
        commands
            .cmd("SET")
            .arg(&self.probe_key)
            .arg(&token)
            .arg("EX")
            .arg(PROBE_SECONDS);
        commands.cmd("GET").arg(&self.probe_key);
        let echoed = async { self.server.send(&self.probe_key, &commands).await?.echoes(&token) };
        echoed.await.map_err(Failure::unavailable)
    }

    async fn memory(&self) -> Result<Vec<NodeMemory>, Unavailable> {
        let answers = self.server.ask_all(&memory::question()).await;
        memory::read(answers).map_err(Failure::unavailable)
    }

    fn epoch(&self) -> Epoch {
        **self.epoch.load()
    }

    fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(Arc::new(epoch));
    }

    async fn close(&self) {
        self.server.close();
    }
}
