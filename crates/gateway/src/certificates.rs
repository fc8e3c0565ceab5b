//! Public keys that a sender names by the address of a certificate (PayPal).
//!
//! An address in a request is a stranger's word, so the provider's file has checked it against the hosts that its
//! provider publishes before it comes here. A certificate is fetched over TLS from one that we trust, without following
//! anybody elsewhere, within a bound of bytes and time; it has to lead to an authority that everybody trusts, to be
//! valid at that moment, and to be for a name of the provider's domain. It is kept for a day.
//!
//! Strangers can name addresses that do not exist. So one fetch runs at a time and so many in a minute, what failed is not
//! asked again for a while, and so many addresses are remembered and no more; a key that is known goes on being used
//! while its certificate cannot be fetched again. Whoever cannot be judged meanwhile is asked to come again. An endpoint
//! whose configuration has the provider's public key fetches nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::IntCounterVec;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use tokio::time::{Instant, timeout};
use webpki::{EndEntityCert, KeyUsage};

/// How long a fetched key is used: long enough to cost nothing, short enough to notice a withdrawn certificate.
const KEPT: Duration = Duration::from_hours(24);

/// How long an address that failed is not asked again.
const FAILURE_KEPT: Duration = Duration::from_secs(30);

/// How long a key goes on being used while its certificate cannot be fetched again.
const KEPT_WITHOUT_NEWS: Duration = Duration::from_hours(7 * 24);

/// Addresses that are asked within a minute. A provider has a handful; what strangers invent must neither make us knock
/// at its door without end nor keep us from what is known.
const FETCHES_A_MINUTE_MAX: u32 = 20;

/// A provider has a handful; more are strangers' inventions.
const ADDRESSES_MAX: usize = 64;

/// For one fetch, and for waiting until it is our turn: together they fit into the answer budget of the provider.
const FETCH_MAX: Duration = Duration::from_secs(3);

/// A chain of certificates has some kilobytes.
const BYTES_MAX: usize = 64 * 1024;

/// The certificates that providers name.
pub struct Certificates {
    client: reqwest::Client,
    /// Authorities that a chain has to lead to.
    anchors: Vec<TrustAnchor<'static>>,
    known: Mutex<HashMap<String, Known>>,
    /// One fetch at a time. Whose key is known does not wait for it.
    turn: tokio::sync::Mutex<Minute>,
    outcomes: IntCounterVec,
}

/// How often was fetched since when.
#[derive(Default)]
struct Minute {
    since: Option<Instant>,
    fetches: u32,
}

impl Minute {
    /// Whether one more fetch fits; counts it if it does.
    fn has_room(&mut self, now: Instant) -> bool {
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= Duration::from_secs(60))
        {
            *self = Self {
                since: Some(now),
                fetches: 0,
            };
        }
        self.fetches += 1;
        self.fetches <= FETCHES_A_MINUTE_MAX
    }
}

#[derive(Clone)]
struct Known {
    key: Result<Arc<[u8]>, NoKey>,
    until: Instant,
}

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoKey {
    /// It cannot be had now; later it may.
    #[error("the certificate that the sender names cannot be fetched now")]
    Unavailable,
    /// There is one, and it is not to be trusted.
    #[error("the certificate that the sender names is not one to be trusted")]
    Untrusted,
}

