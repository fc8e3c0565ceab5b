//! The secrets of an endpoint, decoded and keyed once, and the comparison of what they expect with what
//! a header offers.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// Length of an HMAC-SHA256 in bytes.
pub(crate) const MAC_BYTES: usize = 32;

/// Length of an ed25519 signature in bytes.
pub(crate) const ED25519_BYTES: usize = ed25519_dalek::SIGNATURE_LENGTH;

/// Secrets are pasted by people, with and without the `=` at the end.
const UNPADDED_TOO: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An HMAC-SHA256.
pub(crate) type Mac = [u8; MAC_BYTES];

/// A prepared secret. It has no `Debug`, so that it cannot be printed.
pub(crate) enum Secret {
    /// HMAC-SHA256 with the key's two blocks already absorbed; cloned for each message.
    Hmac(Box<Hmac<Sha256>>),
    /// Verifies only.
    Ed25519Public(VerifyingKey),
    /// Signs, and verifies what it signed.
    Ed25519Private(Box<SigningKey>),
}

/// A well-formed signature from a header.
pub(crate) enum Candidate {
    Mac(Mac),
    Ed25519(ed25519_dalek::Signature),
}

/// A signature to be sent.
pub(crate) enum Signature {
    Mac(Mac),
    Ed25519([u8; ED25519_BYTES]),
}

impl Secret {
    /// A secret whose text is the key. Space around it is refused and not trimmed: a provider that was
    /// given the space signs with it, and guessing would hide which of the two is configured.
    pub(crate) fn text(text: &str) -> Result<Self, &'static str> {
        not_blank(text)?;
        Ok(Self::hmac(text.as_bytes()))
    }

    /// A secret as Standard Webhooks writes it: base64 after `whsec_` (or bare) for an HMAC key of 24 to
    /// 64 bytes, after `whpk_` for an ed25519 public key, after `whsk_` for a private one.
    pub(crate) fn standard_webhooks(text: &str) -> Result<Self, &'static str> {
        not_blank(text)?;
        if let Some(public) = text.strip_prefix("whpk_") {
            return ed25519_public(public);
        }
        if let Some(private) = text.strip_prefix("whsk_") {
            return ed25519_private(private);
        }
        let key = decode(text.strip_prefix("whsec_").unwrap_or(text))
            .ok_or("it is not base64; the form is `whsec_` and the base64 of 24 to 64 bytes")?;
        match key.len() {
            24..=64 => Ok(Self::hmac(&key)),
            _ => {
                Err("its key is not 24 to 64 bytes long; the form is `whsec_` and the base64 of these bytes")
            }
        }
    }

    fn hmac(key: &[u8]) -> Self {
        let keyed = Hmac::new_from_slice(key).expect("HMAC takes a key of any length");
        Self::Hmac(Box::new(keyed))
    }

    /// The HMAC of the joined parts; `None` for a key of another kind.
    pub(crate) fn mac(&self, message: &[&[u8]]) -> Option<Mac> {
        let Self::Hmac(keyed) = self else { return None };
        let mut mac = Hmac::clone(keyed);
        message.iter().for_each(|part| mac.update(part));
        Some(mac.finalize().into_bytes().into())
    }

    /// Signs the joined parts; `None` for a key that can only verify.
    pub(crate) fn sign(&self, message: &[&[u8]]) -> Option<Signature> {
        match self {
            Self::Hmac(_) => self.mac(message).map(Signature::Mac),
            Self::Ed25519Private(key) => Some(Signature::Ed25519(key.sign(&message.concat()).to_bytes())),
            Self::Ed25519Public(_) => None,
        }
    }

    /// Whether this secret made one of the candidates.
    fn made(&self, message: &[&[u8]], candidates: &[Candidate]) -> bool {
        match self {
            Self::Hmac(_) => self
                .mac(message)
                .is_some_and(|expected| holds(candidates, &expected)),
            Self::Ed25519Public(key) => verifies(key, message, candidates),
            Self::Ed25519Private(key) => verifies(&key.verifying_key(), message, candidates),
        }
    }
}

/// The first secret that made any of the candidates over the joined parts of the message.
pub(crate) fn first_match(secrets: &[Secret], message: &[&[u8]], candidates: &[Candidate]) -> Option<usize> {
    secrets.iter().position(|secret| secret.made(message, candidates))
}

/// Compares with every candidate, without stopping at the first difference or at the first match.
fn holds(candidates: &[Candidate], expected: &Mac) -> bool {
    let mut found = Choice::from(0);
    for candidate in candidates {
        if let Candidate::Mac(offered) = candidate {
            found |= offered.ct_eq(expected);
        }
    }
    found.into()
}

/// Public-key verification has no secret to leak by its timing. The message is joined because the
/// streaming form of ed25519 lacks the strict checks.
fn verifies(key: &VerifyingKey, message: &[&[u8]], candidates: &[Candidate]) -> bool {
    let mut signatures = candidates
        .iter()
        .filter_map(|candidate| match candidate {
            Candidate::Ed25519(signature) => Some(signature),
            Candidate::Mac(_) => None,
        })
        .peekable();
    if signatures.peek().is_none() {
        return false;
    }
    let message = message.concat();
    signatures.any(|signature| key.verify_strict(&message, signature).is_ok())
}

fn not_blank(text: &str) -> Result<(), &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty; copy the signing secret from the provider's settings");
    }
    if text.trim() != text {
        return Err("it has a space or a line break at one end; remove it, a secret counts byte for byte");
    }
    Ok(())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    UNPADDED_TOO.decode(text).ok()
}

fn ed25519_public(text: &str) -> Result<Secret, &'static str> {
    let problem = "it is not an ed25519 public key; the form is `whpk_` and the base64 of 32 bytes";
    let bytes: [u8; 32] = decode(text).and_then(|key| key.try_into().ok()).ok_or(problem)?;
    match VerifyingKey::from_bytes(&bytes) {
        Ok(key) if !key.is_weak() => Ok(Secret::Ed25519Public(key)),
        Ok(_) | Err(_) => Err(problem),
    }
}

/// The specification does not say whether a private key is the seed or the seed and its public half;
/// libraries write both.
fn ed25519_private(text: &str) -> Result<Secret, &'static str> {
    let problem = "it is not an ed25519 private key; the form is `whsk_` and the base64 of 32 or 64 bytes";
    let bytes = decode(text).ok_or(problem)?;
    let key = match (<[u8; 32]>::try_from(&*bytes), <[u8; 64]>::try_from(&*bytes)) {
        (Ok(seed), _) => SigningKey::from_bytes(&seed),
        (_, Ok(pair)) => SigningKey::from_keypair_bytes(&pair).map_err(|_| problem)?,
        _ => return Err(problem),
    };
    Ok(Secret::Ed25519Private(Box::new(key)))
}
