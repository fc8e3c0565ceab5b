//! ACL users: with the documented rights everything works, in each form of Redis. With a right less, or a wrong
//! password, nothing is known, and the cause names what to mend and no secret.

use hookgate_claim::{Claim, Claims, Ownership, RedisClaims, RedisMode, Sight, Trouble};
use hookgate_harness::{RedisCluster, RedisSentinel, RedisSentinels, RedisServer};

use super::{AMPLE, TERMS, claims, key, of_mode, unavailable, won};

/// What an operator must grant, as the documentation says.
const GRANTS: &str = "~webhook:* +set +get +pttl +expire +del +eval +evalsha +info";

/// What a cluster needs besides.
const CLUSTER_GRANTS: &str = "+cluster|slots +asking";

/// What the Sentinels need.
const SENTINEL_GRANTS: &str = "+sentinel|get-master-addr-by-name";

/// What is told of a wrong user or password.
const WRONG: &str = "authentication failed: user or password is wrong";

/// A user `gate` whose password is `s3cret`.
fn allow(command: impl Fn(&[&str]) -> String, grants: &str) {
    let user = ["ACL", "SETUSER", "gate", "reset", "on", ">s3cret"].into_iter();
    let user: Vec<_> = user.chain(grants.split(' ')).collect();
    assert_eq!(command(&user), "OK");
}

fn with_login(url: &str, login: &str) -> String {
    let urls = url
        .split(',')
        .map(|url| url.replace("redis://", &format!("redis://{login}@")));
    urls.collect::<Vec<_>>().join(",")
}

/// Every step of a claim's life on this id.
async fn do_everything(claims: &RedisClaims, server: &RedisServer, id: &str) {
    let mut lease = won(claims, id).await;
    assert_eq!(claims.renew(&mut lease).await.unwrap(), Ownership::Kept);
    assert_eq!(claims.release(&lease).await.unwrap(), Ownership::Kept);
    let lease = won(claims, id).await;
    assert_eq!(server.cli(&["PERSIST", &format!("webhook:stripe:{id}")]), "1");
    assert!(won(claims, id).await.taken_over);
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Lost);
    claims
        .mark_done(&key(id), TERMS.ttl, claims.epoch())
        .await
        .unwrap();
    assert_eq!(claims.look(&key(id)).await.unwrap(), Sight::Done);
    claims.probe().await.unwrap();
    assert_eq!(claims.memory().await.unwrap()[0].policy, "noeviction");
}

/// Nothing is known, for every key, and no secret is told.
async fn check_refused(claims: &RedisClaims, cause: &str) {
    let refused = unavailable(claims, "evt_1").await;
    assert_eq!(refused.cause, cause);
    assert_eq!(refused.trouble, Trouble::Store);
    assert!(refused.possible.is_none(), "nothing was stored");
    assert!(!format!("{refused:?} {refused}").contains("s3cret"));
}

#[tokio::test]
async fn a_user_with_the_documented_grants_can_do_everything() {
    let server = RedisServer::start().await;
    allow(|command| server.cli(command), GRANTS);
    let claims = claims(with_login(&server.url(), "gate:s3cret"), AMPLE);
    do_everything(&claims, &server, "evt_1").await;
}

#[tokio::test]
async fn each_documented_grant_is_needed() {
    let server = RedisServer::start().await;
    for missing in GRANTS
        .split(' ')
        .filter(|grant| grant.starts_with('+') && *grant != "+info")
    {
        let others: Vec<_> = GRANTS.split(' ').filter(|grant| *grant != missing).collect();
        allow(|command| server.cli(command), &others.join(" "));
        server.cli(&["FLUSHALL"]);
        server.cli(&["SCRIPT", "FLUSH"]);
        let claims = claims(with_login(&server.url(), "gate:s3cret"), AMPLE);
        let refused = refusals(&claims).await;
        let right = missing.trim_start_matches('+');
        assert!(
            refused.iter().any(|cause| cause.contains(right)),
            "without {missing}: {refused:?}"
        );
    }
}

/// Why steps of a claim's life could not be done.
async fn refusals(claims: &RedisClaims) -> Vec<String> {
    let mut refused = Vec::new();
    match claims.claim(&key("evt_1"), TERMS).await {
        Ok(Claim::First(mut lease)) => {
            refused.extend(claims.renew(&mut lease).await.err());
            refused.extend(claims.release(&lease).await.err());
        }
        Ok(met) => panic!("nobody else claims it: {met:?}"),
        Err(unavailable) => refused.push(unavailable),
    }
    refused.extend(claims.look(&key("evt_1")).await.err());
    refused.into_iter().map(|unavailable| unavailable.cause).collect()
}

