//! From the text that somebody pasted into a configuration to a key. Every refusal says what form is accepted, and
//! never the secret.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ed25519_dalek::{SigningKey, VerifyingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, RsaKeyPair};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use webpki::RawPublicKeyEntity;

use crate::secret::Secret;
use crate::{Algorithm, KeyForm};

/// Secrets are pasted by people, with and without the `=` at the end.
const UNPADDED_TOO: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Longer than any label.
const LABEL_BYTES_MAX: usize = 63;

/// Whether a text that is no key can be a label. A piece of a mangled key must not pass for one, or the key would be
/// missing without a word: PEM has its marks, and lines of 64 characters.
fn is_label(text: &str) -> bool {
    text.len() <= LABEL_BYTES_MAX && !text.starts_with("-----") && !text.contains(['\n', '\r', ' '])
}

impl Secret {
    /// Prepares a configured text.
    pub(crate) fn read(algorithm: Algorithm, form: KeyForm, text: &str) -> Result<Self, &'static str> {
        let text = match form {
            KeyForm::KeyPair | KeyForm::LabelOrKeyPair => without_ends(text),
            KeyForm::Text | KeyForm::Hex | KeyForm::Base64 | KeyForm::StandardWebhooks => text,
        };
        not_blank(text)?;
        match form {
            KeyForm::Text => hmac(algorithm, text.as_bytes()),
            KeyForm::Hex => hmac(
                algorithm,
                &hex::decode(text).map_err(|_| "it is not hexadecimal")?,
            ),
            KeyForm::Base64 => hmac(algorithm, &decode(text).ok_or("it is not base64")?),
            KeyForm::StandardWebhooks => standard_webhooks(text),
            KeyForm::KeyPair => key_pair(algorithm, text),
            KeyForm::LabelOrKeyPair => match key_pair(algorithm, text) {
                Err(_) if is_label(text) => Ok(Self::Label(text.into())),
                read => read,
            },
        }
    }

    /// A secret that is compared and never hashed.
    pub(crate) fn token(text: &str) -> Result<Self, &'static str> {
        not_blank(text)?;
        Ok(Self::Token(text.into()))
    }

    /// One text as the key of each algorithm.
    pub(crate) fn several(algorithms: &[Algorithm], form: KeyForm, text: &str) -> Result<Self, &'static str> {
        match algorithms {
            [one] => Self::read(*one, form, text),
            all => Ok(Self::Several(
                all.iter()
                    .map(|algorithm| Self::read(*algorithm, form, text))
                    .collect::<Result<_, _>>()?,
            )),
        }
    }

    /// A public key as X.509 writes it.
    pub(crate) fn x509(algorithm: Algorithm, spki: &[u8]) -> Result<Self, &'static str> {
        match RawPublicKeyEntity::try_from(&SubjectPublicKeyInfoDer::from(spki)) {
            Ok(_) => Ok(Self::Public(algorithm, spki.to_vec())),
            Err(_) => Err("it is not a public key"),
        }
    }
}

fn hmac(algorithm: Algorithm, key: &[u8]) -> Result<Secret, &'static str> {
    Secret::hmac(algorithm, key).ok_or("a public-key algorithm takes a key pair, not a shared secret")
}

/// A file of PEM ends with a line break, which is no part of the key.
fn without_ends(text: &str) -> &str {
    match text.trim_start().starts_with("-----BEGIN ") {
        true => text.trim(),
        false => text,
    }
}

/// Space around a secret is refused here and not trimmed, so that an embedder learns of it. (A configuration trims lines
/// and lists, as people write them.)
fn not_blank(text: &str) -> Result<(), &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty; copy the signing secret from the provider's settings");
    }
    if text.trim() != text {
        return Err("it has a space or a line break at one end; remove it, a secret counts byte for byte");
    }
    Ok(())
}

/// Base64 after `whsec_` (or bare) for an HMAC key of 24 to 64 bytes, after `whpk_` for an ed25519 public key, after
/// `whsk_` for a private one.
fn standard_webhooks(text: &str) -> Result<Secret, &'static str> {
    if let Some(public) = text.strip_prefix("whpk_") {
        let problem = "it is not an ed25519 public key; the form is `whpk_` and the base64 of 32 bytes";
        return ed25519_public(&decode(public).ok_or(problem)?).ok_or(problem);
    }
    if let Some(private) = text.strip_prefix("whsk_") {
        let problem =
            "it is not an ed25519 private key; the form is `whsk_` and the base64 of 32 or 64 bytes";
        return ed25519_private(&decode(private).ok_or(problem)?).ok_or(problem);
    }
    let key = decode(text.strip_prefix("whsec_").unwrap_or(text))
        .ok_or("it is not base64; the form is `whsec_` and the base64 of 24 to 64 bytes")?;
    match key.len() {
        24..=64 => hmac(Algorithm::HmacSha256, &key),
        _ => Err("its key is not 24 to 64 bytes long; the form is `whsec_` and the base64 of these bytes"),
    }
}

fn key_pair(algorithm: Algorithm, text: &str) -> Result<Secret, &'static str> {
    match algorithm {
        Algorithm::Ed25519 => match text.starts_with("whsk_") {
            true => standard_webhooks(text),
            false => hex::decode(text)
                .ok()
                .and_then(|key| ed25519_public(&key))
                .ok_or("it is not an ed25519 public key; the form is 64 hex digits"),
        },
        Algorithm::EcdsaP256Sha256 => {
            let problem = "it is not a P-256 key; the form is PEM, or the base64 of the DER of a public key";
            let der = der(text).ok_or(problem)?;
            let private = || {
                let random = SystemRandom::new();
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random).ok()
            };
            match Secret::x509(algorithm, &der) {
                Ok(public) => Ok(public),
                Err(_) => private()
                    .map(|key| Secret::EcdsaPrivate(Box::new(key)))
                    .ok_or(problem),
            }
        }
        Algorithm::RsaPkcs1Sha256 => {
            let problem = "it is not an RSA key; the form is PEM, or the base64 of the DER of a public key";
            let der = der(text).ok_or(problem)?;
            match Secret::x509(algorithm, &der) {
                Ok(public) => Ok(public),
                Err(_) => RsaKeyPair::from_pkcs8(&der)
                    .map(|key| Secret::RsaPrivate(Box::new(key)))
                    .map_err(|_| problem),
            }
        }
        Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 => {
            Err("an HMAC takes a shared secret, not a key pair")
        }
    }
}

/// The bytes of a PEM block, or of base64 on any number of lines.
fn der(text: &str) -> Option<Vec<u8>> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"));
    decode(&lines.collect::<String>())
}

fn decode(text: &str) -> Option<Vec<u8>> {
    UNPADDED_TOO.decode(text).ok()
}

fn ed25519_public(bytes: &[u8]) -> Option<Secret> {
    match VerifyingKey::from_bytes(bytes.try_into().ok()?) {
        Ok(key) if !key.is_weak() => Some(Secret::Ed25519Public(key)),
        Ok(_) | Err(_) => None,
    }
}

/// Nobody says whether a private key is the seed or the seed and its public half; libraries write both.
fn ed25519_private(bytes: &[u8]) -> Option<Secret> {
    let key = match (<[u8; 32]>::try_from(bytes), <[u8; 64]>::try_from(bytes)) {
        (Ok(seed), _) => SigningKey::from_bytes(&seed),
        (_, Ok(pair)) => SigningKey::from_keypair_bytes(&pair).ok()?,
        _ => return None,
    };
    Some(Secret::Ed25519Private(Box::new(key)))
}
