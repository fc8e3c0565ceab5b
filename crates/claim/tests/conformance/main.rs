//! One suite for every claim store: the same properties on memory and on each form of Redis.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is test code, where a panic is the finding"
)]

mod properties;
mod sequences;

use std::sync::Arc;
use std::time::Duration;

use hookgate_claim::{Claims, Epoch, MemoryClaims, RedisClaims, RedisMode, RedisSettings};
use hookgate_harness::{RedisCluster, RedisSentinel, RedisSentinels, RedisServer};
use tokio::sync::OnceCell;

/// Long enough for a crowd of suites on a small machine; the limit itself has tests of its own.
const LIMIT: Duration = Duration::from_secs(10);

async fn memory() -> Arc<dyn Claims> {
    Arc::new(MemoryClaims::new(100_000, Epoch::default()))
}

fn redis(mode: RedisMode, url: String) -> RedisClaims {
    let settings = RedisSettings::new(mode, vec![url.into()], LIMIT);
    RedisClaims::new(settings, Epoch::default()).unwrap()
}

async fn single() -> Arc<dyn Claims> {
    Arc::new(redis(RedisMode::Single, RedisServer::shared().await.url()))
}

/// As if the server did not know `NX` with `GET`; in a database of its own, so that no key meets `single`'s.
async fn before_7() -> Arc<dyn Claims> {
    let url = format!("{}/1", RedisServer::shared().await.url());
    Arc::new(redis(RedisMode::Single, url).assuming_redis_before_7())
}

/// A primary with two replicas and three Sentinels.
async fn sentinel() -> Arc<dyn Claims> {
    static SERVERS: OnceCell<RedisSentinels> = OnceCell::const_new();
    let servers = SERVERS.get_or_init(RedisSentinels::start).await;
    let first = &servers.sentinels()[0];
    let url = format!("{}?master={}", first.url(), RedisSentinel::MASTER_NAME);
    Arc::new(redis(RedisMode::Sentinel, url))
}

/// Three primaries with a replica each, of which only one is named.
async fn cluster() -> Arc<dyn Claims> {
    static NODES: OnceCell<RedisCluster> = OnceCell::const_new();
    let cluster = NODES.get_or_init(RedisCluster::start).await;
    Arc::new(redis(RedisMode::Cluster, cluster.nodes()[5].url()))
}

/// Each property on each store, as a test named `<store>::<property>`.
macro_rules! conformance {
    ($($store:ident)*) => { $(conformance!(@store $store {
        of_a_crowd_exactly_one_is_first
        a_duplicate_sees_in_flight_and_then_done
        marking_done_needs_no_lease
        a_release_lets_the_next_run_at_once
        an_expired_claim_is_taken_over_by_exactly_one
        a_claim_goes_by_its_own_lease_and_not_by_its_readers
        a_late_owner_changes_nothing
        an_owner_that_nobody_replaced_may_still_finish
        each_odd_id_is_one_key
        the_first_colon_parts_source_and_id
        a_probe_succeeds_and_claims_nothing
        a_done_mark_of_another_epoch_is_void
        a_mark_of_the_epoch_before_a_promotion_is_void_after_it
        any_sequence_of_steps_goes_as_the_cell_says
    });)* };
    (@store $store:ident { $($property:ident)* }) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $property() {
                    super::properties::$property(super::$store().await).await;
                }
            )*
        }
    };
}

conformance! { memory single before_7 sentinel cluster }
