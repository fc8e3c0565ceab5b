//! `rediss://` against a server with a certificate of our own authority.
//!
//! Which authorities count is read from the process's environment, so the test runs itself once more as a process
//! that trusts ours.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use hookgate_harness::RedisServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{AMPLE, claims, unavailable, won};

/// Tells the inner process where to claim.
const PORT: &str = "HOOKGATE_TEST_TLS_PORT";

/// Writes `authority.pem`, and `server.pem` and `server.key` for `localhost`.
fn write_certificates(directory: &Path) {
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&server_key, &authority).unwrap();
    for (name, pem) in [
        ("authority.pem", authority.pem()),
        ("server.pem", server.pem()),
        ("server.key", server_key.serialize_pem()),
    ] {
        std::fs::write(directory.join(name), pem).unwrap();
    }
}

async fn server(directory: &Path, port: u16) -> RedisServer {
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    RedisServer::start_with(&[
        "--tls-port",
        &port.to_string(),
        "--tls-auth-clients",
        "no",
        "--tls-cert-file",
        &file("server.pem"),
        "--tls-key-file",
        &file("server.key"),
        "--tls-ca-cert-file",
        &file("authority.pem"),
    ])
    .await
}

#[tokio::test]
async fn claims_travel_in_tls_and_only_to_whom_we_trust() {
    let directory = tempfile::tempdir().unwrap();
    write_certificates(directory.path());
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = server(directory.path(), port).await;

    let distrusted = unavailable(&claims(format!("rediss://localhost:{port}"), AMPLE), "evt_1").await;
    assert!(distrusted.possible.is_none(), "nothing was sent");
    assert_eq!(server.cli(&["DBSIZE"]), "0");

    let inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::one_claim_over_tls", "--ignored"])
        .env("SSL_CERT_FILE", directory.path().join("authority.pem"))
        .env(PORT, port.to_string())
        .output()
        .unwrap();
    assert!(
        inner.status.success(),
        "{}",
        String::from_utf8_lossy(&inner.stdout)
    );
    assert_eq!(server.cli(&["EXISTS", "webhook:stripe:evt_1"]), "1");
}

#[tokio::test]
#[ignore = "run by claims_travel_in_tls_and_only_to_whom_we_trust"]
#[allow(
    clippy::disallowed_methods,
    reason = "the environment is how the outer test speaks to this one"
)]
async fn one_claim_over_tls() {
    let port = std::env::var(PORT).unwrap();
    let _ = won(&claims(format!("rediss://localhost:{port}"), AMPLE), "evt_1").await;
}
