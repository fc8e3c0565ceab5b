//! A real cluster: claims follow slots that have moved or are moving, a lost primary takes only its own claims with
//! it, and its replica gets them when it takes over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_claim::{Claim, Claims, Ownership, RedisClaims, RedisMode, RedisSettings, Sight, Trouble};
use hookgate_harness::{RedisCluster, RedisServer};
use tokio::sync::{Barrier, OnceCell};
use tokio::task::JoinSet;

use super::{AMPLE, SHORT, TERMS, eventually, key, unavailable, won};

fn claims(cluster: &RedisCluster, limit: Duration) -> RedisClaims {
    on(cluster.urls().split(','), limit)
}

fn on<'url>(urls: impl Iterator<Item = &'url str>, limit: Duration) -> RedisClaims {
    let urls = urls.map(|url| url.to_owned().into()).collect();
    let settings = RedisSettings::new(RedisMode::Cluster, urls, limit);
    RedisClaims::new(settings, super::Epoch::default()).unwrap()
}

fn key_of(id: &str) -> String {
    format!("webhook:stripe:{id}")
}

/// The cluster of all tests that harm none of its nodes. Each takes slots of its own.
async fn shared() -> &'static RedisCluster {
    static SHARED: OnceCell<RedisCluster> = OnceCell::const_new();
    SHARED.get_or_init(RedisCluster::start).await
}

/// Ids whose keys this node serves.
fn ids_of(cluster: &RedisCluster, node: &RedisServer, prefix: &str, count: usize) -> Vec<String> {
    let keys = cluster.keys_of(node, &key_of(prefix), count).into_iter();
    keys.map(|key| key.strip_prefix("webhook:stripe:").unwrap().to_owned())
        .collect()
}

/// One id of each primary.
fn one_of_each(cluster: &RedisCluster, prefix: &str) -> Vec<String> {
    let primaries = cluster.nodes().iter().filter(|node| node.is_primary());
    primaries
        .flat_map(|node| ids_of(cluster, node, prefix, 1))
        .collect()
}

fn exists(node: &RedisServer, id: &str) -> bool {
    node.cli(&["EXISTS", &key_of(id)]) == "1"
}

#[tokio::test]
async fn a_claim_follows_a_slot_that_has_moved() {
    let cluster = shared().await;
    let claims = claims(cluster, AMPLE);
    let lease = won(&claims, "{moved}held").await;
    let to = cluster.another_primary(&key_of("{moved}"));
    cluster.migrate(&key_of("{moved}"), to).finish();

    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    let _ = won(&claims, "{moved}fresh").await;
    assert!(exists(to, "{moved}held") && exists(to, "{moved}fresh"));
}

