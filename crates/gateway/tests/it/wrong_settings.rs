//! A setting that is not accepted stops the start with one sentence: its name, its value, what would be
//! accepted. Exit code 64.

use hookgate_gateway::config::setting::{self, Setting};
use tokio::task::JoinSet;

use crate::command_line::{Ran, run, run_with_file};
use crate::provider::SECRET;

const NO_DURATION: &[&str] = &["", "5", "soon", "-1s", "1 parsec", "5s5", "999999999999y", "200y"];
const NO_POSITIVE_DURATION: &[&str] = &["", "5", "soon", "-1s", "0s", "999999999999y"];
const NO_COUNT: &[&str] = &["", "0", "-1", "1.5", "many", "0x10", "99999999999999999999999"];

/// Values that the setting must not take.
fn wrong_values(setting: &Setting) -> &'static [&'static str] {
    match setting.name {
        "REDIS_URL" => &[
            "",
            "localhost:6379",
            "http://localhost",
            "redis://",
            "redis://[::1",
            "None",
        ],
        "DATABASE_URL" => &[
            "",
            "hookgate.db",
            "mysql://localhost/x",
            "sqlite://",
            "sqlite:x",
            "postgres",
            "postgres://[::1",
        ],
        "HOOKGATE_REDIS_MODE" => &["", "Single", "clustered", "sentinel,cluster"],
        "HOOKGATE_REDIS_TIMEOUT" | "HOOKGATE_LEDGER_TIMEOUT" | "HOOKGATE_REQUEST_TIMEOUT" => {
            NO_POSITIVE_DURATION
        }
        "HOOKGATE_HANDLER_TIMEOUT" => NO_POSITIVE_DURATION,
        "HOOKGATE_CLAIM_LEASE" => &["", "5", "99ms", "0s", "999999999999y"],
        "HOOKGATE_CLAIM_TTL" => &["", "7", "999ms", "0s", "999999999999y"],
        "HOOKGATE_CLAIM_WAIT" | "HOOKGATE_RETRY_BASE" | "HOOKGATE_KEEP_ALIVE" | "HOOKGATE_SHUTDOWN_GRACE" => {
            NO_DURATION
        }
        "HOOKGATE_CLAIM_EPOCH" => &["", "-1", "1.0", "4294967296", "x"],
        "HOOKGATE_MIGRATE" => &["", "true", "1", "ON"],
        "HOOKGATE_LISTEN" | "HOOKGATE_ADMIN_LISTEN" => &[
            "",
            "8080",
            ":8080",
            "127.0.0.1",
            "localhost:8080",
            "127.0.0.1:65536",
            "http://0.0.0.0:80",
        ],
        "HOOKGATE_PUBLIC_URL" => &[
            "",
            "hooks.example.com",
            "ftp://hooks.example.com",
            "https://",
            "https://user@hooks.example.com",
            "https://user:word@hooks.example.com",
            "https://hooks.example.com/?a=b",
            "https://hooks.example.com/#part",
            "https://hooks.example.com/a b",
        ],
        "HOOKGATE_SECRET_POLL" => &["", "5", "99ms", "0s", "on", "Off", "999999999999y"],
        "HOOKGATE_HANDLER" => &["", "Inbox", "forwards", "inbox,forward"],
        "HOOKGATE_CONSUMER" => &["", "Pull", "nobody", "target,pull"],
        "HOOKGATE_ADMIN_TOKEN" | "HOOKGATE_CONSUME_TOKEN" => &[
            "",
            "fifteen-letters",
            "sixteen letters with blanks",
            "sixteen-letters-ünd-more",
        ],
        "HOOKGATE_WORKER_LEASE" => &["", "5", "999ms", "0s", "999999999999y"],
        "HOOKGATE_RETENTION_BODY" => &["", "30", "59m", "0s", "999999999999y"],
        "HOOKGATE_RETENTION_EVENT" => &["", "400", "23h", "0s", "999999999999y"],
        "HOOKGATE_TARGET_RATE" => &["", "0", "-1", "many", "inf", "NaN", "1/s"],
        "HOOKGATE_TARGET_URL" | "HOOKGATE_NOTIFY_URL" => &[
            "",
            "example.com",
            "ftp://example.com",
            "http://",
            "/hook",
            "file:///x",
        ],
        "HOOKGATE_TARGET_SECRET" => &["", "short", "whsec_", "whsec_c2hvcnQ=", "whsec_no base64 at all"],
        "HOOKGATE_WITHOUT_STORE" => &["", "guarded", "REJECT", "no"],
        "HOOKGATE_MEMORY_CLAIMS"
        | "HOOKGATE_RETRY_MAX_ATTEMPTS"
        | "HOOKGATE_WORKER_CONCURRENCY"
        | "HOOKGATE_TARGET_CONCURRENCY"
        | "HOOKGATE_MAX_BODY_BYTES"
        | "HOOKGATE_MAX_CONNECTIONS" => NO_COUNT,
        "HOOKGATE_THREADS" => &["", "0", "-1", "1.5", "many", "513"],
        "HOOKGATE_LOG" => &["", "loud", "off", "info,actix=debug"],
        "HOOKGATE_LOG_FORMAT" => &["", "text", "JSON"],
        "HOOKGATE_NOTIFY_QUIET" => &["", "5", "999ms", "0s", "999999999999y"],
        other => panic!("{other} needs values that it must refuse"),
    }
}

