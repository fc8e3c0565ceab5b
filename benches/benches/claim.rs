//! How long does a fresh claim take, alone and 64 at once, in memory and on Redis? And a duplicate of a
//! finished event, which is what a claim store is for?

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use hookgate_benches::{AT_ONCE, fresh_key, runtime};
use hookgate_claim::{Claims, Epoch, MemoryClaims, RedisClaims, RedisMode, RedisSettings, Terms};
use hookgate_harness::RedisServer;

const TERMS: Terms = Terms {
    ttl: Duration::from_secs(604_800),
    lease: Duration::from_secs(15),
};

fn claim(c: &mut Criterion) {
    let runtime = runtime();
    let memory = MemoryClaims::new(100_000, Epoch::default());
    measure(c, &runtime, "memory", &memory);
    let server = runtime.block_on(RedisServer::start());
    let settings = RedisSettings::new(
        RedisMode::Single,
        vec![server.url().into()],
        Duration::from_secs(1),
    );
    let redis = runtime
        .block_on(async { RedisClaims::new(settings, Epoch::default()) })
        .expect("a Redis URL");
    measure(c, &runtime, "redis", &redis);
}

fn measure(c: &mut Criterion, runtime: &tokio::runtime::Runtime, store: &str, claims: &dyn Claims) {
    let mut group = c.benchmark_group(format!("claim/{store}"));
    group.bench_function("fresh", |b| {
        b.to_async(runtime).iter(|| async {
            claims
                .claim(&fresh_key(), TERMS)
                .await
                .expect("the store answers")
        });
    });
    let done = fresh_key();
    runtime
        .block_on(claims.mark_done(&done, TERMS.ttl, claims.epoch()))
        .expect("the store answers");
    group.bench_function("duplicate", |b| {
        b.to_async(runtime)
            .iter(|| async { claims.claim(&done, TERMS).await.expect("the store answers") });
    });
    group.throughput(Throughput::Elements(AT_ONCE as u64));
    group.bench_function("fresh_64_at_once", |b| {
        b.to_async(runtime).iter(|| async {
            let keys: Vec<_> = (0..AT_ONCE).map(|_| fresh_key()).collect();
            join_all(keys.iter().map(|key| claims.claim(key, TERMS))).await
        });
    });
    group.finish();
}

criterion_group!(benches, claim);
criterion_main!(benches);
