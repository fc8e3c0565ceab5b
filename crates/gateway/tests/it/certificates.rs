//! A key that a sender names by a certificate is taken only from a chain that leads to a trusted authority, is valid
//! now, and is for the provider's domain; it is fetched once, and nobody who has it waits for a stranger's fetch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hookgate_gateway::certificates::{Certificates, NoKey};
use prometheus::{IntCounterVec, Opts};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData as _, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::embedded;
use crate::gateway::Replica;

/// The middle of what the certificates here are valid for, unix seconds: in the year 2030.
const NOW: i64 = 1_900_000_000;

/// The domain that certificates have to be for.
const DOMAIN: &str = "pay.example";

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::new([]).expect("no names are good names");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority::self_signed(parameters, KeyPair::generate().expect("a key")).expect("an authority")
}

/// A certificate for this name in PEM, and its key as X.509 writes it.
fn certificate(authority: &Authority, name: &str) -> (String, Vec<u8>) {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::new([name.to_owned()]).expect("a name");
    parameters.not_before = date_time_ymd(2025, 1, 1);
    parameters.not_after = date_time_ymd(2035, 1, 1);
    let signed = parameters.signed_by(&key, authority).expect("a certificate");
    (signed.pem(), key.subject_public_key_info())
}

/// A server of one answer, and how often it was asked.
async fn server(status: &'static str, body: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nLocation: http://{address}/elsewhere\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (format!("http://{address}/certs/CERT-1"), asked)
}

fn certificates(trusted: &Authority) -> (Certificates, IntCounterVec) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let outcomes = IntCounterVec::new(Opts::new("certificates", "by outcome"), &["outcome"]).expect("a name");
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client");
    let der = CertificateDer::from(trusted.der().to_vec());
    let anchor = webpki::anchor_from_trusted_cert(&der)
        .expect("an anchor")
        .to_owned();
    (
        Certificates::new(client, vec![anchor], outcomes.clone()),
        outcomes,
    )
}

#[tokio::test]
async fn a_trusted_certificate_gives_its_key_and_is_fetched_once() {
    let authority = authority();
    let (certificates, outcomes) = certificates(&authority);
    let (pem, key) = certificate(&authority, "certs.pay.example");
    let (url, asked) = server("200 OK", pem).await;
    for _ in 0..3 {
        assert_eq!(certificates.key(&url, DOMAIN, NOW).await.as_deref(), Ok(&*key));
    }
    let together = futures_util::future::join_all((0..50).map(|_| certificates.key(&url, DOMAIN, NOW))).await;
    assert!(together.iter().all(Result::is_ok));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(outcomes.with_label_values(&["fetched"]).get(), 1);
}

#[tokio::test]
async fn a_certificate_of_a_stranger_of_another_domain_or_of_another_time_gives_no_key() {
    let authority = authority();
    let (certificates, outcomes) = certificates(&authority);
    let stranger = self::authority();
    let cases = [
        (certificate(&stranger, "certs.pay.example").0, NOW),
        (certificate(&authority, "pay.example.evil.example").0, NOW),
        (certificate(&authority, "evilpay.example").0, NOW),
        (certificate(&authority, "certs.pay.example").0, 2_500_000_000),
        (certificate(&authority, "certs.pay.example").0, 1_000_000_000),
        ("no certificate".to_owned(), NOW),
        (String::new(), NOW),
    ];
    let count = cases.len() as u64;
    for (pem, now) in cases {
        let (url, _) = server("200 OK", pem.clone()).await;
        assert_eq!(
            certificates.key(&url, DOMAIN, now).await,
            Err(NoKey::Untrusted),
            "{pem} at {now}"
        );
    }
    assert_eq!(outcomes.with_label_values(&["untrusted"]).get(), count);
}

#[tokio::test]
async fn what_cannot_be_fetched_is_not_asked_again_at_once() {
    let authority = authority();
    let (certificates, _) = certificates(&authority);
    let (pem, _) = certificate(&authority, "certs.pay.example");
    for (status, body) in [
        ("404 Not Found", String::new()),
        ("302 Found", pem.clone()),
        ("200 OK", pem + &" ".repeat(70_000)),
    ] {
        let (url, asked) = server(status, body).await;
        for _ in 0..3 {
            assert_eq!(
                certificates.key(&url, DOMAIN, NOW).await,
                Err(NoKey::Unavailable),
                "{status}"
            );
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{status}");
    }
}

#[tokio::test]
async fn a_known_key_does_not_wait_for_a_fetch_that_hangs() {
    let authority = authority();
    let (certificates, _) = certificates(&authority);
    let certificates = Arc::new(certificates);
    let (pem, key) = certificate(&authority, "pay.example");
    let (url, _) = server("200 OK", pem).await;
    assert_eq!(certificates.key(&url, DOMAIN, NOW).await.as_deref(), Ok(&*key));

    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let hanging = format!(
        "http://{}/certs/CERT-2",
        silent.local_addr().expect("it is bound")
    );
    let stranger = Arc::clone(&certificates);
    let fetch = tokio::spawn(async move { stranger.key(&hanging, DOMAIN, NOW).await });
    let (_held, _) = silent.accept().await.expect("it is asked");
    let known = tokio::time::timeout(Duration::from_secs(1), certificates.key(&url, DOMAIN, NOW)).await;
    assert_eq!(known.expect("it does not wait").as_deref(), Ok(&*key));
    assert!(!fetch.is_finished(), "the other still hangs");
    assert_eq!(fetch.await.expect("it ends"), Err(NoKey::Unavailable));
}

/// What a delivery of PayPal's has to carry, with this address of a certificate.
fn paypal(address: &str) -> Vec<(String, String)> {
    [
        ("Paypal-Auth-Algo", "SHA256withRSA"),
        ("Paypal-Cert-Url", address),
        ("Paypal-Transmission-Id", "69cd13f0-d67a-11e5-baa3-000000000001"),
        ("Paypal-Transmission-Time", "2026-09-21T14:13:25Z"),
        ("Paypal-Transmission-Sig", "AAAA"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

#[tokio::test]
async fn only_an_address_of_the_provider_is_asked_and_only_for_what_is_signed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let replica = Replica::serve(&[
        (
            "DATABASE_URL",
            &embedded::url(&directory.path().join("hookgate.db")),
        ),
        ("PAYPAL_WEBHOOK_SECRET", "1JE4291016473214C"),
    ])
    .await;
    let (stranger, asked) = server("200 OK", String::new()).await;
    let body = r#"{"id":"WH-1"}"#;
    for address in [
        stranger.as_str(),
        "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
    ] {
        let answer = replica.post("paypal", &paypal(address), body).await;
        assert_eq!(
            (answer.status, answer.error()),
            (400, "bad_signature"),
            "{address}"
        );
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(
        replica
            .metric("hookgate_certificates_total{outcome=\"unavailable\"}")
            .await,
        0.0
    );
    // Nothing unsigned makes us ask anybody.
    let mut unsigned = paypal("https://api.paypal.com/v1/notifications/certs/CERT-1");
    unsigned.pop();
    assert_eq!(
        replica.post("paypal", &unsigned, body).await.error(),
        "missing_signature"
    );
    assert_eq!(
        replica
            .metric("hookgate_certificates_total{outcome=\"unavailable\"}")
            .await,
        0.0
    );
}
