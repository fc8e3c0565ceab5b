//! Redis that runs out of memory and throws claims away, or has nothing left to throw away: the ledger knows.

use hookgate_harness::{Answer, Gate, RedisServer, Upstream};

use crate::deployment::Deployment;
use crate::gateway::{Replica, Sent};
use crate::patience::until;
use crate::provider::{self, Signed};

const DONE: usize = 1_000;
const IN_HAND: usize = 10;

/// As many as the ledger takes at the same time without making anybody wait for a connection.
const AT_ONCE: usize = 8;

/// A tenth of a megabyte of what is not ours, under keys that come and go or that stay.
const JUNK: &str =
    "for i = 1, 100 do redis.call('SET', 'junk:' .. ARGV[1] .. ':' .. i, string.rep('x', 1000)) end";

async fn all_answered(replica: &Replica, events: &[Signed], duplicate: bool) {
    for some in events.chunks(AT_ONCE) {
        let mut sent: Vec<_> = some.iter().map(|event| replica.send(event)).collect();
        for sent in &mut sent {
            let answer = sent.answer().await;
            assert!(answer.is_ok(duplicate), "{answer:?}");
        }
    }
}

fn fresh(count: usize) -> Vec<Signed> {
    (0..count).map(|_| provider::fresh()).collect()
}

/// Fills the server until no claim is left.
fn evict_all_claims(redis: &RedisServer) {
    for round in 0.. {
        redis.cli(&["EVAL", JUNK, "0", &round.to_string()]);
        if redis.cli(&["KEYS", "webhook:stripe:*"]).is_empty() {
            return;
        }
        assert!(round < 1_000, "claims are not evicted");
    }
}

#[tokio::test]
async fn claims_that_a_full_redis_throws_away_cost_no_second_effect() {
    for policy in ["allkeys-lru", "volatile-lru"] {
        let redis = RedisServer::start_with(&["--maxmemory", "6mb", "--maxmemory-policy", policy]).await;
        let (target, gate) = (Upstream::start().await, Gate::closed());
        let deployment = Deployment::with_postgres(Some(&redis.url())).await;
        let deployment = deployment
            .forwarding_to(&target)
            .set("HOOKGATE_CLAIM_WAIT", "10m")
            // As long as it takes to send a thousand copies meanwhile.
            .set("HOOKGATE_HANDLER_TIMEOUT", "10m");
        let replica = deployment.replica().await;
        until("the start warns about the policy", async || {
            let warnings = replica.lines_of_level("WARN");
            warnings
                .iter()
                .any(|line| line.contains(policy) && line.contains("noeviction"))
        })
        .await;
        let (done, in_hand) = (fresh(DONE), fresh(IN_HAND));
        all_answered(&replica, &done, false).await;
        target.answer(Answer::Gate(gate.clone(), 200));
        let mut first: Vec<Sent> = in_hand.iter().map(|event| replica.send(event)).collect();
        target.wait_for(DONE + IN_HAND).await;

        evict_all_claims(&redis);
        let mut copies: Vec<Sent> = in_hand.iter().map(|event| replica.send(event)).collect();
        let by_ledger = replica.duplicates("stripe", "ledger").await;
        all_answered(&replica, &done, true).await;
        let by_ledger = replica.duplicates("stripe", "ledger").await - by_ledger;
        assert!(
            by_ledger > DONE as f64 / 2.0,
            "{policy}: the ledger was asked for {by_ledger} of them"
        );
        gate.open();
        for first in &mut first {
            assert!(first.answer().await.is_ok(false), "{policy}");
        }
        for copy in &mut copies {
            assert!(copy.answer().await.is_ok(true), "{policy}");
        }
        assert_eq!(
            target.requests().len(),
            DONE + IN_HAND,
            "{policy}: each took effect once"
        );
    }
}
