//! Many Redis servers as one: a cluster whose slots move and whose primaries fail, and a primary watched by
//! sentinels.

use hookgate_harness::{RedisCluster, RedisSentinels};

#[tokio::test]
async fn a_slot_moves_key_by_key_and_then_as_a_whole() {
    let cluster = RedisCluster::start().await;
    let (from, to) = (cluster.owner("{tag}1"), cluster.another_primary("{tag}1"));
    for number in 1..=3 {
        assert_eq!(from.cli(&["SET", &format!("{{tag}}{number}"), "v"]), "OK");
    }
    assert!(to.cli(&["GET", "{tag}1"]).starts_with("MOVED "));

    let migration = cluster.migrate("{tag}1", to);
    migration.move_key("{tag}1");
    assert!(from.cli(&["GET", "{tag}1"]).starts_with("ASK "));
    assert_eq!(from.cli(&["GET", "{tag}2"]), "v");
    migration.finish();
    assert!(from.cli(&["GET", "{tag}2"]).starts_with("MOVED "));
    assert_eq!(to.cli(&["GET", "{tag}3"]), "v");
    assert_eq!(cluster.owner("{tag}1").port(), to.port());
}

#[tokio::test]
async fn a_lost_primary_of_a_cluster_is_replaced_by_its_replica() {
    let mut cluster = RedisCluster::start().await;
    let primary = cluster.owner("k").port();
    let replica = cluster.replica_of(cluster.owner("k")).port();
    cluster.owner("k").kill().await;
    let promoted = cluster.nodes().iter().find(|node| node.port() == replica);
    cluster.promoted(promoted.unwrap()).await;
    assert_eq!(cluster.owner("k").port(), replica);

    let lost = cluster.nodes_mut().iter_mut().find(|node| node.port() == primary);
    lost.unwrap().restart().await;
    cluster.fail_over(cluster.owner("other")).await;
}

#[tokio::test]
async fn two_of_three_sentinels_replace_a_lost_primary() {
    let redis = RedisSentinels::start().await;
    let first = redis.primary().await.port();
    redis.lose_primary().await;
    let second = redis.primary().await.port();
    assert_ne!(second, first);
    assert_eq!(redis.primary().await.cli(&["SET", "k", "v"]), "OK");
}