#[tokio::test]
async fn every_step_works_in_the_middle_of_a_migration() {
    let cluster = shared().await;
    let claims = claims(cluster, AMPLE);
    let (left, moved) = ("{moving}left", "{moving}moved");
    let (mut left_lease, mut moved_lease) = (won(&claims, left).await, won(&claims, moved).await);
    let done = won(&claims, "{moving}done").await;
    assert_eq!(claims.finish(&done).await.unwrap(), Ownership::Kept);
    let abandoned = won(&claims, "{moving}abandoned").await;

    let to = cluster.another_primary(&key_of("{moving}"));
    let migration = cluster.migrate(&key_of("{moving}"), to);
    for id in [moved, "{moving}done", "{moving}abandoned"] {
        migration.move_key(&key_of(id));
    }

    for id in [left, moved] {
        let met = claims.claim(&key(id), TERMS).await.unwrap();
        assert!(matches!(met, Claim::InFlight { .. }), "{id}: {met:?}");
        assert_eq!(claims.look(&key(id)).await.unwrap(), Sight::InFlight);
    }
    let met = claims.claim(&key("{moving}done"), TERMS).await.unwrap();
    assert!(matches!(met, Claim::Done), "{met:?}");
    for lease in [&mut left_lease, &mut moved_lease] {
        assert_eq!(claims.renew(lease).await.unwrap(), Ownership::Kept);
        assert_eq!(claims.finish(lease).await.unwrap(), Ownership::Kept);
    }
    let mut fresh = won(&claims, "{moving}fresh").await;
    assert_eq!(claims.renew(&mut fresh).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.release(&fresh).await.unwrap(), Ownership::Kept);
    let fresh = won(&claims, "{moving}fresh").await;
    claims
        .mark_done(&key("{moving}marked"), TERMS.ttl, claims.epoch())
        .await
        .unwrap();
    assert_eq!(claims.look(&key("{moving}marked")).await.unwrap(), Sight::Done);

    migration.finish();
    assert!(exists(to, "{moving}fresh") && exists(to, "{moving}marked") && exists(to, left));
    assert_eq!(to.cli(&["PERSIST", &key_of("{moving}abandoned")]), "1");
    assert!(won(&claims, "{moving}abandoned").await.taken_over);
    assert_eq!(claims.release(&abandoned).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.finish(&fresh).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn an_expired_claim_is_taken_over_in_the_middle_of_a_migration() {
    let cluster = shared().await;
    let claims = claims(cluster, AMPLE);
    for id in ["{expired}left", "{expired}moved"] {
        let _ = won(&claims, id).await;
        assert_eq!(cluster.owner(&key_of(id)).cli(&["PERSIST", &key_of(id)]), "1");
    }
    let migration = cluster.migrate(
        &key_of("{expired}"),
        cluster.another_primary(&key_of("{expired}")),
    );
    migration.move_key(&key_of("{expired}moved"));
    for id in ["{expired}left", "{expired}moved"] {
        let lease = won(&claims, id).await;
        assert!(lease.taken_over, "{id}");
        assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    }
    migration.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_crowd_each_event_is_won_once_while_its_slot_moves() {
    const CROWD: usize = 4;
    let cluster = shared().await;
    let (events, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let barrier = Arc::new(Barrier::new(CROWD));
    let mut crowd = JoinSet::new();
    for _ in 0..CROWD {
        let (claims, barrier) = (claims(cluster, AMPLE), Arc::clone(&barrier));
        let (events, stop) = (Arc::clone(&events), Arc::clone(&stop));
        crowd.spawn(async move {
            let mut won = Vec::new();
            for number in 0.. {
                // All at the same event, and all or none at the next one.
                let leads = barrier.wait().await.is_leader();
                if leads {
                    events.store(number, Ordering::Release);
                }
                let claim = claims
                    .claim(&key(&format!("{{crowd}}{number}")), TERMS)
                    .await
                    .unwrap();
                won.extend(matches!(claim, Claim::First(_)).then_some(number));
                let stopped = stop.load(Ordering::Acquire);
                if barrier.wait().await.is_leader() && stopped {
                    events.store(usize::MAX, Ordering::Release);
                }
                barrier.wait().await;
                if events.load(Ordering::Acquire) == usize::MAX {
                    return (won, number);
                }
            }
            (won, 0)
        });
    }
    let more = async || {
        let before = events.load(Ordering::Acquire);
        eventually("the crowd goes on", async || {
            events.load(Ordering::Acquire) >= before + 20
        })
        .await;
    };
    more().await;
    let here = cluster.owner(&key_of("{crowd}"));
    for to in [cluster.another_primary(&key_of("{crowd}")), here] {
        let migration = cluster.migrate(&key_of("{crowd}"), to);
        more().await;
        migration.move_all();
        more().await;
        migration.finish();
        more().await;
    }
    stop.store(true, Ordering::Release);
    let crowd = crowd.join_all().await;
    let last = crowd[0].1;
    let mut won: Vec<_> = crowd.into_iter().flat_map(|(won, _)| won).collect();
    won.sort_unstable();
    assert_eq!(won, (0..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_planned_failover_of_a_node_costs_no_claim() {
    let cluster = shared().await;
    let claims = claims(cluster, AMPLE);
    let owner = cluster.owner(&key_of("evt_planned"));
    let lease = won(&claims, "evt_planned").await;
    cluster.fail_over(owner).await;
    // The new primary has never seen the script.
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    for number in 0..32 {
        let _ = won(&claims, &format!("evt_planned_{number}")).await;
    }
}

#[tokio::test]
async fn a_lost_primary_takes_only_its_own_claims_with_it() {
    let cluster = RedisCluster::start().await;
    let claims = claims(&cluster, AMPLE);
    for id in one_of_each(&cluster, "evt_before_") {
        let _ = won(&claims, &id).await;
    }
    let lost = cluster.owner(&key_of("evt_lost"));
    let others = cluster
        .nodes()
        .iter()
        .filter(|node| node.is_primary() && node.port() != lost.port());
    let others: Vec<_> = others
        .flat_map(|node| ids_of(&cluster, node, "evt_other_", 8))
        .collect();
    let (ids, replica) = (
        ids_of(&cluster, lost, "evt_of_lost_", 8),
        cluster.replica_of(lost),
    );
    lost.kill().await;

    for (id, other) in ids.iter().zip(&others) {
        let lost = claims
            .claim(&key(id), TERMS)
            .await
            .expect_err("its primary is gone");
        assert_eq!(lost.trouble, Trouble::Part, "{lost:?}");
        let _ = won(&claims, other).await;
    }
    for other in &others[ids.len()..] {
        let _ = won(&claims, other).await;
    }
    replica.resume();
    eventually("its replica gets the claims", async || {
        claims.claim(&key("evt_lost"), TERMS).await.is_ok() && exists(replica, "evt_lost")
    })
    .await;
}

#[tokio::test]
async fn a_primary_that_hangs_takes_only_its_own_claims_with_it_also_at_the_start() {
    let cluster = RedisCluster::start().await;
    let patient = claims(&cluster, Duration::from_secs(2));
    let hanging = cluster.owner(&key_of("evt_hanging"));
    let others = cluster
        .nodes()
        .iter()
        .filter(|node| node.is_primary() && node.port() != hanging.port());
    let others: Vec<_> = others
        .flat_map(|node| ids_of(&cluster, node, "evt_other_", 6))
        .collect();
    let ids = ids_of(&cluster, hanging, "evt_of_hanging_", 6);
    let _ = won(&patient, "evt_hanging").await;
    hanging.pause();

    // The node that hangs is the first one that the new store asks.
    let hung = hanging.url();
    let started_now = on(
        [hung.as_str()].into_iter().chain(cluster.urls().split(',')),
        SHORT,
    );
    eventually("a store that is new finds the others", async || {
        started_now.look(&key(&others[0])).await.is_ok()
    })
    .await;
    for (id, other) in ids.iter().zip(&others) {
        let _ = won(&patient, other).await;
        match patient.claim(&key(id), TERMS).await {
            Err(unavailable) => assert_eq!(unavailable.trouble, Trouble::Part, "{unavailable:?}"),
            // Its replica took over.
            Ok(claim) => assert!(matches!(claim, Claim::First(_)), "{claim:?}"),
        }
    }
    eventually("its replica gets the claims", async || {
        patient.claim(&key("evt_hanging_fresh"), TERMS).await.is_ok()
    })
    .await;
    hanging.resume();
    for other in &others[ids.len()..] {
        let _ = won(&patient, other).await;
    }
}

#[tokio::test]
async fn a_primary_that_refuses_takes_only_its_own_claims_with_it() {
    let cluster = RedisCluster::start().await;
    let claims = claims(&cluster, AMPLE);
    let fill = |node: &RedisServer, bytes: &str| {
        assert_eq!(node.cli(&["CONFIG", "SET", "maxmemory", bytes]), "OK");
    };
    let full = cluster.owner(&key_of("evt_full"));
    fill(full, "1");
    let ids = ids_of(&cluster, full, "evt_of_full_", 6);
    let others = cluster
        .nodes()
        .iter()
        .filter(|node| node.is_primary() && node.port() != full.port());
    let others: Vec<_> = others
        .flat_map(|node| ids_of(&cluster, node, "evt_other_", 6))
        .collect();
    for (id, other) in ids.iter().zip(&others) {
        let refused = unavailable(&claims, id).await;
        assert_eq!(refused.trouble, Trouble::Part, "{refused:?}");
        let _ = won(&claims, other).await;
    }

    for node in cluster.nodes() {
        fill(node, "1");
    }
    for id in one_of_each(&cluster, "evt_none_") {
        let _ = unavailable(&claims, &id).await;
    }
    assert_eq!(unavailable(&claims, &ids[0]).await.trouble, Trouble::Store);
    for node in cluster.nodes() {
        fill(node, "0");
    }
    let _ = won(&claims, &ids[0]).await;
}

#[tokio::test]
async fn a_cluster_of_which_nothing_is_left_is_the_stores_trouble() {
    let cluster = RedisCluster::start().await;
    let claims = claims(&cluster, SHORT);
    super::recovered(&claims).await;
    for node in cluster.nodes() {
        node.kill().await;
    }
    eventually("no part is left", async || {
        for id in ["evt_1", "evt_2", "evt_3", "evt_4", "evt_5"] {
            let _ = claims.claim(&key(id), TERMS).await;
        }
        unavailable(&claims, "evt_6").await.trouble == Trouble::Store
    })
    .await;
}

#[tokio::test]
async fn a_closed_store_ends_its_connections_to_every_node() {
    let cluster = RedisCluster::start().await;
    let claims = claims(&cluster, AMPLE);
    let connections = |node: &RedisServer| {
        let clients = node.cli(&["CLIENT", "LIST", "TYPE", "normal"]);
        clients
            .lines()
            .filter(|client| !client.contains("cmd=client|list"))
            .count()
    };
    for id in one_of_each(&cluster, "evt_") {
        let _ = won(&claims, &id).await;
    }
    assert!(cluster.nodes()[..3].iter().all(|node| connections(node) > 0));
    claims.close().await;
    eventually("connections end", async || {
        cluster.nodes().iter().all(|node| connections(node) == 0)
    })
    .await;
    assert!(claims.probe().await.is_err());
}
