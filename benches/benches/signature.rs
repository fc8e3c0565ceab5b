//! What does it cost to verify one delivery, per scheme and body size?

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hookgate_benches::{NOW, PROVIDERS, Prepared};

fn verify(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    for provider in PROVIDERS {
        for kilobytes in [1, 16, 256] {
            let prepared = Prepared::new(provider, kilobytes << 10);
            group.throughput(Throughput::Bytes(prepared.delivery().body.len() as u64));
            group.bench_function(BenchmarkId::new(provider.name(), format!("{kilobytes}kB")), |b| {
                b.iter(|| prepared.keys.verify(prepared.delivery(), NOW).is_ok());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, verify);
criterion_main!(benches);
