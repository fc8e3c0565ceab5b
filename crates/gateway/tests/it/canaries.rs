//! Secrets, card numbers and addresses go in by every door at the finest log level; none comes out again in
//! a log line, a metric or an answer.

use hookgate_harness::{Answer as TargetAnswer, Fault, PostgresServer, Proxy, Upstream};
use hookgate_webhook::Provider;

use crate::gateway::Replica;
use crate::provider::{self, Signed};

const STRIPE_SECRET: &str = "whsec_canarysecretofstripe";
const GITHUB_SECRET: &str = "canarysecretofgithub";
const TARGET_SECRET: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LWNhbmFyeS0=";

/// What must not come out. The passwords are part of store and target URLs.
const CANARIES: [&str; 9] = [
    "canarysecretofstripe",
    "canarysecretofgithub",
    "Y2FuYXJ5LWNhbmFyeS1j",
    "canarypassword",
    "4242424242424242",
    "canary@example.com",
    "canaryheader",
    "canarybody",
    "canarytoken",
];

fn body(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"invoice.paid","card":"4242424242424242","email":"canary@example.com","note":"canarybody"}}"#
    )
}

fn carrying(mut delivery: Signed) -> Signed {
    for (name, value) in [
        ("Authorization", "Bearer canarytoken"),
        ("Cookie", "session=canarytoken"),
        ("X-Note", "canaryheader 4242424242424242"),
        ("User-Agent", "canaryheader"),
        ("X-Forwarded-For", "canaryheader"),
        ("Referer", "https://example.com/?token=canarytoken"),
        ("X-Request-Id", "canaryheader canary@example.com"),
        ("traceparent", "canaryheader"),
    ] {
        delivery.headers.push((name.to_owned(), value.to_owned()));
    }
    delivery
}

fn stripe(id: &str) -> Signed {
    carrying(provider::sign(
        Provider::Stripe,
        STRIPE_SECRET,
        "",
        body(id).as_bytes(),
    ))
}

