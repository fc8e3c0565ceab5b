//! How long does one durable append take, alone and 64 at once, on SQLite (WAL, synchronous = FULL) and on
//! Postgres (fsync on)? The second is what group commit is for.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use hookgate_benches::{AT_ONCE, fresh_event, runtime};
use hookgate_harness::PostgresServer;
use hookgate_ledger::{Ledger, Limits, PostgresLedger, Queue, SqliteLedger};

fn append(c: &mut Criterion) {
    let runtime = runtime();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sqlite = runtime.block_on(async {
        SqliteLedger::open(&directory.path().join("bench.db"), Limits::default()).expect("a database file")
    });
    measure(c, &runtime, "sqlite", &Arc::new(sqlite));
    let server = runtime.block_on(PostgresServer::start());
    let postgres = runtime.block_on(async {
        let url = server.create_database().await;
        PostgresLedger::connect(&url.into(), Limits::default()).expect("a database URL")
    });
    measure(c, &runtime, "postgres", &Arc::new(postgres));
}

fn measure<L: Ledger>(c: &mut Criterion, runtime: &tokio::runtime::Runtime, store: &str, ledger: &Arc<L>) {
    runtime
        .block_on(ledger.migrate())
        .expect("the schema can be made");
    let mut group = c.benchmark_group(format!("append/{store}"));
    group.bench_function("alone", |b| {
        b.to_async(runtime).iter(|| async {
            ledger
                .append(fresh_event(), Queue::ForWorker)
                .await
                .expect("kept")
        });
    });
    group.throughput(Throughput::Elements(AT_ONCE as u64));
    group.bench_function("64_at_once", |b| {
        b.to_async(runtime).iter(|| async {
            join_all((0..AT_ONCE).map(|_| ledger.append(fresh_event(), Queue::ForWorker))).await
        });
    });
    group.finish();
    runtime.block_on(ledger.close());
}

criterion_group!(benches, append);
criterion_main!(benches);