#[tokio::test]
async fn a_wrong_password_is_told_without_showing_it() {
    let server = RedisServer::start_with(&["--requirepass", "right"]).await;
    check_refused(
        &claims(server.url(), AMPLE),
        "NOAUTH: the server wants a password, and the URL has none",
    )
    .await;
    check_refused(&claims(with_login(&server.url(), ":s3cret"), AMPLE), WRONG).await;
    let _ = won(&claims(with_login(&server.url(), ":right"), AMPLE), "evt_1").await;
}

#[tokio::test]
async fn a_cluster_serves_a_user_with_the_documented_grants_also_while_a_slot_moves() {
    let cluster = RedisCluster::start().await;
    for node in cluster.nodes() {
        allow(|command| node.cli(command), &format!("{GRANTS} {CLUSTER_GRANTS}"));
    }
    let urls = with_login(&cluster.urls(), "gate:s3cret");
    let claims = of_mode(RedisMode::Cluster, &urls, AMPLE);
    for id in ["evt_1", "evt_2", "evt_3", "evt_4"] {
        let owner = cluster.owner(&format!("webhook:stripe:{id}"));
        do_everything(&claims, owner, id).await;
    }
    let migration = cluster.migrate(
        "webhook:stripe:evt_5",
        cluster.another_primary("webhook:stripe:evt_5"),
    );
    let lease = won(&claims, "evt_5").await;
    assert_eq!(claims.finish(&lease).await.unwrap(), Ownership::Kept);
    migration.finish();

    // Without the right to ask, claims in a slot that moves cannot be told, and the cause says which right it is.
    for node in cluster.nodes() {
        allow(|command| node.cli(command), &format!("{GRANTS} +cluster|slots"));
    }
    let migration = cluster.migrate(
        "webhook:stripe:evt_6",
        cluster.another_primary("webhook:stripe:evt_6"),
    );
    let refused = unavailable(&of_mode(RedisMode::Cluster, &urls, AMPLE), "evt_6").await;
    assert_eq!(refused.cause, "NOPERM: the user may not run asking");
    migration.finish();

    for node in cluster.nodes() {
        allow(|command| node.cli(command), GRANTS);
    }
    let blind = of_mode(RedisMode::Cluster, &urls, AMPLE);
    check_refused(&blind, "NOPERM: the user may not run cluster|slots").await;
    let wrong = with_login(&cluster.urls(), "gate:s3cret2");
    check_refused(&of_mode(RedisMode::Cluster, wrong, AMPLE), WRONG).await;
}

#[tokio::test]
async fn sentinels_and_servers_have_log_ins_of_their_own() {
    let redis = RedisSentinels::start().await;
    for server in redis.servers() {
        allow(|command| server.cli(command), GRANTS);
    }
    for sentinel in redis.sentinels() {
        allow(|command| sentinel.cli(command), SENTINEL_GRANTS);
        let user = ["ACL", "SETUSER", "gate", "resetpass", ">s3cret2"];
        assert_eq!(sentinel.cli(&user), "OK");
    }
    let with = |login: &str, sentinel_password: &str| {
        let url = with_login(&redis.sentinels()[0].url(), login);
        let master = RedisSentinel::MASTER_NAME;
        let own = format!("sentinel_user=gate&sentinel_password={sentinel_password}");
        of_mode(RedisMode::Sentinel, format!("{url}?master={master}&{own}"), AMPLE)
    };
    do_everything(&with("gate:s3cret", "s3cret2"), redis.primary().await, "evt_1").await;
    check_refused(&with("gate:s3cret", "s3cret9"), &format!("a Sentinel: {WRONG}")).await;
    check_refused(&with("gate:s3cret2", "s3cret2"), WRONG).await;

    for sentinel in redis.sentinels() {
        assert_eq!(sentinel.cli(&["ACL", "SETUSER", "gate", "-@all"]), "OK");
    }
    let cause = "a Sentinel: NOPERM: the user may not run sentinel|get-master-addr-by-name";
    check_refused(&with("gate:s3cret", "s3cret2"), cause).await;
}

#[tokio::test]
async fn a_user_that_may_not_touch_the_keys_is_told_so() {
    let server = RedisServer::start().await;
    allow(|command| server.cli(command), "~other:* +@all");
    let claims = claims(with_login(&server.url(), "gate:s3cret"), AMPLE);
    check_refused(
        &claims,
        "NOPERM: the user may not use keys that begin with webhook:",
    )
    .await;
}
