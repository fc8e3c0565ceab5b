//! The server answers, but not what a claim needs: unavailable with its short reason, and never done.

use hookgate_claim::{Claim, Claims, NodeMemory, Ownership, Trouble};
use hookgate_harness::{Fault, Proxy, RedisServer};

use super::{AMPLE, TERMS, claims, key, on_one_connection, unavailable, url_of, won};

const KEY: &str = "webhook:stripe:evt_1";

async fn check_refused(url: String, cause: &str) {
    let refused = unavailable(&claims(url, AMPLE), "evt_1").await;
    assert_eq!(refused.cause, cause);
    assert_eq!(refused.trouble, Trouble::Store);
    assert!(refused.possible.is_none(), "nothing was stored");
    assert!(!format!("{refused:?} {refused}").contains("s3cret"));
}

#[tokio::test]
async fn a_replica_refuses_writes() {
    let primary = RedisServer::start().await;
    let replica = RedisServer::start_replica_of(&primary).await;
    check_refused(replica.url(), "READONLY").await;
    assert!(claims(replica.url(), AMPLE).probe().await.is_err());
}

#[tokio::test]
async fn a_full_server_refuses_claims_but_lets_go_of_them() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]).await;
    let claims = claims(server.url(), AMPLE);
    let lease = won(&claims, "evt_held").await;
    assert_eq!(server.cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
    check_refused(server.url(), "OOM").await;
    assert!(claims.probe().await.is_err());
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_loading_server_is_unavailable() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let loading = "-LOADING Redis is loading the dataset in memory\r\n";
    proxy.set_for(b"NX", Fault::ReplyWith(loading.repeat(2).into_bytes()));
    let refused = unavailable(&claims, "evt_1").await;
    assert_eq!(
        (refused.trouble, refused.cause.as_str()),
        (Trouble::Store, "LOADING")
    );
    let _ = won(&claims, "evt_1").await;
}

#[tokio::test]
async fn a_key_of_another_type_is_unknown_and_not_done() {
    let server = RedisServer::start().await;
    server.cli(&["LPUSH", KEY, "d:0-0"]);
    for claims in [
        claims(server.url(), AMPLE),
        claims(server.url(), AMPLE).assuming_redis_before_7(),
    ] {
        let unknown = unavailable(&claims, "evt_1").await;
        assert_eq!(unknown.cause, "WRONGTYPE");
        assert!(unknown.possible.is_none());
        assert_eq!(unknown.trouble, Trouble::Key);
        let unseen = claims.look(&key("evt_1")).await.unwrap_err();
        assert_eq!(unseen.trouble, Trouble::Key);
    }
}

#[tokio::test]
async fn a_key_that_changed_its_type_under_a_claim_is_the_keys_trouble_at_every_step() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let mut lease = won(&claims, "evt_1").await;
    server.cli(&["DEL", KEY]);
    server.cli(&["LPUSH", KEY, "x"]);
    assert_eq!(claims.renew(&mut lease).await.unwrap_err().trouble, Trouble::Key);
    assert_eq!(claims.finish(&lease).await.unwrap_err().trouble, Trouble::Key);
    assert_eq!(claims.release(&lease).await.unwrap_err().trouble, Trouble::Key);

    // Redis before 7.0 wraps a script's error into another.
    let before_7 =
        "-ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation against a key\r\n";
    proxy.set_for(b"EVALSHA", Fault::ReplyWith(before_7.into()));
    assert_eq!(claims.release(&lease).await.unwrap_err().trouble, Trouble::Key);
    assert_eq!(proxy.fault(), Fault::None);
}

#[tokio::test]
async fn a_value_that_cannot_be_read_is_unknown_and_not_done() {
    let server = RedisServer::start().await;
    let claims = claims(server.url(), AMPLE);
    for value in [
        "",
        "done",
        "1",
        "d:1",
        "d:0-0 ",
        "D:0-0",
        "i:0-0:1:1",
        "\u{1f980}",
        "e:0-0",
    ] {
        server.cli(&["SET", KEY, value]);
        let unknown = unavailable(&claims, "evt_1").await;
        assert!(unknown.possible.is_none(), "{value:?}");
        assert_eq!(unknown.trouble, Trouble::Key, "{value:?}");
        let unseen = claims.look(&key("evt_1")).await.unwrap_err();
        assert_eq!(unseen.trouble, Trouble::Key, "{value:?}");
        assert_eq!(server.cli(&["GET", KEY]), value, "what is not ours stays");
    }
    // What the ledger knows to be done may be said over anything.
    claims
        .mark_done(&key("evt_1"), TERMS.ttl, claims.epoch())
        .await
        .unwrap();
    assert!(matches!(
        claims.claim(&key("evt_1"), TERMS).await.unwrap(),
        Claim::Done
    ));
}

#[tokio::test]
async fn what_a_server_does_with_a_full_memory_is_told() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru", "--maxmemory", "10mb"]).await;
    let expected = NodeMemory {
        policy: "allkeys-lru".to_owned(),
        bytes_max: 10 << 20,
    };
    assert_eq!(claims(server.url(), AMPLE).memory().await.unwrap(), [expected]);
}
