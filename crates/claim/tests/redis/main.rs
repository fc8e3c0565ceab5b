//! What claims owe to Redis in particular: what goes over the wire, and what happens when the server, the network
//! or the configuration fails. Each test has a server of its own, which it may harm.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is test code, where a panic is the finding"
)]

mod certificates;
mod cluster;
mod faults;
mod refusals;
mod sentinel;
mod settings;
mod takeover;
mod tls;
mod users;
mod wire;

use std::time::Duration;

use hookgate_claim::{
    Claim, Claims, Epoch, Lease, RedisClaims, RedisMode, RedisSettings, Terms, Unavailable,
};
use hookgate_harness::{PATIENCE, Proxy};
use hookgate_webhook::{EventId, EventKey, SourceName};

/// A limit that a healthy server on a busy machine keeps.
const AMPLE: Duration = Duration::from_secs(10);

/// The limit that operators have, for tests in which nothing answers.
const SHORT: Duration = Duration::from_millis(100);

/// A week, and a lease that no test outlives.
const TERMS: Terms = Terms {
    ttl: Duration::from_secs(604_800),
    lease: Duration::from_secs(600),
};

fn key(id: &str) -> EventKey {
    EventKey {
        source: SourceName::parse("stripe").unwrap(),
        id: EventId::parse(id).unwrap(),
    }
}

fn claims(url: impl Into<String>, limit: Duration) -> RedisClaims {
    of_mode(RedisMode::Single, url, limit)
}

/// At one URL, or several separated by commas.
fn of_mode(mode: RedisMode, url: impl Into<String>, limit: Duration) -> RedisClaims {
    let urls = url.into();
    let urls = urls.split(',').map(|url| url.to_owned().into()).collect();
    RedisClaims::new(RedisSettings::new(mode, urls, limit), Epoch::default()).unwrap()
}

/// All on one connection, so that faults strike it for sure.
fn on_one_connection(url: impl Into<String>, limit: Duration) -> RedisClaims {
    let settings = RedisSettings::new(RedisMode::Single, vec![url.into().into()], limit);
    RedisClaims::new(
        RedisSettings {
            connections: 1,
            ..settings
        },
        Epoch::default(),
    )
    .unwrap()
}

fn url_of(proxy: &Proxy) -> String {
    format!("redis://{}", proxy.addr())
}

/// Claims what must be free.
async fn won(claims: &RedisClaims, id: &str) -> Lease {
    match claims.claim(&key(id), TERMS).await.unwrap() {
        Claim::First(lease) => lease,
        lost => panic!("{id} should have been free, but: {lost:?}"),
    }
}

async fn unavailable(claims: &RedisClaims, id: &str) -> Unavailable {
    claims
        .claim(&key(id), TERMS)
        .await
        .expect_err("the store should not have answered")
}

/// Waits until the store answers claims again.
async fn recovered(claims: &RedisClaims) {
    eventually("claims heal by themselves", async || claims.probe().await.is_ok()).await;
}

/// Waits for what must come.
async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let held = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let held = tokio::time::timeout(PATIENCE, held).await;
    assert!(held.is_ok(), "waited in vain: {what}");
}
