//! What does it cost to read the id, type, object and time of one verified delivery, per provider and body
//! size?

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hookgate_benches::{NOW, PROVIDERS, Prepared};

fn read(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    for provider in PROVIDERS {
        for kilobytes in [1, 16, 256] {
            let prepared = Prepared::new(provider, kilobytes << 10);
            let verified = prepared
                .keys
                .verify(prepared.delivery(), NOW)
                .expect("it is signed");
            group.throughput(Throughput::Bytes(verified.body().len() as u64));
            group.bench_function(BenchmarkId::new(provider.name(), format!("{kilobytes}kB")), |b| {
                b.iter(|| provider.read(&verified).expect("it can be read"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
