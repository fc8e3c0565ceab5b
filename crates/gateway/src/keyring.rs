//! The keys of one source. They can be exchanged while deliveries are under way: each keeps to its end the
//! keys that were valid when it began, so that no exchange refuses what is in hand.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hookgate_signature::{BadSecret, Delivery, Keys, Refusal, Tolerance, Verified};
use hookgate_webhook::{Provider, SourceName};
use prometheus::IntCounter;
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::{SecretOrigin, SourceConfig};
use crate::metrics::Metrics;

/// Exchangeable keys.
pub struct Keyring {
    source: SourceName,
    provider: Provider,
    tolerance: Tolerance,
    origin: SecretOrigin,
    valid: ArcSwap<ValidKeys>,
    metrics: Arc<Metrics>,
}

/// Keys that are valid, or were when somebody took them.
pub struct ValidKeys {
    provider: Provider,
    keys: Keys,
    secrets: Vec<SecretString>,
    used: Vec<IntCounter>,
}

/// What an exchange came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Exchanged {
    /// Other secrets are valid now.
    Changed {
        /// How many were valid.
        before: usize,
        /// How many are.
        now: usize,
    },
    /// They are the same, in the same order.
    Unchanged,
}

impl Keyring {
    /// The keys that a source starts with.
    ///
    /// # Errors
    /// [`BadSecret`] if a secret is of no use to the provider's scheme.
    pub fn new(source: &SourceConfig, metrics: &Arc<Metrics>) -> Result<Self, BadSecret> {
        let secrets = source.secrets.clone();
        let valid = ValidKeys {
            keys: source.provider.keys(&secrets, source.tolerance)?,
            provider: source.provider,
            used: metrics.secrets.slots(source.name.as_str(), secrets.len()),
            secrets,
        };
        Ok(Self {
            source: source.name.clone(),
            provider: source.provider,
            tolerance: source.tolerance,
            origin: source.secret_origin.clone(),
            valid: ArcSwap::from_pointee(valid),
            metrics: Arc::clone(metrics),
        })
    }

    /// Where its secrets come from.
    pub fn origin(&self) -> &SecretOrigin {
        &self.origin
    }

    /// The keys of this moment, for one delivery from its beginning to its end.
    pub fn valid(&self) -> Arc<ValidKeys> {
        self.valid.load_full()
    }

    /// What makes these secrets useless, if anything does.
    pub fn problem_of(&self, secrets: &[SecretString]) -> Option<BadSecret> {
        self.provider.keys(secrets, self.tolerance).err()
    }

    /// Makes these secrets the valid ones, for deliveries that begin from now on.
    ///
    /// # Errors
    /// [`BadSecret`] if one of them is of no use; nothing changes then.
    pub fn exchange(&self, secrets: Vec<SecretString>) -> Result<Exchanged, BadSecret> {
        let (before, now) = (self.valid(), secrets.len());
        if before.are(&secrets) {
            return Ok(Exchanged::Unchanged);
        }
        let (name, before) = (self.source.as_str(), before.secrets.len());
        let next = ValidKeys {
            keys: self.provider.keys(&secrets, self.tolerance)?,
            provider: self.provider,
            used: self.metrics.secrets.slots(name, now),
            secrets,
        };
        self.valid.store(Arc::new(next));
        self.metrics.secrets.forget_slots(name, now..before);
        Ok(Exchanged::Changed { before, now })
    }
}

/// Whether two lists hold the same secrets in the same order.
pub fn same(one: &[SecretString], other: &[SecretString]) -> bool {
    let exposed = SecretString::expose_secret;
    one.iter().map(exposed).eq(other.iter().map(exposed))
}

impl ValidKeys {
    /// Whether they were made of just these secrets.
    pub fn are(&self, secrets: &[SecretString]) -> bool {
        same(&self.secrets, secrets)
    }

    /// Verifies a delivery at `now`, unix seconds, and counts the secret that did it.
    ///
    /// # Errors
    /// As [`Provider::verify`].
    pub fn verify<'a>(&self, delivery: Delivery<'a>, now: i64) -> Result<Verified<'a>, Refusal> {
        self.counted(self.provider.verify(&self.keys, delivery, now))
    }

    /// Whether a key is missing that the delivery has to name, as PayPal's deliveries do. Until it is there, none
    /// matches.
    pub fn need_a_named_key(&self) -> bool {
        self.keys.needs_a_named_key()
    }

    /// As [`Self::verify`], with the key that the delivery named and that somebody has found to be trusted.
    ///
    /// # Errors
    /// As [`Provider::verify`]; also if this is no key.
    pub fn verify_with<'a>(
        &self,
        named: &[u8],
        delivery: Delivery<'a>,
        now: i64,
    ) -> Result<Verified<'a>, Refusal> {
        let keys = self.keys.naming(named).map_err(|_| Refusal::BadSignature)?;
        self.counted(self.provider.verify(&keys, delivery, now))
    }

    fn counted<'a>(&self, verified: Result<Verified<'a>, Refusal>) -> Result<Verified<'a>, Refusal> {
        let used = verified
            .as_ref()
            .ok()
            .and_then(|verified| self.used.get(verified.slot()));
        used.inspect(|used| used.inc());
        verified
    }
}
