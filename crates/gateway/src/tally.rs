//! The tally: what this process counted, minute by minute, written into the ledger, where the counts of all
//! replicas add up. It reads the counters that are there for Prometheus every few seconds, so the path pays
//! nothing. A minute is written with its count so far: written again, it says the same. While the ledger is
//! away, minutes are kept and caught up with later, up to some hours.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hookgate_ledger::{DeliveryId, UnixMicros, Upkeep};
use prometheus::IntCounterVec;
use prometheus::core::Collector as _;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::metrics::Metrics;
use crate::stores::GuardedLedger;

/// How often the counters are read. A minute is a multiple of it, and it is kept in step with the clock, so
/// that a reading rarely spans two minutes.
const INTERVAL: Duration = Duration::from_secs(10);

/// Minutes kept while the ledger is away: six hours.
const MINUTES_MAX: usize = 360;

/// Longest time for the last writing, when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Counts by source and name.
type Counts = BTreeMap<(String, String), u64>;

/// Counts of this process on their way into the ledger.
pub struct Tally {
    upkeep: Arc<dyn Upkeep>,
    ledger: Arc<GuardedLedger>,
    metrics: Arc<Metrics>,
    replica: DeliveryId,
    book: Mutex<Book>,
}

impl Tally {
    /// Begins with counters at zero, at this moment.
    pub fn new(upkeep: Arc<dyn Upkeep>, ledger: Arc<GuardedLedger>, metrics: Arc<Metrics>) -> Self {
        Self {
            upkeep,
            ledger,
            metrics,
            replica: DeliveryId(rand::random()),
            book: Mutex::new(Book::new(clock::since_epoch())),
        }
    }

    /// Reads and writes every ten seconds, until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let now = clock::since_epoch().as_millis();
            let step = INTERVAL.as_millis();
            let pause = Duration::from_millis(u64::try_from(step - now % step).unwrap_or_default());
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
            stop.run_until_cancelled(self.run_once()).await;
        }
    }

    /// Reads the counters, and writes the minutes in which something happened. Says how many were written.
    pub async fn run_once(&self) -> usize {
        let mut book = self.book.lock().await;
        book.read(&readings(&self.metrics), clock::since_epoch());
        let mut written = 0;
        while let Some((minute, counts)) = book.unwritten() {
            // One that is known to be away is not asked.
            if !self.ledger.is_up() {
                break;
            }
            if let Err(error) = self.upkeep.record_minute(minute, self.replica, counts).await {
                tracing::debug!(%error, "counts of a minute are written later");
                break;
            }
            book.written(minute);
            written += 1;
        }
        written
    }

    /// Writes what came since, when nothing more can come; within this time, and never for long.
    pub async fn flush(&self, within: Duration) {
        if timeout(within.min(FLUSH_TIMEOUT), self.run_once()).await.is_err() {
            tracing::debug!("the counts of the last minute are not written");
        }
    }
}

/// What each counter stands at, by source and name; those at zero are left out.
fn readings(metrics: &Metrics) -> Counts {
    let counters = [
        ("", "outcome", &metrics.deliveries),
        ("skipped_", "decided_by", &metrics.duplicates_skipped),
        ("attempt_", "outcome", &metrics.attempts),
    ];
    let read = counters
        .into_iter()
        .flat_map(|(prefix, label, counters)| read(prefix, label, counters));
    read.filter(|(_, count)| *count > 0).collect()
}

fn read(prefix: &str, label: &str, counters: &IntCounterVec) -> Vec<((String, String), u64)> {
    let families = counters.collect();
    let series = families.iter().flat_map(|family| family.get_metric());
    series
        .map(|series| {
            let value = |wanted: &str| {
                let mut labels = series.get_label().iter();
                let label = labels.find(|label| label.name() == wanted);
                label.map_or("", |label| label.value()).to_owned()
            };
            let name = format!("{prefix}{}", value(label));
            // A counter of whole numbers, which Prometheus shows as a float.
            ((value("source"), name), series.get_counter().get_value() as u64)
        })
        .collect()
}

