//! Every metric in one struct. A field's comment is its help text. All label values come from the
//! configuration or from fixed sets, and each is present at zero from the start.

mod secrets;

use std::time::Duration;

use hookgate_ledger::State;
use hookgate_signature::Refusal;
use hookgate_webhook::{Dropped, Unreadable};
use prometheus::process_collector::ProcessCollector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::admin;
use crate::identity::Aside;
pub use secrets::{RELOAD_OUTCOMES, SecretMetrics};

/// The label of requests to a path that is no configured source.
pub const UNKNOWN_SOURCE: &str = "unknown";

/// Outcomes of a delivery; their sum is all events and refusals.
pub const OUTCOMES: [&str; 7] = [
    "accepted",
    "duplicate",
    "in_flight",
    "twin",
    "refused",
    "failed",
    "unavailable",
];

/// Reasons of a refusal that neither a signature nor a body gives.
pub const TRANSPORT_REASONS: [&str; 5] = [
    "unknown_source",
    "method_not_allowed",
    "request_timeout",
    "body_too_large",
    "unsupported_encoding",
];

/// Why the body of an event was left aside: its id came before, with another one.
pub const OTHER_BODY: &str = "other_body";

/// Why an event is kept as finished at once: its source has nobody to give it to.
pub const NO_CONSUMER: &str = "no_consumer";

/// Statuses that the public listener answers.
const STATUSES: [&str; 12] = [
    "200", "204", "400", "401", "404", "405", "408", "409", "413", "415", "500", "503",
];

/// From half a millisecond to the longest answer budget that providers publish.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// All metrics of a process.
pub struct Metrics {
    registry: Registry,
    /// Requests to the public listener by answer.
    pub requests: IntCounterVec,
    /// Events and refusals by outcome.
    pub deliveries: IntCounterVec,
    /// Refused requests by reason.
    pub refusals: IntCounterVec,
    /// Handshakes that were answered; they are no deliveries.
    pub handshakes: IntCounterVec,
    /// Duplicates that were not handled again, by the layer that decided.
    pub duplicates_skipped: IntCounterVec,
    /// Fields or events that were left aside, by reason.
    pub ignored: IntCounterVec,
    /// Events whose content was seen under another id, in shadow.
    pub twins_shadow: IntCounterVec,
    /// Bodies seen before under another unsigned id.
    pub replays_suspected: IntCounterVec,
    /// Events decided without the claim store because it could not answer.
    pub claim_fallbacks: IntCounterVec,
    /// Claims taken over because their lease had ended.
    pub claims_taken_over: IntCounter,
    /// Claims that were no longer ours at a later step.
    pub claims_lost: IntCounter,
    /// 1 while the claim store answers.
    pub claims_up: IntGauge,
    /// 1 while the ledger answers.
    pub ledger_up: IntGauge,
    /// Of the settings and, once they answered, of the stores.
    pub warnings: IntGauge,
    /// Of secrets: which are used, and what became of reading them again.
    pub secrets: SecretMetrics,
    /// Looks for a key that a delivery names by a certificate, by outcome.
    pub certificates: IntCounterVec,
    /// From the end of the request's head to the answer.
    pub delivery_seconds: HistogramVec,
    /// One claim.
    pub claim_seconds: Histogram,
    /// One append, group commit included.
    pub append_seconds: Histogram,
    /// One call of a target.
    pub handler_seconds: HistogramVec,
    /// Calls of targets by outcome.
    pub attempts: IntCounterVec,
    /// Finished events that were run again because a person asked for it.
    pub replays: IntCounterVec,
    /// 1 while a target answers, as far as this worker knows.
    pub target_up: IntGaugeVec,
    /// 1 while a target is paused by a person.
    pub target_paused: IntGaugeVec,
    /// Rows that are not finished, by state.
    pub queue_events: IntGaugeVec,
    /// Age of the oldest event that is due.
    pub queue_oldest_seconds: IntGauge,
    /// Rows that retention emptied or deleted.
    pub swept_rows: IntCounterVec,
    /// When this process last finished a sweep.
    pub sweep_last_success: IntGauge,
    /// Alerts about events that died, by outcome.
    pub notifications: IntCounterVec,
    /// Requests to the admin API that were refused for want of a token.
    pub admin_refusals: IntCounterVec,
    /// Consumers that wait here for events to pull.
    pub consumers_waiting: IntGauge,
    /// Looks into the ledger for all consumers together.
    pub consumer_looks: IntCounter,
}

