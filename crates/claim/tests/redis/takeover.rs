//! Takeover goes by the server's clock at the moment of the takeover, not by what a reader saw before.

use hookgate_claim::{Claim, Claims, Ownership};
use hookgate_harness::{Fault, Proxy, RedisServer};

use super::{AMPLE, TERMS, key, on_one_connection, url_of, won};

const EVENT: &str = "evt_1";
const KEY: &str = "webhook:stripe:evt_1";

/// Makes the claim under [`KEY`] one second older than its lease.
fn expire(server: &RedisServer) {
    let left = TERMS.ttl - TERMS.lease - std::time::Duration::from_secs(1);
    assert_eq!(server.cli(&["PEXPIRE", KEY, &left.as_millis().to_string()]), "1");
}

/// What a reader saw who looked when `value` had this much life left.
fn seen(value: &str, left_ms: u64) -> Fault {
    Fault::ReplyWith(format!("${}\r\n{value}\r\n:{left_ms}\r\n", value.len()).into_bytes())
}

#[tokio::test]
async fn a_claim_past_its_lease_is_taken_over_with_its_full_life() {
    let server = RedisServer::start().await;
    let claims = on_one_connection(server.url(), AMPLE);
    let late = won(&claims, EVENT).await;
    expire(&server);
    let successor = won(&claims, EVENT).await;
    assert!(successor.taken_over);
    assert!(server.cli(&["TTL", KEY]).parse::<u64>().unwrap() > 604_000);
    assert_eq!(claims.release(&late).await.unwrap(), Ownership::Lost);
    assert_eq!(claims.release(&successor).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_claim_without_expiry_is_taken_over() {
    let server = RedisServer::start().await;
    let claims = on_one_connection(server.url(), AMPLE);
    let _ = won(&claims, EVENT).await;
    assert_eq!(server.cli(&["PERSIST", KEY]), "1");
    assert!(won(&claims, EVENT).await.taken_over);
}

#[tokio::test]
async fn a_renewed_claim_starts_its_age_again() {
    let server = RedisServer::start().await;
    let claims = on_one_connection(server.url(), AMPLE);
    let mut lease = won(&claims, EVENT).await;
    expire(&server);
    assert_eq!(claims.renew(&mut lease).await.unwrap(), Ownership::Kept);
    assert!(matches!(
        claims.claim(&key(EVENT), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_claim_renewed_since_it_was_seen_expired_stays() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let lease = won(&claims, EVENT).await;
    proxy.set_for(b"NX", seen(&server.cli(&["GET", KEY]), 1_000));
    assert!(matches!(
        claims.claim(&key(EVENT), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(proxy.fault(), Fault::None, "the stale view was shown");
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
}

#[tokio::test]
async fn a_claim_replaced_since_it_was_seen_stays() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let first = won(&claims, EVENT).await;
    let stale = seen(&server.cli(&["GET", KEY]), 1_000);
    assert_eq!(claims.release(&first).await.unwrap(), Ownership::Kept);
    let second = won(&claims, EVENT).await;

    proxy.set_for(b"NX", stale.clone());
    assert!(matches!(
        claims.claim(&key(EVENT), TERMS).await.unwrap(),
        Claim::InFlight { .. }
    ));
    assert_eq!(claims.finish(&second).await.unwrap(), Ownership::Kept);

    proxy.set_for(b"NX", stale);
    assert!(matches!(
        claims.claim(&key(EVENT), TERMS).await.unwrap(),
        Claim::Done
    ));
}

#[tokio::test]
async fn a_claim_gone_since_it_was_seen_is_free() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    let claims = on_one_connection(url_of(&proxy), AMPLE);
    let first = won(&claims, EVENT).await;
    proxy.set_for(b"NX", seen(&server.cli(&["GET", KEY]), 1_000));
    assert_eq!(claims.release(&first).await.unwrap(), Ownership::Kept);
    assert!(!won(&claims, EVENT).await.taken_over);
}