/// The minutes that are not written yet, and the one that still goes on.
struct Book {
    /// The latest readings.
    seen: Counts,
    /// When they were made.
    seen_at: Duration,
    /// By the begin of the minute, in minutes since 1970.
    minutes: BTreeMap<u64, Minute>,
}

#[derive(Default)]
struct Minute {
    counts: Counts,
    unwritten: bool,
}

impl Book {
    fn new(now: Duration) -> Self {
        Self {
            seen: Counts::new(),
            seen_at: now,
            minutes: BTreeMap::new(),
        }
    }

    /// What came since the last reading belongs to the minute in which that was made.
    fn read(&mut self, readings: &Counts, now: Duration) {
        let minute = minute_of(self.seen_at);
        for (name, count) in readings {
            let came = count - self.seen.get(name).copied().unwrap_or_default();
            if came > 0 {
                let minute = self.minutes.entry(minute).or_default();
                *minute.counts.entry(name.clone()).or_default() += came;
                minute.unwritten = true;
            }
        }
        self.seen.clone_from(readings);
        self.seen_at = now;
        self.minutes
            .retain(|begin, minute| minute.unwritten || *begin >= minute_of(now));
        while self.minutes.len() > MINUTES_MAX {
            self.minutes.pop_first();
        }
    }

    /// The oldest minute that has something to write.
    fn unwritten(&self) -> Option<(UnixMicros, &Counts)> {
        let (begin, minute) = self.minutes.iter().find(|(_, minute)| minute.unwritten)?;
        Some((begin_of(*begin), &minute.counts))
    }

    fn written(&mut self, minute: UnixMicros) {
        let written = self
            .minutes
            .iter_mut()
            .find(|(begin, _)| begin_of(**begin) == minute);
        if let Some((_, minute)) = written {
            minute.unwritten = false;
        }
    }
}

fn minute_of(moment: Duration) -> u64 {
    moment.as_secs() / 60
}

fn begin_of(minute: u64) -> UnixMicros {
    UnixMicros(i64::try_from(minute * 60_000_000).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1_790_000_040);

    fn accepted(count: u64) -> Counts {
        [(("stripe".to_owned(), "accepted".to_owned()), count)].into()
    }

    /// Writes everything: the minute after [`START`] and its count.
    fn write(book: &mut Book) -> Vec<(i64, u64)> {
        let mut written = Vec::new();
        while let Some((minute, counts)) = book.unwritten() {
            let after = (minute.0 - begin_of(minute_of(START)).0) / 60_000_000;
            written.push((after, counts.values().sum()));
            book.written(minute);
        }
        written
    }

    fn at(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    #[test]
    fn a_minute_is_written_with_its_count_so_far() {
        let mut book = Book::new(START);
        book.read(&accepted(3), at(10));
        assert_eq!(write(&mut book), [(0, 3)]);
        book.read(&accepted(5), at(20));
        assert_eq!(write(&mut book), [(0, 5)]);
        book.read(&accepted(5), at(30));
        assert_eq!(write(&mut book), [], "nothing came");
    }

    #[test]
    fn what_came_up_to_the_end_of_a_minute_belongs_to_it() {
        let mut book = Book::new(START);
        book.read(&accepted(1), at(50));
        book.read(&accepted(4), at(60));
        book.read(&accepted(6), at(70));
        assert_eq!(write(&mut book), [(0, 4), (1, 2)]);
        book.read(&accepted(7), at(80));
        assert_eq!(write(&mut book), [(1, 3)]);
    }

    #[test]
    fn minutes_that_could_not_be_written_are_kept_within_bounds() {
        let mut book = Book::new(START);
        for minute in 1..=1_000 {
            book.read(&accepted(minute), at(minute * 60));
        }
        assert_eq!(book.minutes.len(), MINUTES_MAX);
        let written = write(&mut book);
        assert_eq!(written.last(), Some(&(999, 1)));
        assert_eq!(written.len(), MINUTES_MAX);
        book.read(&accepted(1_000), at(60_010));
        assert!(book.minutes.len() <= 1, "what is written and past is forgotten");
    }
}