/// What a sweep does with a row.
pub const SWEEP_ACTIONS: [&str; 2] = ["pruned", "deleted"];

/// What becomes of an alert.
pub const NOTIFICATION_OUTCOMES: [&str; 2] = ["sent", "failed"];

/// Outcomes of calling a target.
pub const ATTEMPT_OUTCOMES: [&str; 3] = ["done", "retry", "dead"];

/// Layers that decide that an event is a duplicate.
pub const DECIDERS: [&str; 3] = ["claim", "ledger", "content"];

impl Metrics {
    /// Registers everything, with every label of these sources at zero.
    pub fn new<'a>(sources: impl Iterator<Item = &'a str>) -> Result<Self, prometheus::Error> {
        let make = Maker(Registry::new());
        let metrics = Self {
            requests: make.counters(
                "requests_total",
                "Requests to the public listener by answer",
                &["source", "status"],
            )?,
            deliveries: make.counters(
                "deliveries_total",
                "Events and refusals by outcome",
                &["source", "outcome"],
            )?,
            refusals: make.counters(
                "refusals_total",
                "Refused requests by reason",
                &["source", "reason"],
            )?,
            handshakes: make.counters("handshakes_total", "Handshakes of providers answered", &["source"])?,
            duplicates_skipped: make.counters(
                "duplicates_skipped_total",
                "Duplicates that were not handled again, by the layer that decided",
                &["source", "decided_by"],
            )?,
            ignored: make.counters(
                "ignored_total",
                "Fields or events left aside, by reason",
                &["source", "reason"],
            )?,
            twins_shadow: make.counters(
                "twins_shadow_total",
                "Content seen under another id, in shadow",
                &["source"],
            )?,
            replays_suspected: make.counters(
                "replays_suspected_total",
                "Bodies seen before under another unsigned id",
                &["source"],
            )?,
            claim_fallbacks: make.counters(
                "claim_fallbacks_total",
                "Events decided without the claim store because it could not answer",
                &["source"],
            )?,
            claims_taken_over: make.counter(
                "claims_taken_over_total",
                "Claims taken over because their lease had ended",
            )?,
            claims_lost: make.counter(
                "claims_lost_total",
                "Claims that were no longer ours at a later step",
            )?,
            claims_up: make.gauge("claims_up", "1 while the claim store answers")?,
            ledger_up: make.gauge("ledger_up", "1 while the ledger answers")?,
            warnings: make.gauge(
                "warnings",
                "What was warned of at the start: risks in the settings and in what the stores tell; the log names them",
            )?,
            secrets: SecretMetrics::new(&make)?,
            certificates: make.counters(
                "certificates_total",
                "Certificates looked for because a delivery named its key by one, by outcome; known ones are not looked for",
                &["outcome"],
            )?,
            delivery_seconds: make.histograms(
                "delivery_duration_seconds",
                "From request head to answer",
                &["source"],
            )?,
            claim_seconds: make.histogram("claim_duration_seconds", "One claim")?,
            append_seconds: make.histogram("append_duration_seconds", "One append, group commit included")?,
            handler_seconds: make.histograms(
                "handler_duration_seconds",
                "One call of a target",
                &["source"],
            )?,
            attempts: make.counters(
                "attempts_total",
                "Calls of targets, and runs by consumers that pull, by outcome",
                &["source", "outcome"],
            )?,
            replays: make.counters(
                "replays_total",
                "Finished events run again because a person asked for it",
                &["source"],
            )?,
            target_up: make.gauges(
                "target_up",
                "1 while a target answers, as far as this worker knows",
                &["target"],
            )?,
            target_paused: make.gauges(
                "target_paused",
                "1 while a target is paused by a person",
                &["target"],
            )?,
            queue_events: make.gauges("queue_events", "Rows that are not finished, by state", &["state"])?,
            queue_oldest_seconds: make
                .gauge("queue_oldest_seconds", "Age of the oldest event that is due")?,
            swept_rows: make.counters(
                "swept_rows_total",
                "Rows that retention emptied (pruned) or deleted",
                &["action"],
            )?,
            sweep_last_success: make.gauge(
                "sweep_last_success_timestamp_seconds",
                "When this process last finished a sweep, unix time; 0 if it has not",
            )?,
            notifications: make.counters(
                "notifications_total",
                "Alerts about events that died, by outcome",
                &["outcome"],
            )?,
            admin_refusals: make.counters(
                "admin_refusals_total",
                "Requests to the admin API that were refused for want of a token",
                &["reason"],
            )?,
            consumers_waiting: make
                .gauge("consumers_waiting", "Consumers that wait here for events to pull")?,
            consumer_looks: make.counter(
                "consumer_looks_total",
                "Looks into the ledger for events to pull, for all consumers together",
            )?,
            registry: make.0,
        };
        metrics.build_info()?;
        metrics
            .registry
            .register(Box::new(ProcessCollector::for_self()))?;
        metrics.zero(sources);
        Ok(metrics)
    }

    /// The exposition format of Prometheus.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    fn build_info(&self) -> Result<(), prometheus::Error> {
        let info = IntGaugeVec::new(opts("build_info", "Version of this binary"), &["version"])?;
        info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        self.registry.register(Box::new(info))
    }

    fn zero<'a>(&self, sources: impl Iterator<Item = &'a str>) {
        let reasons = || {
            Refusal::REASONS
                .into_iter()
                .chain(Unreadable::REASONS)
                .chain(TRANSPORT_REASONS)
        };
        for source in sources.chain([UNKNOWN_SOURCE]) {
            touch(&self.requests, source, STATUSES);
            touch(&self.deliveries, source, OUTCOMES);
            touch(&self.refusals, source, reasons());
            if source == UNKNOWN_SOURCE {
                continue;
            }
            touch(&self.duplicates_skipped, source, DECIDERS);
            touch(
                &self.ignored,
                source,
                Dropped::REASONS
                    .into_iter()
                    .chain([OTHER_BODY, NO_CONSUMER])
                    .chain(Aside::LABELS),
            );
            touch(&self.attempts, source, ATTEMPT_OUTCOMES);
            for counter in [
                &self.handshakes,
                &self.twins_shadow,
                &self.replays_suspected,
                &self.claim_fallbacks,
                &self.replays,
            ] {
                counter.with_label_values(&[source]);
            }
            for histogram in [&self.delivery_seconds, &self.handler_seconds] {
                histogram.with_label_values(&[source]);
            }
        }
        for reason in admin::REFUSALS {
            self.admin_refusals.with_label_values(&[reason]);
        }
        for state in State::ALL {
            self.queue_events.with_label_values(&[state.as_str()]);
        }
        for action in SWEEP_ACTIONS {
            self.swept_rows.with_label_values(&[action]);
        }
        for outcome in NOTIFICATION_OUTCOMES {
            self.notifications.with_label_values(&[outcome]);
        }
    }
}

