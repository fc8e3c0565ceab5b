//! How the processes of a run are configured, and what of it the report must say: every time that a promise depends
//! on stands here.

use std::time::Duration;

/// Replicas that receive.
pub(crate) const REPLICAS: usize = 3;

/// Processes that deliver.
pub(crate) const WORKERS: usize = 2;

/// After so long an unfinished claim, and the row of a run that does not end, may be taken over.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// How long a copy waits for the one in flight.
pub(crate) const CLAIM_WAIT: Duration = Duration::from_millis(500);

/// The default of `HOOKGATE_LEDGER_TIMEOUT`: the limit of a whole append.
pub(crate) const LEDGER_LIMIT: Duration = Duration::from_secs(2);

/// The default of `HOOKGATE_REDIS_TIMEOUT`.
pub(crate) const REDIS_LIMIT: Duration = Duration::from_millis(100);

/// Longest wait for the target: shorter than the lease.
pub(crate) const HANDLER_TIMEOUT: Duration = Duration::from_millis(900);

/// What the provider waits for an answer.
pub(crate) const PROVIDER_PATIENCE: Duration = Duration::from_secs(5);

/// The provider's keys for the two sources.
pub(crate) const SECRETS: [&str; 2] = [
    "whsec_ZmF1bHRzLW9ubHktZmF1bHRzLW9ubHktZmF1bHRzLW9u",
    "c2hvcGlmeS1mYXVsdHMtb25seS1zaG9waWZ5LWZhdWx0cw",
];

/// The key of our own signature before the target.
pub(crate) const TARGET_SECRET: &str = "whsec_dGFyZ2V0LW9ubHktdGFyZ2V0LW9ubHktdGFyZ2V0LW9u";

/// What stands in every body, and must stand in no log.
pub(crate) const CANARY: &str = "canary-of-a-customer";

/// The file that both roles read.
pub(crate) const FILE: &str = "\
[sources.stripe]
handler = \"inbox\"

[sources.shopify]
handler = \"forward\"
";

/// The environment of every process, but for its addresses.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    let time = |time: Duration| humantime::format_duration(time).to_string();
    vec![
        ("HOOKGATE_LISTEN", "127.0.0.1:0".to_owned()),
        ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
        ("STRIPE_WEBHOOK_SECRET", SECRETS[0].to_owned()),
        ("SHOPIFY_WEBHOOK_SECRET", SECRETS[1].to_owned()),
        ("HOOKGATE_TARGET_SECRET", TARGET_SECRET.to_owned()),
        ("HOOKGATE_REDIS_TIMEOUT", time(REDIS_LIMIT)),
        ("HOOKGATE_LEDGER_TIMEOUT", time(LEDGER_LIMIT)),
        ("HOOKGATE_CLAIM_LEASE", time(LEASE)),
        ("HOOKGATE_WORKER_LEASE", time(LEASE)),
        ("HOOKGATE_CLAIM_WAIT", time(CLAIM_WAIT)),
        ("HOOKGATE_HANDLER_TIMEOUT", time(HANDLER_TIMEOUT)),
        // A run must not end in dead letters because the target failed by chance.
        ("HOOKGATE_RETRY_MAX_ATTEMPTS", "50".to_owned()),
        ("HOOKGATE_RETRY_BASE", "50ms".to_owned()),
        ("HOOKGATE_SHUTDOWN_GRACE", "5s".to_owned()),
        ("HOOKGATE_THREADS", "1".to_owned()),
    ]
}
