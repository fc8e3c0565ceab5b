//! A target behind TLS: reached with a certificate of an authority that we trust, and not without.

use std::sync::Arc;

use hookgate_harness::Upstream;
use hookgate_ledger::State;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::deployment::{Deployment, Stores};
use crate::patience::eventually;
use crate::provider;

/// A TLS listener for `localhost` before a target, and the certificate of its authority.
async fn in_tls(target: &Upstream) -> (String, String) {
    let mut authority = CertificateParams::new([]).expect("no names are good names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let server = server.signed_by(&key, &authority).expect("a certificate");
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], private)
        .expect("key and certificate fit");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (acceptor, address) = (TlsAcceptor::from(Arc::new(config)), target.addr());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust us leaves in the middle.
                let Ok(mut secure) = acceptor.accept(stream).await else {
                    return;
                };
                let mut plain = TcpStream::connect(address).await.expect("the target listens");
                let _ = copy_bidirectional(&mut secure, &mut plain).await;
            });
        }
    });
    (format!("https://localhost:{port}/hook"), authority.pem())
}

#[tokio::test]
async fn events_reach_a_target_in_tls_and_only_one_that_we_trust() {
    let target = Upstream::start().await;
    let (url, authority) = in_tls(&target).await;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("authority.pem");
    std::fs::write(&file, authority).expect("it can be written");
    let event = provider::fresh();

    let deployment = Deployment::on(Stores::PostgresAlone)
        .await
        .set("HOOKGATE_TARGET_URL", &url);
    let stranger = deployment.replica().await;
    assert!(stranger.deliver(&event).await.is_ok(false));
    let error = eventually("the try is settled", async || {
        deployment.entry(&event).await?.last_error
    })
    .await;
    assert_eq!(error, "the target cannot be reached");
    assert_eq!(stranger.stop().await, Some(0));
    assert_eq!(target.requests().len(), 0, "nothing was shown to a stranger");

    let deployment = deployment.set("SSL_CERT_FILE", &file.display().to_string());
    let _trusting = deployment.replica().await;
    deployment.wait_for_state(&event, State::Done).await;
    assert_eq!(target.count_for(&event.target_id()), 1);
}