/// Every way in that ends differently.
fn every_kind() -> Vec<Signed> {
    let (mut forged, mut unsigned) = (stripe("evt_forged"), stripe("evt_unsigned"));
    forged.body.push(b' ');
    unsigned.headers.remove(0);
    let mut packed = stripe("evt_packed");
    packed
        .headers
        .push(("Content-Encoding".to_owned(), "gzip".to_owned()));
    let mut signature = stripe("evt_signature");
    signature.headers[0].1 = "t=canarytoken,v1=canarytoken".to_owned();
    let mut nobody = stripe("evt_nobody");
    nobody.source = "canarytoken?token=canarytoken".to_owned();
    let malformed = |body: &str| {
        carrying(provider::sign(
            Provider::Stripe,
            STRIPE_SECRET,
            "",
            body.as_bytes(),
        ))
    };
    vec![
        stripe("evt_1"),
        stripe("evt_1"),
        forged,
        unsigned,
        packed,
        signature,
        nobody,
        malformed(r#""canarybody 4242424242424242""#),
        malformed(r#"{"id":4242424242424242}"#),
        malformed(r#"{"id":"evt_2","canarybody":canarybody}"#),
        malformed(r#"{"id":"canarybody\u0000"}"#),
        malformed(r#"{"id":"evt_3","type":"canarybody\u0000","created":"canary@example.com"}"#),
        malformed("4242424242424242"),
        carrying(provider::sign(
            Provider::Github,
            GITHUB_SECRET,
            "",
            body("x").as_bytes(),
        )),
    ]
}

/// Sends everything; returns all answers as text.
async fn answers(replica: &Replica) -> Vec<String> {
    let mut answers = Vec::new();
    for delivery in every_kind() {
        let answer = replica.deliver(&delivery).await;
        answers.push(format!("{answer:?}"));
    }
    answers
}

async fn no_canary_is_out(replica: &Replica, signatures: &[String], answers: &[String]) {
    let (_, metrics) = replica.admin("/metrics").await;
    let (_, ready) = replica.admin("/readyz").await;
    let said = [replica.process().lines(), answers.to_vec(), vec![metrics, ready]].concat();
    let told = |canary: &str| {
        said.iter()
            .filter(|text| text.contains(canary))
            .collect::<Vec<_>>()
    };
    let canaries = CANARIES.into_iter().chain(signatures.iter().map(String::as_str));
    for canary in canaries {
        let told = told(canary);
        assert!(told.is_empty(), "{canary} is told: {told:#?}");
    }
}

/// The digests that the deliveries were signed with.
fn signatures() -> Vec<String> {
    let deliveries = every_kind();
    let values = deliveries.iter().flat_map(|delivery| &delivery.headers);
    values
        .filter(|(name, _)| name.to_ascii_lowercase().contains("signature"))
        .filter_map(|(_, value)| Some(value.rsplit_once('=')?.1.to_owned()))
        .filter(|digest| digest.len() == 64)
        .collect()
}

#[tokio::test]
async fn none_comes_out_whether_the_stores_work_the_target_fails_or_the_stores_are_gone() {
    let postgres = PostgresServer::start().await;
    let proxy = Proxy::start(postgres.addr()).await;
    let upstream = Upstream::start().await;
    upstream.answer(TargetAnswer::Status(500));
    let database = format!("postgres://postgres:canarypassword@{}/postgres", proxy.addr());
    let target = upstream.url().replace("http://", "http://user:canarypassword@");
    let target = format!("{target}/hook?token=canarytoken");
    let replica = Replica::serve(&[
        ("HOOKGATE_LOG", "trace"),
        ("DATABASE_URL", &database),
        // Nobody listens there: each claim fails, and says so.
        ("REDIS_URL", "redis://user:canarypassword@127.0.0.1:1"),
        ("STRIPE_WEBHOOK_SECRET", STRIPE_SECRET),
        ("GITHUB_WEBHOOK_SECRET", GITHUB_SECRET),
        ("HOOKGATE_TARGET_URL", &target),
        ("HOOKGATE_TARGET_SECRET", TARGET_SECRET),
        ("HOOKGATE_RETRY_MAX_ATTEMPTS", "1"),
    ])
    .await;
    let mut told = answers(&replica).await;
    upstream.wait_for(2).await;
    replica
        .process()
        .wait_for_line(|line| line.contains(" 1 of 1: the target answered 500"))
        .await;
    proxy.set(Fault::Refuse);
    told.extend(answers(&replica).await);
    postgres.kill().await;
    told.extend(answers(&replica).await);
    assert!(
        told.iter().any(|answer| answer.contains("\"unavailable\"")),
        "{told:#?}"
    );
    no_canary_is_out(&replica, &signatures(), &told).await;
    let traced = replica.process().lines();
    assert!(
        traced.iter().any(|line| line.contains("hookgate::delivery")),
        "the log is on"
    );
}

#[tokio::test]
async fn none_comes_out_when_a_forward_fails() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let upstream = Upstream::start().await;
    let database = crate::embedded::url(&directory.path().join("hookgate.db"));
    let target = format!("{}/hook?token=canarytoken", upstream.url());
    let replica = Replica::serve(&[
        ("HOOKGATE_LOG", "trace"),
        ("DATABASE_URL", &database),
        ("STRIPE_WEBHOOK_SECRET", STRIPE_SECRET),
        ("GITHUB_WEBHOOK_SECRET", GITHUB_SECRET),
        ("HOOKGATE_HANDLER", "forward"),
        ("HOOKGATE_TARGET_URL", &target),
        ("HOOKGATE_TARGET_SECRET", TARGET_SECRET),
    ])
    .await;
    let mut told = Vec::new();
    for answer in [
        TargetAnswer::Status(500),
        TargetAnswer::Reset,
        TargetAnswer::Status(302),
    ] {
        upstream.answer(answer);
        told.extend(answers(&replica).await);
    }
    drop(upstream);
    told.extend(answers(&replica).await);
    assert!(
        told.iter().any(|answer| answer.contains("\"handler_failed\"")),
        "{told:#?}"
    );
    no_canary_is_out(&replica, &signatures(), &told).await;
}
