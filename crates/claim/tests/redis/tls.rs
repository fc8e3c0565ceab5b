//! `rediss://` in each form of Redis, with certificates of our own authority.

use hookgate_claim::{Claims, Ownership, RedisMode};
use hookgate_harness::{RedisCluster, RedisOptions, RedisSentinel, RedisSentinels, RedisServer};

use super::certificates::{told, trusting, written};
use super::{AMPLE, of_mode, unavailable, won};

fn keys(servers: &[RedisServer]) -> usize {
    let keys = servers
        .iter()
        .filter(|server| server.cli(&["ROLE"]).starts_with("master"));
    keys.map(|server| server.cli(&["DBSIZE"]).parse::<usize>().unwrap())
        .sum()
}

#[tokio::test]
async fn claims_travel_in_tls_and_only_to_whom_we_trust() {
    let certificates = written();
    let options = RedisOptions {
        tls: Some(certificates.path()),
        ..RedisOptions::default()
    };
    let server = RedisServer::start_of(options).await;
    let url = format!("rediss://localhost:{}", server.tls_port());
    let distrusted = unavailable(&of_mode(RedisMode::Single, &url, AMPLE), "evt_1").await;
    assert!(distrusted.possible.is_none(), "nothing was sent");
    assert_eq!(server.cli(&["DBSIZE"]), "0");

    trusting(
        certificates.path(),
        "tls::claims_over_tls",
        &format!("single {url}"),
    );
    assert_eq!(keys(&[server]), 9);
}

#[tokio::test]
async fn claims_travel_in_tls_to_the_primary_that_sentinels_name_over_tls() {
    let certificates = written();
    let options = RedisOptions {
        tls: Some(certificates.path()),
        ..RedisOptions::default()
    };
    let redis = RedisSentinels::start_of(options).await;
    let [one, two, three] = redis.sentinels() else {
        panic!("three sentinels")
    };
    let url = format!(
        "rediss://localhost:{}?master={}",
        one.tls_port(),
        RedisSentinel::MASTER_NAME
    );
    let urls = format!(
        "{url},rediss://localhost:{},rediss://localhost:{}",
        two.tls_port(),
        three.tls_port()
    );
    let distrusted = unavailable(&of_mode(RedisMode::Sentinel, &urls, AMPLE), "evt_1").await;
    assert!(distrusted.cause.starts_with("a Sentinel: "), "{distrusted}");

    trusting(
        certificates.path(),
        "tls::claims_over_tls",
        &format!("sentinel {urls}"),
    );
    assert_eq!(keys(redis.servers()), 9);
}

#[tokio::test]
async fn claims_travel_in_tls_to_every_node_of_a_cluster() {
    let certificates = written();
    let options = RedisOptions {
        tls: Some(certificates.path()),
        ..RedisOptions::default()
    };
    let cluster = RedisCluster::start_of(options).await;
    let url = format!("rediss://localhost:{}", cluster.nodes()[0].tls_port());
    let distrusted = unavailable(&of_mode(RedisMode::Cluster, &url, AMPLE), "evt_1").await;
    assert!(distrusted.possible.is_none(), "nothing was sent");

    trusting(
        certificates.path(),
        "tls::claims_over_tls",
        &format!("cluster {url}"),
    );
    assert_eq!(keys(cluster.nodes()), 9);
    let each = |node: &RedisServer| keys(std::slice::from_ref(node)) > 0;
    assert!(cluster.nodes()[..3].iter().all(each), "each primary got some");
}

#[tokio::test]
#[ignore = "run by the tests above"]
async fn claims_over_tls() {
    let told = told();
    let (mode, urls) = told.split_once(' ').unwrap();
    let mode = match mode {
        "single" => RedisMode::Single,
        "sentinel" => RedisMode::Sentinel,
        _ => RedisMode::Cluster,
    };
    let claims = of_mode(mode, urls, AMPLE);
    for number in 0..8 {
        let lease = won(&claims, &format!("evt_{number}")).await;
        assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    }
    claims.probe().await.unwrap();
}
