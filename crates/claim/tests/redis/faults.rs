//! The server or the network fails: an error within the limit, never a wrong answer, and healing by itself.

use std::time::Duration;

use hookgate_claim::{Claim, Claims, Ownership, RedisMode, Sight, Trouble};
use hookgate_harness::{Fault, Proxy, RedisSentinel, RedisServer, Then};

use super::{
    AMPLE, SHORT, TERMS, claims, key, of_mode, on_one_connection, recovered, unavailable, url_of, won,
};

const KEY: &str = "webhook:stripe:evt_1";

#[tokio::test]
async fn a_claim_whose_reply_stays_out_may_stand_and_is_released_by_its_lease() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), SHORT);
    recovered(&claims).await;
    proxy.set_for(b"NX", Fault::DropNextReply { then: Then::Silence });
    let unknown = unavailable(&claims, "evt_1").await;
    assert_eq!(unknown.cause, "no answer within 100ms");
    assert_eq!(unknown.trouble, Trouble::Store);
    assert!(server.cli(&["GET", KEY]).starts_with("i:"), "it was applied");

    let possible = unknown.possible.expect("it may stand");
    recovered(&claims).await;
    assert!(matches!(
        claims.claim(&key("evt_1"), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(claims.release(&possible).await.unwrap(), Ownership::Kept);
    let _ = won(&claims, "evt_1").await;
}

#[tokio::test]
async fn a_claim_whose_connection_broke_recognises_itself() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    for claims in [
        on_one_connection(url_of(&proxy), AMPLE),
        on_one_connection(url_of(&proxy), AMPLE).assuming_redis_before_7(),
    ] {
        claims.probe().await.unwrap();
        proxy.set_for(b"NX", Fault::DropNextReply { then: Then::Reset });
        let lease = won(&claims, "evt_1").await;
        assert_eq!(proxy.fault(), Fault::None, "the reply was lost");
        assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
    }
}

#[tokio::test]
async fn a_release_whose_connection_broke_does_not_pretend_to_know() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let lease = won(&claims, "evt_1").await;
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
    let lease = won(&claims, "evt_1").await;
    proxy.set_for(b"EVALSHA", Fault::DropNextReply { then: Then::Reset });
    let unknown = claims.release(&lease).await.unwrap_err();
    assert!(unknown.possible.is_none());
    assert_eq!(
        claims.look(&key("evt_1")).await.unwrap(),
        Sight::Free,
        "and yet it was released"
    );
}

