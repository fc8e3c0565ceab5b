//! Every setting: its name, what it means, its default and the form it accepts. The text here is what
//! `hookgate config show` prints and what a wrong value is answered with.

/// One setting. In the environment it has this name; in the TOML file the same name in lower case
/// without `HOOKGATE_`.
#[derive(Debug)]
pub struct Setting {
    /// Name of the environment variable.
    pub name: &'static str,
    /// Used when nobody says otherwise; empty means "absent".
    pub default: &'static str,
    /// The accepted form, to end the sentence "… is not accepted: expected".
    pub accepts: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
    /// Whether its value must never be shown.
    pub secret: bool,
}

impl Setting {
    /// Its key in the TOML file.
    pub fn key(&self) -> String {
        self.name.trim_start_matches("HOOKGATE_").to_ascii_lowercase()
    }
}

macro_rules! settings {
    ($($id:ident = $name:literal, $default:literal, $accepts:literal, $meaning:literal $(, $secret:ident)?;)*) => {
        $(
            #[doc = $meaning]
            pub const $id: Setting = Setting {
                name: $name, default: $default, accepts: $accepts, meaning: $meaning,
                secret: settings!(@secret $($secret)?),
            };
        )*
        /// All of them, in the order of the documentation.
        pub const ALL: &[&Setting] = &[$(&$id),*];
    };
    (@secret secret) => { true };
    (@secret) => { false };
}

