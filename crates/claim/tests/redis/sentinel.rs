//! A primary with two replicas, and three Sentinels of which two have to agree: claims follow the name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_claim::{Claim, Claims, Epoch, Ownership, RedisClaims, RedisMode, RedisSettings};
use hookgate_harness::{RedisSentinel, RedisSentinels, RedisServer};
use tokio::task::JoinSet;

use super::{AMPLE, TERMS, eventually, key, recovered, won};

/// Short beside a failover, long beside an answer on a busy machine.
const LIMIT: Duration = Duration::from_millis(500);

fn claims(urls: &str, limit: Duration) -> RedisClaims {
    let urls = urls.split(',').map(|url| url.to_owned().into()).collect();
    RedisClaims::new(
        RedisSettings::new(RedisMode::Sentinel, urls, limit),
        Epoch::default(),
    )
    .unwrap()
}

fn exists(server: &RedisServer, id: &str) -> bool {
    server.cli(&["EXISTS", &format!("webhook:stripe:{id}")]) == "1"
}

/// Fresh claims from several at once, each of which has an outcome within the limit or cannot be told.
struct Load {
    stop: Arc<AtomicBool>,
    failed: Arc<AtomicUsize>,
    crowd: JoinSet<()>,
}

impl Load {
    fn start(claims: &Arc<RedisClaims>) -> Self {
        let (stop, failed) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut crowd = JoinSet::new();
        for worker in 0..4 {
            let (claims, stop, failed) = (Arc::clone(claims), Arc::clone(&stop), Arc::clone(&failed));
            crowd.spawn(Self::claim_on(worker, claims, stop, failed));
        }
        Self { stop, failed, crowd }
    }

    async fn claim_on(
        worker: usize,
        claims: Arc<RedisClaims>,
        stop: Arc<AtomicBool>,
        failed: Arc<AtomicUsize>,
    ) {
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            match claims
                .claim(&key(&format!("evt_load_{worker}_{number}")), TERMS)
                .await
            {
                Ok(Claim::First(_)) => tokio::time::sleep(Duration::from_millis(1)).await,
                Ok(met) => panic!("nobody else claims it: {met:?}"),
                Err(_) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
    }

    /// How many claims could not be told.
    async fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.crowd.join_all().await;
        self.failed.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_go_on_at_the_new_primary_when_the_old_one_is_killed_and_comes_back_as_a_replica() {
    let mut redis = RedisSentinels::start().await;
    let claims = Arc::new(claims(&redis.urls(), LIMIT));
    recovered(&claims).await;
    let old = redis.primary().await.port();
    let load = Load::start(&claims);
    redis.lose_primary().await;
    eventually("claims are written to the new primary", async || {
        claims.claim(&key("evt_after"), TERMS).await.is_ok() && exists(redis.primary().await, "evt_after")
    })
    .await;
    assert!(load.stop().await > 0, "the primary was missed");

    let old = redis
        .servers_mut()
        .iter_mut()
        .find(|server| server.port() == old)
        .unwrap();
    old.restart().await;
    redis.in_sync().await;
    eventually("claims go on", async || {
        claims.claim(&key("evt_later"), TERMS).await.is_ok() && exists(redis.primary().await, "evt_later")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claims_leave_a_primary_that_is_demoted_under_open_connections() {
    let redis = RedisSentinels::start().await;
    let claims = Arc::new(claims(&redis.urls(), LIMIT));
    recovered(&claims).await;
    let load = Load::start(&claims);
    for round in 0..2 {
        redis.in_sync().await;
        redis.fail_over().await;
        let id = format!("evt_round_{round}");
        eventually("claims are written to the new primary", async || {
            claims.claim(&key(&id), TERMS).await.is_ok() && exists(redis.primary().await, &id)
        })
        .await;
    }
    load.stop().await;
    // The server that took over has never seen the script.
    let mut number = 0..;
    eventually("what is claimed there is finished there", async || {
        let id = format!("evt_finished_{}", number.next().unwrap_or_default());
        match claims.claim(&key(&id), TERMS).await {
            Ok(Claim::First(lease)) => claims.finish(&lease).await.ok() == Some(Ownership::Kept),
            _ => false,
        }
    })
    .await;
}

#[tokio::test]
async fn sentinels_that_hang_or_are_gone_hold_up_nobody() {
    let redis = RedisSentinels::start().await;
    redis.sentinels()[0].pause();
    redis.sentinels()[1].kill().await;
    // Shorter than the library's own patience with a Sentinel, long beside an answer.
    let claims = claims(&redis.urls(), Duration::from_millis(800));
    recovered(&claims).await;
    let _ = won(&claims, "evt_1").await;
    redis.sentinels()[0].resume();
}

#[tokio::test]
async fn a_sentinel_that_names_a_server_that_hangs_holds_up_nobody() {
    let (gone, primary) = (RedisServer::start().await, RedisServer::start().await);
    let (stale, fresh) = (
        RedisSentinel::start(&gone).await,
        RedisSentinel::start(&primary).await,
    );
    gone.pause();
    let urls = format!(
        "{}?master={},{}",
        stale.url(),
        RedisSentinel::MASTER_NAME,
        fresh.url()
    );
    let claims = claims(&urls, AMPLE);
    // Connecting is given up after two seconds, and the one that hangs would take longer.
    let _ = won(&claims, "evt_1").await;
    assert!(exists(&primary, "evt_1"));
    gone.resume();
}

#[tokio::test]
async fn a_name_that_no_sentinel_knows_is_told() {
    let server = RedisServer::start().await;
    let sentinel = RedisSentinel::start(&server).await;
    let claims = claims(&format!("{}?master=nobody", sentinel.url()), AMPLE);
    let unknown = super::unavailable(&claims, "evt_1").await;
    assert_eq!(unknown.cause, "a Sentinel: it knows no primary of this name");
}
