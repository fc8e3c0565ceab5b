//! Senders that are not built in: what a configuration describes is verified, identified and kept like everything
//! else, and a description that cannot be right says so before anything is received.

use hookgate_signature::{Keys, Scheme, TimestampedList, Tolerance};

use crate::command_line::{run, run_in, run_with_file};
use crate::embedded;
use crate::gateway::Replica;
use crate::provider::now;

const ACME: &str = r#"
[sources.acme]
provider = "hmac"
secrets = ["old-secret", "acme-secret"]

[sources.acme.signature]
header = "X-Acme-Signature"
prefix = "v1="
algorithm = "hmac-sha512"
encoding = "base64"
signed = "{header:X-Acme-Id}|{body}"

[sources.acme.event]
id = "header:X-Acme-Id"
type = "body:kind"
object = "body:order.number"
mode = "body:live"

[sources.timed]
provider = "hmac"
secrets = ["timed-secret"]

[sources.timed.signature]
header = "Timed-Signature"
item = "s"
timestamp_item = "at"
separator = ";"
signed = "{timestamp}:{body}"

[sources.gate]
provider = "token"
secrets = ["let-me-in"]

[sources.gate.signature]
header = "X-Gate"

[sources.gate.sender]
refusal_status = 401
"#;

const BODY: &str = r#"{"kind":"order.paid","order":{"number":9007199254740993},"live":true}"#;

/// HMAC-SHA512 of `msg-1|` and the body under `acme-secret`, as another program computes it.
const SIGNATURE: &str =
    "v1=03WiqSM2NdFHiEgzZzLP2EhMpn84UTN4ChERS8mKEwF8u9OX6AHcl564+F8YvGyzOLkmwky9xu0RF2OZPLRK3g==";

async fn replica(directory: &tempfile::TempDir) -> Replica {
    let file = directory.path().join("hookgate.toml");
    std::fs::write(&file, ACME).expect("the directory takes a file");
    Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("HOOKGATE_CONFIG", &file.display().to_string()),
    ])
    .await
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_described_sender_is_verified_and_identified() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let headers = [
        header("X-Acme-Signature", SIGNATURE),
        header("x-acme-id", "msg-1"),
    ];
    assert!(replica.post("acme", &headers, BODY).await.is_ok(false));
    assert!(replica.post("acme", &headers, BODY).await.is_ok(true));
    let database = embedded::url(&directory.path().join("hookgate.db"));
    let shown = run(
        &["events", "show", "acme:msg-1", "--json"],
        &[("DATABASE_URL", &database)],
    )
    .await;
    let event: serde_json::Value = serde_json::from_str(&shown.text()).expect("it is JSON");
    for (field, value) in [
        ("provider", "hmac"),
        ("event_type", "order.paid"),
        ("object_id", "9007199254740993"),
        ("mode", "live"),
    ] {
        assert_eq!(event[field], value, "{field} of {event}");
    }
    let forged = [
        header("X-Acme-Signature", SIGNATURE),
        header("x-acme-id", "msg-2"),
    ];
    assert_eq!(replica.post("acme", &forged, BODY).await.error(), "bad_signature");
    let unsigned = [header("X-Acme-Signature", SIGNATURE)];
    assert_eq!(
        replica.post("acme", &unsigned, BODY).await.error(),
        "missing_signature"
    );
    let other_form = [
        header("X-Acme-Signature", &SIGNATURE.replace("v1=", "v2=")),
        header("x-acme-id", "msg-1"),
    ];
    assert_eq!(
        replica.post("acme", &other_form, BODY).await.error(),
        "malformed_signature"
    );
}

#[tokio::test]
async fn a_described_list_of_time_and_signatures_has_a_tolerance_and_digest_ids() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let scheme = Scheme::TimestampedList(TimestampedList {
        header: "Timed-Signature",
        timestamp: "at",
        signature: "s",
        separator: b';',
        joiner: b':',
    });
    let keys = Keys::new(scheme, &["timed-secret".into()], Tolerance::Off).expect("a secret");
    let signed = |moment: i64, body: &str| {
        let headers = keys.sign("", moment, body.as_bytes());
        headers
            .into_iter()
            .map(|(name, value)| header(name, &value))
            .collect::<Vec<_>>()
    };
    let post =
        async |moment: i64, body: &'static str| replica.post("timed", &signed(moment, body), body).await;
    assert!(post(now(), "any bytes at all").await.is_ok(false));
    assert!(
        post(now() - 200, "any bytes at all").await.is_ok(true),
        "the same bytes are the same event"
    );
    assert!(post(now(), "any bytes at all.").await.is_ok(false));
    assert_eq!(post(now() - 400, "late").await.error(), "stale_timestamp");
    assert_eq!(post(now() + 400, "early").await.error(), "future_timestamp");
}

#[tokio::test]
async fn a_token_opens_its_own_source_only() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = replica(&directory).await;
    let post = async |token: &str| replica.post("gate", &[header("X-Gate", token)], BODY).await;
    assert!(post("let-me-in").await.is_ok(false));
    for wrong in ["let-me-i", "let-me-inn", "LET-ME-IN", "acme-secret"] {
        let answer = post(wrong).await;
        assert_eq!((answer.status, answer.error()), (401, "bad_signature"), "{wrong}");
    }
    let none = replica.post("gate", &[], BODY).await;
    assert_eq!((none.status, none.error()), (401, "missing_signature"));
}