settings! {
    REDIS_URL = "REDIS_URL", "", "redis://host:port, rediss://host:port, several separated by commas, or none",
        "Where claims are kept; absent: in memory, none: no claims", secret;
    REDIS_MODE = "HOOKGATE_REDIS_MODE", "single", "single, sentinel or cluster",
        "What kind of Redis the URLs name";
    REDIS_TIMEOUT = "HOOKGATE_REDIS_TIMEOUT", "100ms", "a duration of at least 1ms, such as 100ms",
        "Longest wait for any Redis command; then the ledger decides alone";
    DATABASE_URL = "DATABASE_URL", "sqlite://hookgate.db", "postgres://…, sqlite://path, or none",
        "Where events are kept", secret;
    LEDGER_TIMEOUT = "HOOKGATE_LEDGER_TIMEOUT", "2s", "a duration of at least 1ms, such as 2s",
        "Longest time for a whole append; then 503";
    MIGRATE = "HOOKGATE_MIGRATE", "on", "on or off",
        "Whether to bring the database schema up to date at start";
    LISTEN = "HOOKGATE_LISTEN", "0.0.0.0:8080", "an IP address and a port, such as 0.0.0.0:8080",
        "Address of the public listener (127.0.0.1:8080 in dev)";
    ADMIN_LISTEN = "HOOKGATE_ADMIN_LISTEN", "127.0.0.1:9464", "an IP address and a port, such as 127.0.0.1:9464",
        "Address of probes, metrics and the admin API";
    ADMIN_TOKEN = "HOOKGATE_ADMIN_TOKEN", "", "16 to 512 visible ASCII characters",
        "Bearer token of the admin API; absent: the API is off, probes and metrics stay", secret;
    CONSUME_TOKEN = "HOOKGATE_CONSUME_TOKEN", "", "16 to 512 visible ASCII characters, another than HOOKGATE_ADMIN_TOKEN",
        "Bearer token that opens nothing but /v1/consume, for consumers that pull", secret;
    PUBLIC_URL = "HOOKGATE_PUBLIC_URL", "", "http://… or https://…, without user, query or fragment, such as https://hooks.example.com",
        "Beginning of the URLs registered with providers; /webhooks/<source> follows. Needed where a provider signs its URL";
    SECRET_POLL = "HOOKGATE_SECRET_POLL", "5s", "a duration of at least 100ms, such as 5s, or off",
        "Pause between two looks at the files with secrets; what changed there counts without a restart. SIGHUP looks at once";
    HANDLER = "HOOKGATE_HANDLER", "inbox", "inbox or forward",
        "inbox: store, answer, deliver by a worker; forward: POST to the target before the answer";
    CONSUMER = "HOOKGATE_CONSUMER", "target", "target or pull",
        "Who gets the events of an inbox: the target, called by a worker, or consumers that pull them from /v1/consume";
    TARGET_URL = "HOOKGATE_TARGET_URL", "", "http://… or https://…",
        "Where events go", secret;
    TARGET_SECRET = "HOOKGATE_TARGET_SECRET", "", "whsec_ and base64 of 24 to 64 bytes",
        "Key of the outgoing Standard Webhooks signature", secret;
    HANDLER_TIMEOUT = "HOOKGATE_HANDLER_TIMEOUT", "", "a duration of at least 1ms, such as 10s",
        "Longest wait for a target; default the smaller of 10s and the provider's answer budget less 1s";
    CLAIM_LEASE = "HOOKGATE_CLAIM_LEASE", "", "a duration of at least 100ms, such as 15s",
        "Age after which an unfinished claim may be taken over; default handler timeout + 5s";
    CLAIM_WAIT = "HOOKGATE_CLAIM_WAIT", "2s", "a duration up to 10 years, such as 2s",
        "How long a copy waits for the one in flight (forward)";
    CLAIM_TTL = "HOOKGATE_CLAIM_TTL", "7d", "a duration of at least 1s, such as 7d",
        "Life of a claim and of a done mark";
    CLAIM_EPOCH = "HOOKGATE_CLAIM_EPOCH", "0", "a whole number",
        "Raise it after restoring the ledger from a dump: it voids all earlier done marks";
    WITHOUT_STORE = "HOOKGATE_WITHOUT_STORE", "reject", "reject or unguarded",
        "Redis away and no ledger: answer 503, or process without idempotency";
    MEMORY_CLAIMS = "HOOKGATE_MEMORY_CLAIMS", "100000", "a whole number from 1",
        "Entries of the in-memory claims";
    RETRY_MAX_ATTEMPTS = "HOOKGATE_RETRY_MAX_ATTEMPTS", "5", "a whole number from 1",
        "Tries of the worker before an event goes to the dead letters";
    RETRY_BASE = "HOOKGATE_RETRY_BASE", "1s", "a duration up to 10 years, such as 1s",
        "First delay between tries; it doubles with each";
    WORKER_CONCURRENCY = "HOOKGATE_WORKER_CONCURRENCY", "64", "a whole number from 1",
        "Events that one worker delivers at the same time";
    WORKER_LEASE = "HOOKGATE_WORKER_LEASE", "30s", "a duration of at least 1s, such as 30s",
        "How long the events of a worker that died are kept from others; it is renewed while a delivery lasts";
    TARGET_CONCURRENCY = "HOOKGATE_TARGET_CONCURRENCY", "16", "a whole number from 1",
        "Events on their way to one target at the same time, from each worker";
    TARGET_RATE = "HOOKGATE_TARGET_RATE", "", "events per second, such as 100 or 0.5",
        "Events per second that a worker sends to one target at most; absent: no bound";
    NOTIFY_URL = "HOOKGATE_NOTIFY_URL", "", "http://… or https://…",
        "Where an alert goes when events die: a POST of Slack-compatible JSON, once per burst", secret;
    NOTIFY_QUIET = "HOOKGATE_NOTIFY_QUIET", "5m", "a duration of at least 1s, such as 5m",
        "How long alerts are silent after one was sent; what dies meanwhile is told in the next";
    RETENTION_BODY = "HOOKGATE_RETENTION_BODY", "30d", "a duration of at least 1h, such as 30d",
        "How long bodies and headers of finished events are kept; the row stays and keeps judging duplicates";
    RETENTION_EVENT = "HOOKGATE_RETENTION_EVENT", "400d", "a duration of at least 1d, such as 400d, not shorter than HOOKGATE_RETENTION_BODY",
        "How long rows of finished events are kept; at least as long as their provider may send them again";
    MAX_BODY_BYTES = "HOOKGATE_MAX_BODY_BYTES", "", "a whole number of bytes from 1",
        "Largest accepted body; default 1048576, more for providers that send more";
    REQUEST_TIMEOUT = "HOOKGATE_REQUEST_TIMEOUT", "5s", "a duration of at least 1ms, such as 5s",
        "Longest time for a client to send its headers, and again for its body";
    KEEP_ALIVE = "HOOKGATE_KEEP_ALIVE", "75s", "a duration up to 10 years, such as 75s",
        "How long an idle connection stays open; keep it longer than the load balancer's";
    MAX_CONNECTIONS = "HOOKGATE_MAX_CONNECTIONS", "25000", "a whole number from 1",
        "Open connections per thread";
    THREADS = "HOOKGATE_THREADS", "", "a whole number from 1 to 512",
        "Threads; default the number of cores";
    SHUTDOWN_GRACE = "HOOKGATE_SHUTDOWN_GRACE", "25s", "a duration up to 10 years, such as 25s",
        "Longest time from SIGTERM to exit";
    LOG = "HOOKGATE_LOG", "info", "error, warn, info, debug or trace",
        "How much hookgate says";
    LOG_FORMAT = "HOOKGATE_LOG_FORMAT", "json", "json or pretty",
        "Form of the log lines (pretty in dev)";
}

/// Whether an environment variable of this name is read: a setting, or the secrets of some source.
pub(super) fn is_variable(name: &str) -> bool {
    ALL.iter().any(|setting| setting.name == name)
        || name.ends_with("_WEBHOOK_SECRET")
        || name.ends_with("_WEBHOOK_SECRET_FILE")
}

/// The environment variables of a source's secrets and of its secret file, by its name.
pub fn secret_variables(source: &str) -> [String; 2] {
    let stem = source.to_ascii_uppercase().replace('-', "_");
    [
        format!("{stem}_WEBHOOK_SECRET"),
        format!("{stem}_WEBHOOK_SECRET_FILE"),
    ]
}
