//! An authority of our own, and a certificate for servers on this machine.
//!
//! Which authorities count is read from the process's environment, so a test that trusts ours runs itself once more
//! as a process of its own.

use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// Tells the inner process what to do.
const TOLD: &str = "HOOKGATE_TEST_TLS";

/// A directory with `authority.pem`, and `server.pem` and `server.key` for `localhost` and `127.0.0.1`.
pub(crate) fn written() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Under the name that both have unless told otherwise the server's certificate would look self-signed.
    authority
        .distinguished_name
        .push(DnType::CommonName, "the authority of these tests");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&server_key, &authority).unwrap();
    for (name, pem) in [
        ("authority.pem", authority.pem()),
        ("server.pem", server.pem()),
        ("server.key", server_key.serialize_pem()),
    ] {
        std::fs::write(directory.path().join(name), pem).unwrap();
    }
    directory
}

/// Runs the ignored test of this name as a process that trusts the authority in `directory`, and tells it something.
pub(crate) fn trusting(directory: &Path, test: &str, told: &str) {
    let inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("SSL_CERT_FILE", directory.join("authority.pem"))
        .env(TOLD, told)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inner.stdout);
    assert!(
        inner.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&inner.stderr)
    );
}

/// What the outer process told.
#[allow(
    clippy::disallowed_methods,
    reason = "the environment is how the outer test speaks to this one"
)]
pub(crate) fn told() -> String {
    std::env::var(TOLD).unwrap()
}