#[tokio::test]
async fn a_description_is_proved_against_a_saved_request() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("hookgate.toml"), ACME).expect("the directory takes a file");
    let head =
        format!("POST /webhooks/acme HTTP/1.1\r\nX-Acme-Id: msg-1\r\nX-Acme-Signature: {SIGNATURE}\r\n\r\n");
    std::fs::write(directory.path().join("good.http"), format!("{head}{BODY}")).expect("it takes files");
    std::fs::write(directory.path().join("bad.http"), format!("{head}{BODY}\n")).expect("it takes files");
    let check = async |file: &str| {
        let arguments = [
            "config",
            "check",
            "--offline",
            "--config",
            "hookgate.toml",
            "--source",
            "acme",
            "--sample",
            file,
        ];
        run_in(directory.path(), &arguments, &[]).await
    };
    let good = check("good.http").await;
    assert_eq!(good.code, Some(0), "{good:#?}");
    let read = "id msg-1, type order.paid, object 9007199254740993, account -, mode live, time -";
    assert!(good.text().contains(read), "{good:#?}");
    assert!(good.text().contains("secret 1 of 2 fits"), "{good:#?}");
    let bad = check("bad.http").await;
    assert_eq!(bad.code, Some(1), "{bad:#?}");
    assert!(bad.text().contains("line break"), "{bad:#?}");
    assert!(
        !bad.text().contains("acme-secret") && !bad.text().contains(&SIGNATURE[3..]),
        "{bad:#?}"
    );
    assert_eq!(check("none.http").await.code, Some(64));
}

/// A source that describes its sender with these lines.
fn source(provider: &str, lines: &str) -> String {
    format!("[sources.s]\nprovider = \"{provider}\"\nsecrets = [\"canary-secret\"]\n{lines}\n")
}

#[tokio::test]
async fn a_description_that_cannot_be_right_says_what_would_be() {
    let signature = |lines: &str| {
        source(
            "hmac",
            &format!("[sources.s.signature]\nheader = \"X-S\"\n{lines}"),
        )
    };
    let cases = [
        (source("hmac", ""), "signature.header is missing"),
        (source("token", ""), "signature.header is missing"),
        (
            source("stripe", "[sources.s.event]\nid = \"body:id\""),
            "event describes a sender of your own",
        ),
        (source("acme", ""), "unknown provider; known are stripe"),
        (
            signature("algorithm = \"canary\""),
            "signature.algorithm is not accepted: expected one of hmac-sha256, hmac-sha1",
        ),
        (
            signature("key = \"canary\""),
            "signature.key is not accepted: expected one of text, hex, base64",
        ),
        (
            signature("encoding = 5"),
            "signature.encoding is not accepted: expected one of hex, base64",
        ),
        (
            signature("secret = \"canary\""),
            "signature.secret is not a setting here: there are header, prefix",
        ),
        (
            signature("signed = \"{Body}\""),
            "{Body} is not known; places are {body}",
        ),
        (signature("signed = \"{body\""), "a brace is not closed"),
        (
            signature("signed = \"canary\""),
            "it names nothing of the request",
        ),
        (
            signature("signed = \"{timestamp}.{body}\""),
            "needs timestamp_header",
        ),
        (
            signature("timestamp_header = \"X-T\""),
            "{timestamp} is not part of signed",
        ),
        (
            signature("algorithm = \"ed25519\"\nkey = \"hex\""),
            "a public key has its own form",
        ),
        (
            signature("algorithm = \"ed25519\""),
            "it is not an ed25519 public key",
        ),
        (signature("key = \"hex\""), "it is not hexadecimal"),
        (
            signature("item = \"v1\""),
            "with item it is {timestamp}, one character and {body}",
        ),
        (
            signature("item = \"v1\"\nprefix = \"a\""),
            "signature.prefix is not accepted: with item",
        ),
        (
            signature("separator = \";\""),
            "signature.separator is not accepted: goes with item",
        ),
        (
            source("hmac", "[sources.s.signature]\nheader = \"X S\""),
            "signature.header is not accepted: expected the name of a header",
        ),
        (
            signature("[sources.s.event]\nid = \"id\""),
            "event.id is not accepted: expected header:NAME, or body:",
        ),
        (
            signature("[sources.s.event]\nid = \"body:a..b\""),
            "event.id is not accepted",
        ),
        (
            signature("[sources.s.sender]\nretries = \"no\""),
            "sender.retries is not accepted: expected true or false",
        ),
        (
            signature("[sources.s.sender]\nanswer_budget = \"0s\""),
            "sender.answer_budget is not accepted: expected a duration from 1s",
        ),
        (
            signature("[sources.s.sender]\nrefusal_status = 500"),
            "sender.refusal_status is not accepted: expected one of 400, 401",
        ),
        (
            source(
                "token",
                "[sources.s.signature]\nheader = \"X-S\"\nsigned = \"{body}\"",
            ),
            "token compares one header",
        ),
        (source("hmac", "signature = 1"), "signature is a table"),
    ];
    for (toml, sentence) in cases {
        let ran = run_with_file(&["config", "check", "--offline"], &toml, &[]).await;
        assert_eq!(ran.code, Some(64), "{toml}{ran:#?}");
        assert!(ran.sentence().contains(sentence), "{toml}{}", ran.sentence());
        let quotes_a_secret = ran.text().replace("{canary}", "").contains("canary");
        assert!(!quotes_a_secret, "{}", ran.text());
    }
}

#[tokio::test]
async fn a_sender_that_never_sends_again_needs_a_ledger_to_be_forwarded() {
    let toml = source(
        "hmac",
        "handler = \"forward\"\ntarget_url = \"http://127.0.0.1:9\"\n[sources.s.signature]\nheader = \"X-S\"\n[sources.s.sender]\nretries = false",
    );
    let settings = [("DATABASE_URL", "none"), ("REDIS_URL", "redis://127.0.0.1:1")];
    let ran = run_with_file(&["config", "check", "--offline"], &toml, &settings).await;
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.sentence()
            .contains("never retries, so forward needs a ledger"),
        "{}",
        ran.sentence()
    );
}
