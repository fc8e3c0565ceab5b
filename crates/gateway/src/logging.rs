//! Log lines: JSON for machines, pretty for people. Only hookgate's own lines follow `HOOKGATE_LOG`; a
//! library's lines are held at `warn` whatever is asked, because some libraries print headers, statements
//! or addresses at finer levels.

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;

/// The crates whose lines `HOOKGATE_LOG` governs.
const OURS: [&str; 6] = [
    "hookgate",
    "hookgate_gateway",
    "hookgate_claim",
    "hookgate_ledger",
    "hookgate_signature",
    "hookgate_webhook",
];

/// Starts logging to standard error for the rest of the process's life.
pub fn start(level: Level, format: LogFormat) {
    let ours = OURS.map(|name| (name, LevelFilter::from_level(level)));
    let filter = Targets::new()
        .with_default(Level::WARN.min(level))
        .with_targets(ours)
        // It calls whatever a stranger writes that is no HTTP an error; nobody should look at that.
        .with_target("actix_http::h1", LevelFilter::OFF);
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(true);
    // The filter is the whole subscriber's and not this layer's own: a library that asks whether a line
    // would be written, as sqlx does, then costs the thread's next line, which a layer's own filter drops.
    let lines = match format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        LogFormat::Pretty => lines.with_ansi(false).boxed(),
    };
    // A second start in one process keeps the first: lines are not lost either way.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}
