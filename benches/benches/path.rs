//! How long does one delivery take in process, from its raw bytes to its outcome: fresh (inbox) and as a
//! duplicate, embedded and on Redis + Postgres? HTTP is left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use hookgate_benches::{AT_ONCE, Prepared, runtime};
use hookgate_gateway::assembly::{Assembly, assemble};
use hookgate_gateway::clock::{self, Clock};
use hookgate_gateway::config::{Config, Reader};
use hookgate_gateway::receiver::{Receipt, Receiver, Source};
use hookgate_harness::{PostgresServer, RedisServer};
use hookgate_webhook::Provider;
use tokio::runtime::Runtime;

/// Body size of a common Stripe event.
const BODY_BYTES: usize = 2_000;

fn path(c: &mut Criterion) {
    let runtime = runtime();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = format!("sqlite://{}", directory.path().join("bench.db").display());
    measure(c, &runtime, "embedded", &[("DATABASE_URL", database)]);
    let (redis, postgres) =
        runtime.block_on(async { (RedisServer::start().await, PostgresServer::start().await) });
    let database = runtime.block_on(postgres.create_database());
    measure(
        c,
        &runtime,
        "redis_postgres",
        &[("DATABASE_URL", database), ("REDIS_URL", redis.url())],
    );
}

fn measure(c: &mut Criterion, runtime: &Runtime, stores: &str, settings: &[(&str, String)]) {
    let (receiver, source) = runtime.block_on(receiver(settings));
    let mut group = c.benchmark_group(format!("path/{stores}"));
    group.bench_function("fresh", |b| {
        let one = |prepared: Prepared| {
            let (receiver, source) = (Arc::clone(&receiver), Arc::clone(&source));
            async move { receive(&receiver, &source, &prepared).await }
        };
        b.to_async(runtime)
            .iter_batched(fresh, one, BatchSize::SmallInput);
    });
    let known = fresh();
    group.bench_function("duplicate", |b| {
        b.to_async(runtime)
            .iter(|| async { receive(&receiver, &source, &known).await });
    });
    group.throughput(Throughput::Elements(AT_ONCE as u64));
    group.bench_function("fresh_64_at_once", |b| {
        let crowd = || (0..AT_ONCE).map(|_| fresh()).collect::<Vec<_>>();
        let all = |prepared: Vec<Prepared>| {
            let (receiver, source) = (Arc::clone(&receiver), Arc::clone(&source));
            async move { join_all(prepared.iter().map(|one| receive(&receiver, &source, one))).await }
        };
        b.to_async(runtime)
            .iter_batched(crowd, all, BatchSize::SmallInput);
    });
    group.finish();
    runtime.block_on(receiver.stores.close());
}

async fn receiver(settings: &[(&str, String)]) -> (Arc<Receiver>, Arc<Source>) {
    let secret = (
        "STRIPE_WEBHOOK_SECRET",
        Provider::Stripe.knowledge().dev_secrets[0].to_owned(),
    );
    let settings: BTreeMap<String, String> = settings
        .iter()
        .cloned()
        .chain([secret])
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let reader = Reader::new(settings, None).expect("no file to read");
    let config = Config::read(&reader, false).expect("the settings are accepted");
    let Assembly {
        receiver, sources, ..
    } = assemble(&config, false, Clock::default()).expect("the parts fit");
    let ledger = receiver.stores.ledger.clone().expect("there is a ledger");
    ledger.start(true).await.expect("the schema can be made");
    receiver.stores.history_named().await;
    (receiver, Arc::clone(&sources["stripe"]))
}

/// Signed by the clock that the gateway will check it with; not part of what is measured.
fn fresh() -> Prepared {
    let id = format!("evt_{:032x}", rand::random::<u128>());
    Prepared::signed_at(clock::unix_seconds(), Provider::Stripe, BODY_BYTES, &id)
}

async fn receive(receiver: &Arc<Receiver>, source: &Arc<Source>, prepared: &Prepared) {
    let received = receiver
        .receive(source, &source.keyring.valid(), prepared.delivery())
        .await
        .expect("it is signed and readable");
    assert!(matches!(received, Receipt::Events(events) if events.len() == 1));
}

criterion_group!(benches, path);
criterion_main!(benches);