#[tokio::test]
async fn a_takeover_whose_reply_stays_out_may_stand() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), SHORT);
    recovered(&claims).await;
    let _ = won(&claims, "evt_1").await;
    assert_eq!(server.cli(&["PERSIST", KEY]), "1");
    proxy.set_for(b"EVAL", Fault::DropNextReply { then: Then::Silence });
    // The first try only finds that the server does not know the script, which changes nothing.
    let possible = unavailable(&claims, "evt_1")
        .await
        .possible
        .expect("it may stand");
    recovered(&claims).await;
    assert_eq!(claims.release(&possible).await.unwrap(), Ownership::Lost);

    assert!(won(&claims, "evt_1").await.taken_over);
    assert_eq!(server.cli(&["PERSIST", KEY]), "1");
    proxy.set_for(b"EVALSHA", Fault::DropNextReply { then: Then::Silence });
    let possible = unavailable(&claims, "evt_1")
        .await
        .possible
        .expect("it may stand");
    recovered(&claims).await;
    assert_eq!(claims.release(&possible).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_hanging_server_is_an_error_within_the_limit_until_it_goes_on() {
    let server = RedisServer::start().await;
    let claims = claims(server.url(), SHORT);
    recovered(&claims).await;
    server.pause();
    for number in 0..8 {
        let hanging = unavailable(&claims, &format!("evt_{number}")).await;
        assert!(hanging.cause.ends_with("within 100ms"), "{}", hanging.cause);
    }
    server.resume();
    recovered(&claims).await;
    let lease = won(&claims, "evt_fresh").await;
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn silence_on_the_network_is_an_error_within_the_limit_until_it_ends() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = claims(url_of(&proxy), SHORT);
    recovered(&claims).await;
    proxy.set(Fault::Blackhole);
    for number in 0..8 {
        assert!(
            unavailable(&claims, &format!("evt_{number}"))
                .await
                .cause
                .ends_with("within 100ms")
        );
    }
    proxy.set(Fault::None);
    recovered(&claims).await;
    let _ = won(&claims, "evt_fresh").await;
}

#[tokio::test]
async fn a_store_is_built_while_the_server_hangs() {
    let server = RedisServer::start().await;
    server.pause();
    let claims = claims(server.url(), SHORT);
    let hanging = unavailable(&claims, "evt_1").await;
    assert_eq!(hanging.cause, "no connection within 100ms");
    assert!(hanging.possible.is_none(), "nothing was sent");
    server.resume();
    recovered(&claims).await;
    let _ = won(&claims, "evt_1").await;
}

#[tokio::test]
async fn a_store_is_built_while_the_server_is_down() {
    let mut server = RedisServer::start().await;
    server.kill().await;
    let claims = claims(server.url(), AMPLE);
    let down = unavailable(&claims, "evt_1").await;
    assert_eq!(down.cause, "connection refused");
    assert!(down.possible.is_none(), "nothing was sent");
    server.restart().await;
    let _ = won(&claims, "evt_1").await;
}

#[tokio::test]
async fn a_restarted_server_costs_no_claim() {
    let mut server = RedisServer::start().await;
    let claims = claims(server.url(), AMPLE);
    // Several times over each connection, with scripts that the restarted server has forgotten.
    for round in 0..2 {
        for number in 0..8 {
            let lease = won(&claims, &format!("evt_{number}")).await;
            assert_eq!(
                claims.finish(&lease).await.unwrap(),
                Ownership::Kept,
                "round {round}"
            );
        }
        server.restart().await;
    }
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_no_claim() {
    let server = RedisServer::start().await;
    let claims = claims(server.url(), AMPLE);
    for number in 0..16 {
        let lease = won(&claims, &format!("evt_{number}")).await;
        server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        let mut lease = lease;
        assert_eq!(claims.renew(&mut lease).await.unwrap(), Ownership::Kept);
    }
}

#[tokio::test]
async fn a_connection_whose_server_was_demoted_is_left() {
    let (server, primary) = (RedisServer::start().await, RedisServer::start().await);
    let claims = on_one_connection(server.url(), AMPLE);
    let connection = || {
        let clients = server.cli(&["CLIENT", "LIST", "TYPE", "normal"]);
        let ours = clients.lines().find(|client| client.contains(" cmd=pttl "));
        ours.and_then(|client| client.split(' ').next())
            .map(str::to_owned)
    };
    let _ = won(&claims, "evt_before").await;
    let before = connection().expect("it is open");

    assert_eq!(
        server.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]),
        "OK"
    );
    assert_eq!(unavailable(&claims, "evt_after").await.cause, "READONLY");
    assert_eq!(server.cli(&["REPLICAOF", "NO", "ONE"]), "OK");
    let _ = won(&claims, "evt_after").await;
    assert_ne!(connection().expect("a new one"), before);
}

#[tokio::test]
async fn after_a_failover_claims_go_to_the_new_primary() {
    let old = RedisServer::start().await;
    let new = RedisServer::start_replica_of(&old).await;
    let sentinel = RedisSentinel::start(&old).await;
    let url = format!("{}?master={}", sentinel.url(), RedisSentinel::MASTER_NAME);
    let claims = of_mode(RedisMode::Sentinel, url, AMPLE);
    let _ = won(&claims, "evt_before").await;
    sentinel.fail_over().await;
    // The old primary turns read-only under connections that stay open.
    let moved = async {
        while new.cli(&["EXISTS", "webhook:stripe:evt_after"]) != "1" {
            let _ = claims.claim(&key("evt_after"), TERMS).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(hookgate_harness::PATIENCE, moved)
        .await
        .expect("claims follow the name");
}
