//! Redis in its larger forms loses its primary, or moves its keys, under load. No answer is an error, no event takes
//! effect twice, and claims are used again when there is somebody to write them to.

use hookgate_harness::{Proxy, RedisCluster, RedisSentinels, RedisServer, Upstream};
use hookgate_ledger::State;

use crate::crew::Crew;
use crate::deployment::Deployment;
use crate::patience::until;
use crate::provider::{self, Signed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_is_demoted_and_one_that_is_killed_cost_no_event_behind_sentinels() {
    let mut redis = RedisSentinels::start().await;
    for handler in ["inbox", "forward"] {
        let crew = Crew::start(handler, "sentinel", &redis.urls()).await;
        redis.in_sync().await;
        redis.fail_over().await;
        crew.claims_reach(async || redis.primary().await).await;

        redis.in_sync().await;
        let (before, killed) = (crew.fallbacks().await, redis.primary().await.port());
        redis.lose_primary().await;
        assert!(crew.fallbacks().await > before, "the primary was missed");
        crew.claims_reach(async || redis.primary().await).await;

        // The old primary comes back as one, and is made a replica.
        let mut servers = redis.servers_mut().iter_mut();
        let lost = servers
            .find(|server| server.port() == killed)
            .expect("it is ours");
        lost.restart().await;
        redis.in_sync().await;
        crew.claims_reach(async || redis.primary().await).await;
        crew.each_took_effect_once().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_and_a_lost_primary_cost_no_event_on_a_cluster() {
    let mut cluster = RedisCluster::start().await;
    for handler in ["inbox", "forward"] {
        let crew = Crew::start(handler, "cluster", &cluster.urls()).await;
        let event = provider::fresh();
        moves_a_slot(&cluster, &crew, &event).await;
        assert_eq!(crew.fallbacks().await, 0.0, "claims were used all the time");
        let lost = loses_a_primary(&cluster, &crew, &event).await;
        let mut nodes = cluster.nodes_mut().iter_mut();
        let lost = nodes.find(|node| node.port() == lost).expect("it is ours");
        lost.restart().await;
        crew.each_took_effect_once().await;
    }
}

/// The event comes while its slot moves, and again when it has moved.
async fn moves_a_slot(cluster: &RedisCluster, crew: &Crew, event: &Signed) {
    let key = event.claim_key();
    let migration = cluster.migrate(&key, cluster.another_primary(&key));
    let [one, two] = &crew.replicas;
    assert!(one.deliver(event).await.is_ok(false));
    let claimed_here = migration.from().cli(&["EXISTS", &key]);
    assert!(claimed_here.starts_with("ASK "), "{claimed_here}");
    crew.more("events flow while a slot moves").await;
    assert!(two.deliver(event).await.is_ok(true));
    migration.finish();
    assert!(two.deliver(event).await.is_ok(true));
    assert_eq!(cluster.owner(&key).cli(&["EXISTS", &key]), "1");
}

/// The primary that serves the event's claim dies, and its replica takes over. Returns the lost one's port.
async fn loses_a_primary(cluster: &RedisCluster, crew: &Crew, event: &Signed) -> u16 {
    let lost = cluster.owner(&event.claim_key());
    let heir = cluster.replica_of(lost);
    lost.kill().await;
    crew.more("events flow without a primary").await;
    until("the primary is missed", async || crew.fallbacks().await > 0.0).await;
    cluster.promoted(heir).await;
    for replica in &crew.replicas {
        until("claims of its keys are used again", async || {
            let event = fresh_of(cluster, heir);
            assert!(replica.deliver(&event).await.is_ok(false));
            heir.cli(&["EXISTS", &event.claim_key()]) == "1"
        })
        .await;
        assert!(replica.claims_are_up().await, "the others answered all the time");
    }
    lost.port()
}

/// An event whose claim this node serves.
fn fresh_of(cluster: &RedisCluster, node: &RedisServer) -> Signed {
    let events = std::iter::repeat_with(provider::fresh);
    let mut events = events.filter(|event| cluster.owner(&event.claim_key()).port() == node.port());
    events.next().expect("it serves a third of all keys")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_turns_read_only_under_open_connections_costs_no_event() {
    let (old, new) = (RedisServer::start().await, RedisServer::start().await);
    let proxy = Proxy::start(old.addr()).await;
    let crew = Crew::start("inbox", "single", &format!("redis://{}", proxy.addr())).await;
    proxy.lead_to(new.addr());
    assert_eq!(
        old.cli(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]),
        "OK"
    );
    // A claim meets it, which is a fallback, or a done mark, which nobody misses: once on each connection.
    until("the old primary refuses", async || {
        old.cli(&["INFO", "errorstats"]).contains("READONLY")
    })
    .await;
    crew.claims_reach(async || &new).await;
    crew.more("events flow").await;
    crew.each_took_effect_once().await;
}

#[tokio::test]
async fn a_done_mark_that_a_failover_loses_costs_the_ledger_a_query_and_nobody_a_second_effect() {
    for handler in ["inbox", "forward"] {
        let (redis, target) = (RedisSentinels::start().await, Upstream::start().await);
        let deployment = Deployment::with_postgres(Some(&redis.urls())).await;
        let deployment = deployment
            .delivering_to(&target)
            .set("HOOKGATE_HANDLER", handler)
            .set("HOOKGATE_REDIS_MODE", "sentinel");
        let replica = deployment.replica().await;
        let at_primary =
            async |command: &str, event: &Signed| redis.primary().await.cli(&[command, &event.claim_key()]);
        let event = provider::fresh();
        forgotten_by_a_failover(&redis, async |lost| {
            assert!(replica.deliver(&event).await.is_ok(false));
            assert!(lost.cli(&["GET", &event.claim_key()]).starts_with("d:"));
        })
        .await;
        assert_eq!(at_primary("EXISTS", &event).await, "0", "the mark is lost");

        let fresh = provider::fresh();
        until("claims are written again", async || {
            replica.deliver(&fresh).await;
            at_primary("EXISTS", &fresh).await == "1"
        })
        .await;
        assert!(replica.deliver(&event).await.is_ok(true), "{handler}");
        assert!(at_primary("GET", &event).await.starts_with("d:"));
        for event in [&event, &fresh] {
            deployment.wait_for_state(event, State::Done).await;
            assert_eq!(target.count_for(&event.target_id()), 1, "{handler}");
        }
    }
}

/// What `happens` is stored by the primary alone, which then dies: no other server ever hears of it.
async fn forgotten_by_a_failover(redis: &RedisSentinels, happens: impl AsyncFnOnce(&RedisServer)) {
    let lost = redis.primary().await;
    let others = redis
        .servers()
        .iter()
        .filter(|server| server.port() != lost.port());
    others.clone().for_each(RedisServer::pause);
    lost.cli(&["CLIENT", "KILL", "TYPE", "replica"]);
    happens(lost).await;
    lost.kill().await;
    others.for_each(RedisServer::resume);
    redis.replaced(lost.port()).await;
}