impl NoKey {
    /// All outcomes of looking for a key that is not known yet.
    pub const OUTCOMES: [&'static str; 3] = ["fetched", "unavailable", "untrusted"];
}

impl Certificates {
    /// Fetches over TLS only, and trusts whom browsers trust.
    ///
    /// # Errors
    /// If no client can be built, which is a defect of this machine's TLS.
    pub fn public(outcomes: IntCounterVec) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .https_only(true)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .pool_max_idle_per_host(0)
            .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self::new(
            client,
            webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            outcomes,
        ))
    }

    /// Fetches with this client, which must follow nobody, and trusts chains to these authorities.
    pub fn new(client: reqwest::Client, anchors: Vec<TrustAnchor<'static>>, outcomes: IntCounterVec) -> Self {
        for outcome in NoKey::OUTCOMES {
            outcomes.with_label_values(&[outcome]);
        }
        Self {
            client,
            anchors,
            known: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            outcomes,
        }
    }

    /// The key of the certificate at this address, as X.509 writes it, if it is for this domain or a name below it;
    /// `now` in unix seconds.
    ///
    /// # Errors
    /// [`NoKey`].
    pub async fn key(&self, url: &str, domain: &str, now: i64) -> Result<Arc<[u8]>, NoKey> {
        if let Some(key) = self.known(url) {
            return key;
        }
        let Ok(mut minute) = timeout(FETCH_MAX, self.turn.lock()).await else {
            return self.old(url).ok_or(NoKey::Unavailable);
        };
        // Whoever had the turn before may have fetched it.
        if let Some(key) = self.known(url) {
            return key;
        }
        if !minute.has_room(Instant::now()) {
            return self.old(url).ok_or(NoKey::Unavailable);
        }
        let key = self.look(url, domain, now).await;
        self.outcomes.with_label_values(&[outcome(&key)]).inc();
        if let Err(why) = key {
            tracing::warn!("a delivery names its key by a certificate: {why}");
        }
        match (key, self.old(url)) {
            (Err(NoKey::Unavailable), Some(old)) => Ok(old),
            (key, _) => {
                self.remember(url, &key);
                key
            }
        }
    }

    /// A key that was good, and of which nothing new is known.
    fn old(&self, url: &str) -> Option<Arc<[u8]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(url)?.key.clone().ok()
    }

    fn known(&self, url: &str) -> Option<Result<Arc<[u8]>, NoKey>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(url).filter(|known| known.until > Instant::now());
        known.map(|known| known.key.clone())
    }

    fn remember(&self, url: &str, key: &Result<Arc<[u8]>, NoKey>) {
        let (now, key) = (Instant::now(), key.clone());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| match known.key {
            Ok(_) => known.until + KEPT_WITHOUT_NEWS > now,
            Err(_) => known.until > now,
        });
        if known.len() < ADDRESSES_MAX || key.is_ok() {
            let until = now + if key.is_ok() { KEPT } else { FAILURE_KEPT };
            known.insert(url.to_owned(), Known { key, until });
        }
    }

    async fn look(&self, url: &str, domain: &str, now: i64) -> Result<Arc<[u8]>, NoKey> {
        match timeout(FETCH_MAX, self.fetch(url)).await {
            Ok(Some(pem)) => self.judge(&pem, domain, now).ok_or(NoKey::Untrusted),
            Ok(None) | Err(_) => Err(NoKey::Unavailable),
        }
    }

    async fn fetch(&self, url: &str) -> Option<Vec<u8>> {
        let mut answer = self.client.get(url).send().await.ok()?;
        if answer.status() != reqwest::StatusCode::OK {
            return None;
        }
        let mut pem = Vec::new();
        while let Some(chunk) = answer.chunk().await.ok()? {
            if pem.len() + chunk.len() > BYTES_MAX {
                return None;
            }
            pem.extend_from_slice(&chunk);
        }
        Some(pem)
    }

    /// The key of the first certificate, if the others lead from it to an authority.
    fn judge(&self, pem: &[u8], domain: &str, now: i64) -> Option<Arc<[u8]>> {
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .ok()?;
        let (leaf, intermediates) = chain.split_first()?;
        let leaf = EndEntityCert::try_from(leaf).ok()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.unsigned_abs()));
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        leaf.verify_for_usage(
            algorithms.all,
            &self.anchors,
            intermediates,
            now,
            KeyUsage::server_auth(),
            None,
            None,
        )
        .ok()?;
        let is_ours = |name: &str| {
            let below = name.strip_suffix(domain);
            below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        leaf.valid_dns_names()
            .any(is_ours)
            .then(|| leaf.subject_public_key_info().as_ref().into())
    }
}

fn outcome<T>(key: &Result<T, NoKey>) -> &'static str {
    match key {
        Ok(_) => "fetched",
        Err(NoKey::Unavailable) => "unavailable",
        Err(NoKey::Untrusted) => "untrusted",
    }
}
