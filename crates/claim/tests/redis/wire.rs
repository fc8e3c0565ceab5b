//! What goes over the wire, seen by the server itself and by a proxy that counts.

use std::sync::Arc;

use hookgate_claim::{Claim, Claims, Ownership};
use hookgate_harness::{Fault, Proxy, RedisServer};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::{AMPLE, TERMS, claims, key, on_one_connection, url_of, won};

/// The command of a MONITOR line, without time and client.
fn command(line: &str) -> &str {
    line.split_once("] ").unwrap().1
}

#[tokio::test]
async fn a_fresh_claim_is_one_set_and_one_pttl_and_nothing_else() {
    let server = RedisServer::start().await;
    let claims = on_one_connection(server.url(), AMPLE);
    claims.probe().await.unwrap();
    let monitor = server.monitor().await;
    let _ = won(&claims, "evt_1").await;
    let commands = monitor.commands().await;
    let [set, pttl] = commands.as_slice() else {
        panic!("two commands, not {commands:?}")
    };
    assert!(
        command(set).starts_with(r#""SET" "webhook:stripe:evt_1" "i:0-0:604800000:600000:"#),
        "{set}"
    );
    assert!(command(set).ends_with(r#"" "NX" "GET" "EX" "604800""#), "{set}");
    assert_eq!(command(pttl), r#""PTTL" "webhook:stripe:evt_1""#);
}

#[tokio::test]
async fn every_step_is_one_round_trip() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    // The server has to learn each script once.
    let mut lease = won(&claims, "evt_warm").await;
    assert_eq!(claims.renew(&mut lease).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
    assert_eq!(
        claims.finish(&won(&claims, "evt_warm").await).await.unwrap(),
        Ownership::Kept
    );

    let mut writes = proxy.client_writes();
    let mut one_more = |step: &str| {
        assert_eq!(proxy.client_writes(), writes + 1, "{step}");
        writes += 1;
    };
    let mut lease = won(&claims, "evt_1").await;
    one_more("fresh claim");
    assert!(matches!(
        claims.claim(&key("evt_1"), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    one_more("claim of what is in flight");
    let _ = claims.look(&key("evt_1")).await.unwrap();
    one_more("look");
    let _ = claims.renew(&mut lease).await.unwrap();
    one_more("renewal");
    let _ = claims.finish(&lease).await.unwrap();
    one_more("finish");
    assert!(matches!(
        claims.claim(&key("evt_1"), TERMS).await.unwrap(),
        Claim::Done
    ));
    one_more("claim of what is done");
    claims
        .mark_done(&key("evt_1"), TERMS.ttl, claims.epoch())
        .await
        .unwrap();
    one_more("done mark");
    let _ = claims.release(&lease).await.unwrap();
    one_more("release");
    claims.probe().await.unwrap();
    one_more("probe");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_shares_a_few_connections() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = Arc::new(claims(url_of(&proxy), AMPLE));
    let barrier = Arc::new(Barrier::new(64));
    let mut crowd = JoinSet::new();
    for number in 0..64 {
        let (claims, barrier) = (Arc::clone(&claims), Arc::clone(&barrier));
        crowd.spawn(async move {
            barrier.wait().await;
            won(&claims, &format!("evt_{number}")).await
        });
    }
    crowd.join_all().await;
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn a_server_before_7_is_found_out_once() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    proxy.set_for(b"GET", Fault::ReplyWith(b"-ERR syntax error\r\n:-2\r\n".to_vec()));
    let monitor = server.monitor().await;
    let first = won(&claims, "evt_1").await;
    let second = won(&claims, "evt_2").await;
    assert_eq!(proxy.fault(), Fault::None);
    let commands = monitor.commands().await;
    let sets: Vec<_> = commands.iter().filter(|line| line.contains(r#""SET""#)).collect();
    assert_eq!(sets.len(), 2, "{commands:?}");
    for set in sets {
        assert!(set.ends_with(r#"" "NX" "EX" "604800""#), "{set}");
    }
    assert!(matches!(
        claims.claim(&key("evt_1"), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(claims.finish(&first).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.release(&second).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_done_mark_lives_for_seven_days() {
    let server = RedisServer::start().await;
    let claims = claims(server.url(), AMPLE);
    let finished = won(&claims, "evt_finished").await;
    assert_eq!(claims.finish(&finished).await.unwrap(), Ownership::Kept);
    claims
        .mark_done(&key("evt_marked"), TERMS.ttl, claims.epoch())
        .await
        .unwrap();
    for id in ["evt_finished", "evt_marked"] {
        let key = format!("webhook:stripe:{id}");
        assert_eq!(server.cli(&["GET", &key]), "d:0-0");
        let ttl: u64 = server.cli(&["TTL", &key]).parse().unwrap();
        assert!((604_000..=604_800).contains(&ttl), "{ttl}");
    }
}

#[tokio::test]
async fn a_hostile_id_is_one_key_and_no_command() {
    let server = RedisServer::start().await;
    let claims = on_one_connection(server.url(), AMPLE);
    claims.probe().await.unwrap();
    let long = "x".repeat(255);
    let ids = [
        "*",
        "..",
        "a:b",
        " ",
        "'; FLUSHALL",
        "{a}{b}",
        "🦀",
        "\\r\\nSET x y",
        "$3",
        &long,
    ];
    let before: usize = server.cli(&["DBSIZE"]).parse().unwrap();
    let monitor = server.monitor().await;
    for id in ids {
        let _ = won(&claims, id).await;
    }
    assert_eq!(monitor.commands().await.len(), 2 * ids.len());
    assert_eq!(
        server.cli(&["DBSIZE"]).parse::<usize>().unwrap(),
        before + ids.len()
    );
    for id in ids {
        assert_eq!(
            server.cli(&["EXISTS", &format!("webhook:stripe:{id}")]),
            "1",
            "{id}"
        );
    }
}

#[tokio::test]
async fn a_probe_leaves_one_short_lived_key_outside_of_every_source() {
    let server = RedisServer::start().await;
    let claims = claims(server.url(), AMPLE);
    claims.probe().await.unwrap();
    claims.probe().await.unwrap();
    let keys = server.cli(&["KEYS", "*"]);
    assert!(
        keys.starts_with("webhook:_probe:") && keys.lines().count() == 1,
        "{keys}"
    );
    assert!((1..=10).contains(&server.cli(&["TTL", &keys]).parse::<u64>().unwrap()));
}

#[tokio::test]
async fn a_closed_store_ends_its_connections() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = claims(url_of(&proxy), AMPLE);
    let _ = won(&claims, "evt_1").await;
    claims.close().await;
    let ended = async {
        while proxy.connections() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(hookgate_harness::PATIENCE, ended)
        .await
        .expect("connections end");
    assert!(claims.probe().await.is_err());
}