/// What else stands in the environment, so that the setting counts.
const OTHERS: [(&str, &str); 3] = [
    ("STRIPE_WEBHOOK_SECRET", SECRET),
    ("HOOKGATE_LISTEN", "127.0.0.1:0"),
    ("HOOKGATE_ADMIN_LISTEN", "127.0.0.1:0"),
];

fn check(setting: &Setting, value: &str, ran: &Ran) {
    let name = setting.name;
    assert_eq!(ran.code, Some(64), "{name} = {value:?}: {ran:#?}");
    let sentence = ran.sentence();
    let says_name = sentence.contains(name) || sentence.contains(&setting.key());
    assert!(says_name, "{name} = {value:?} is not named: {sentence}");
    // Two values are judged by those who use them, in words of their own.
    let form = match name {
        "REDIS_URL" => "redis://",
        "DATABASE_URL" => "postgres://",
        _ => setting.accepts,
    };
    assert!(
        sentence.contains(form),
        "{name} = {value:?}, accepted form: {sentence}"
    );
    if setting.secret {
        // Less than a scheme is no secret.
        assert!(
            value.len() < 10 || !sentence.contains(value),
            "{name} is secret: {sentence}"
        );
    } else {
        assert!(
            sentence.contains(&format!("{value:?}")),
            "{name} = {value:?}: {sentence}"
        );
    }
    let rest: Vec<_> = ran.lines.iter().filter(|line| !line.starts_with('{')).collect();
    assert_eq!(rest.len(), 1, "one line and no panic: {ran:#?}");
}

#[tokio::test]
async fn every_wrong_value_of_every_setting_stops_the_start_with_one_sentence() {
    for setting in setting::ALL {
        let mut running = JoinSet::new();
        for value in wrong_values(setting) {
            running.spawn(async move {
                let mut settings = OTHERS.to_vec();
                if setting.name == "HOOKGATE_TARGET_SECRET" {
                    settings.push(("HOOKGATE_TARGET_URL", "http://127.0.0.1:1"));
                }
                settings.push((setting.name, value));
                check(setting, value, &run(&["serve"], &settings).await);
            });
        }
        running.join_all().await;
    }
}

#[tokio::test]
async fn what_the_start_refuses_the_check_refuses_too() {
    for setting in setting::ALL {
        let mut running = JoinSet::new();
        for value in wrong_values(setting) {
            running.spawn(async move {
                let mut settings = vec![OTHERS[0], ("HOOKGATE_TARGET_URL", "http://127.0.0.1:1")];
                settings.push((setting.name, value));
                check(setting, value, &run(&["config", "check"], &settings).await);
            });
        }
        running.join_all().await;
    }
}

#[tokio::test]
async fn a_wrong_value_in_the_file_is_refused_by_its_key_and_the_name_of_the_file() {
    for setting in setting::ALL {
        let value = wrong_values(setting).last().expect("a value");
        let target = match setting.name {
            "HOOKGATE_TARGET_SECRET" => "target_url = 'http://127.0.0.1:1'\n",
            _ => "",
        };
        let toml = format!("{} = '{value}'\n{target}", setting.key());
        let settings = [("STRIPE_WEBHOOK_SECRET", SECRET)];
        let ran = run_with_file(&["config", "check"], &toml, &settings).await;
        check(setting, value, &ran);
    }
}