fn touch<'a>(counters: &IntCounterVec, source: &str, values: impl IntoIterator<Item = &'a str>) {
    for value in values {
        counters.with_label_values(&[source, value]);
    }
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("hookgate")
}

/// Makes and registers in one step, so that no metric is forgotten.
struct Maker(Registry);

impl Maker {
    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
        self.register(IntCounterVec::new(opts(name, help), labels)?)
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.register(IntCounter::with_opts(opts(name, help))?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.register(IntGauge::with_opts(opts(name, help))?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
        self.register(IntGaugeVec::new(opts(name, help), labels)?)
    }

    fn histogram(&self, name: &str, help: &str) -> Result<Histogram, prometheus::Error> {
        self.register(Histogram::with_opts(buckets(name, help))?)
    }

    fn histograms(&self, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec, prometheus::Error> {
        self.register(HistogramVec::new(buckets(name, help), labels)?)
    }

    fn register<M: prometheus::core::Collector + Clone + 'static>(
        &self,
        metric: M,
    ) -> Result<M, prometheus::Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

fn buckets(name: &str, help: &str) -> HistogramOpts {
    HistogramOpts::new(name, help)
        .namespace("hookgate")
        .buckets(SECONDS.to_vec())
}

/// Records how long something took.
pub fn observe(histogram: &Histogram, took: Duration) {
    histogram.observe(took.as_secs_f64());
}
