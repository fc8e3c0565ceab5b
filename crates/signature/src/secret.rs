//! The secrets of an endpoint, decoded and keyed once, and the comparison of what they expect with what
//! a header offers.

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit};
use ring::rand::SystemRandom;
use ring::signature::{EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls_pki_types::{SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use secrecy::{ExposeSecret, SecretString};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use subtle::{Choice, ConstantTimeEq};
use webpki::RawPublicKeyEntity;

use crate::Algorithm;

/// Length of an HMAC-SHA256 in bytes.
pub(crate) const MAC_BYTES: usize = 32;

/// Length of an ed25519 signature in bytes.
pub(crate) const ED25519_BYTES: usize = ed25519_dalek::SIGNATURE_LENGTH;

/// An HMAC-SHA256.
pub(crate) type Mac = [u8; MAC_BYTES];

/// A prepared secret. It has no `Debug`, so that it cannot be printed.
pub(crate) enum Secret {
    /// HMAC with the key's two blocks already absorbed; cloned for each message.
    Hmac(Box<Hmac<Sha256>>),
    /// The same with SHA-1.
    HmacSha1(Box<Hmac<Sha1>>),
    /// The same with SHA-512.
    HmacSha512(Box<Hmac<Sha512>>),
    /// Verifies only.
    Ed25519Public(VerifyingKey),
    /// Signs, and verifies what it signed.
    Ed25519Private(Box<SigningKey>),
    /// A public key as X.509 writes it. Verifies only.
    Public(Algorithm, Vec<u8>),
    /// Signs, and verifies what it signed.
    EcdsaPrivate(Box<EcdsaKeyPair>),
    /// Signs, and verifies what it signed.
    RsaPrivate(Box<RsaKeyPair>),
    /// Compared as it is.
    Token(SecretString),
    /// Known to the sender and part of what is signed; no key.
    Label(SecretString),
    /// One text that is the key of several algorithms.
    Several(Vec<Secret>),
}

/// A well-formed signature from a header, of a length that its algorithm can have.
pub(crate) enum Candidate {
    Mac(Mac),
    Sha1([u8; 20]),
    Sha512(Box<[u8; 64]>),
    Ed25519(ed25519_dalek::Signature),
    /// What only the verification can judge.
    PublicKey(Box<[u8]>),
}

impl Secret {
    /// An HMAC key of any length; `None` for an algorithm that is no HMAC.
    pub(crate) fn hmac(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        const ANY_LENGTH: &str = "HMAC takes a key of any length";
        Some(match algorithm {
            Algorithm::HmacSha256 => Self::Hmac(Box::new(KeyInit::new_from_slice(key).expect(ANY_LENGTH))),
            Algorithm::HmacSha1 => Self::HmacSha1(Box::new(KeyInit::new_from_slice(key).expect(ANY_LENGTH))),
            Algorithm::HmacSha512 => {
                Self::HmacSha512(Box::new(KeyInit::new_from_slice(key).expect(ANY_LENGTH)))
            }
            Algorithm::Ed25519 | Algorithm::EcdsaP256Sha256 | Algorithm::RsaPkcs1Sha256 => return None,
        })
    }

    /// Whether it can sign.
    pub(crate) fn can_sign(&self) -> bool {
        !matches!(self, Self::Ed25519Public(_) | Self::Public(..) | Self::Label(_))
    }

    /// The text of a label.
    pub(crate) fn label(&self) -> Option<&str> {
        match self {
            Self::Label(text) => Some(text.expose_secret()),
            _ => None,
        }
    }

    /// Signs the joined parts; `None` for a key that can only verify. A token is its own signature, and a secret of several algorithms signs with
    /// the first of them.
    pub(crate) fn sign(&self, message: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::Hmac(keyed) => Some(mac(&**keyed, message).to_vec()),
            Self::HmacSha1(keyed) => Some(mac(&**keyed, message).to_vec()),
            Self::HmacSha512(keyed) => Some(mac(&**keyed, message).to_vec()),
            Self::Ed25519Private(key) => Some(key.sign(&message.concat()).to_bytes().to_vec()),
            Self::EcdsaPrivate(key) => {
                let signature = key.sign(&SystemRandom::new(), &message.concat()).ok()?;
                Some(signature.as_ref().to_vec())
            }
            Self::RsaPrivate(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let random = SystemRandom::new();
                key.sign(&RSA_PKCS1_SHA256, &random, &message.concat(), &mut signature)
                    .ok()?;
                Some(signature)
            }
            Self::Token(token) => Some(token.expose_secret().as_bytes().to_vec()),
            Self::Several(secrets) => secrets.iter().find_map(|secret| secret.sign(message)),
            Self::Ed25519Public(_) | Self::Public(..) | Self::Label(_) => None,
        }
    }

    /// Whether this secret made one of the candidates.
    fn made(&self, message: &[&[u8]], candidates: &[Candidate]) -> bool {
        match self {
            Self::Hmac(keyed) => holds(candidates, &mac(&**keyed, message)),
            Self::HmacSha1(keyed) => holds(candidates, &mac(&**keyed, message)),
            Self::HmacSha512(keyed) => holds(candidates, &mac(&**keyed, message)),
            Self::Ed25519Public(key) => ed25519(key, message, candidates),
            Self::Ed25519Private(key) => ed25519(&key.verifying_key(), message, candidates),
            Self::Public(algorithm, spki) => signatures(message, candidates, |message, signature| {
                x509_key(*algorithm, spki, message, signature)
            }),
            Self::EcdsaPrivate(key) => {
                let public = UnparsedPublicKey::new(
                    &ring::signature::ECDSA_P256_SHA256_ASN1,
                    key.public_key().as_ref(),
                );
                signatures(message, candidates, |message, signature| {
                    public.verify(message, signature).is_ok()
                })
            }
            Self::RsaPrivate(key) => {
                let public = UnparsedPublicKey::new(
                    &ring::signature::RSA_PKCS1_2048_8192_SHA256,
                    key.public_key().as_ref(),
                );
                signatures(message, candidates, |message, signature| {
                    public.verify(message, signature).is_ok()
                })
            }
            Self::Several(secrets) => secrets.iter().any(|secret| secret.made(message, candidates)),
            Self::Token(_) | Self::Label(_) => false,
        }
    }

    /// Whether this token is what was sent. The time depends on the lengths only, which hide nothing.
    pub(crate) fn is_token(&self, sent: &[u8]) -> bool {
        match self {
            Self::Token(token) => token.expose_secret().as_bytes().ct_eq(sent).into(),
            _ => false,
        }
    }
}

/// The first secret that made any of the candidates over the joined parts of the message.
pub(crate) fn first_match(secrets: &[Secret], message: &[&[u8]], candidates: &[Candidate]) -> Option<usize> {
    secrets.iter().position(|secret| secret.made(message, candidates))
}

fn mac<M: Clone + hmac::Mac>(keyed: &M, message: &[&[u8]]) -> hmac::digest::Output<M> {
    let mut mac = keyed.clone();
    message.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes()
}

/// Compares with every candidate of the same length, without stopping at the first difference or at the first match.
fn holds(candidates: &[Candidate], expected: &[u8]) -> bool {
    let mut found = Choice::from(0);
    for candidate in candidates {
        found |= match candidate {
            Candidate::Mac(offered) => offered.as_slice().ct_eq(expected),
            Candidate::Sha1(offered) => offered.as_slice().ct_eq(expected),
            Candidate::Sha512(offered) => offered.as_slice().ct_eq(expected),
            Candidate::Ed25519(_) | Candidate::PublicKey(_) => Choice::from(0),
        };
    }
    found.into()
}

/// Public-key verification has no secret to leak by its timing. The message is joined because the
/// streaming form of ed25519 lacks the strict checks.
fn ed25519(key: &VerifyingKey, message: &[&[u8]], candidates: &[Candidate]) -> bool {
    let mut offered = candidates
        .iter()
        .filter_map(|candidate| match candidate {
            Candidate::Ed25519(signature) => Some(signature),
            _ => None,
        })
        .peekable();
    if offered.peek().is_none() {
        return false;
    }
    let message = message.concat();
    offered.any(|signature| key.verify_strict(&message, signature).is_ok())
}

fn signatures(message: &[&[u8]], candidates: &[Candidate], verifies: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let message = message.concat();
    candidates.iter().any(|candidate| match candidate {
        Candidate::PublicKey(signature) => verifies(&message, signature),
        _ => false,
    })
}

/// The library that checks certificates reads the key, so that nothing here takes DER apart.
fn x509_key(algorithm: Algorithm, spki: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let Some(verifies) = x509_algorithm(algorithm) else {
        return false;
    };
    let spki = SubjectPublicKeyInfoDer::from(spki);
    RawPublicKeyEntity::try_from(&spki)
        .is_ok_and(|key| key.verify_signature(verifies, message, signature).is_ok())
}

/// The algorithms whose public keys come as X.509 writes them.
pub(crate) fn x509_algorithm(algorithm: Algorithm) -> Option<&'static dyn SignatureVerificationAlgorithm> {
    match algorithm {
        Algorithm::EcdsaP256Sha256 => Some(webpki::ring::ECDSA_P256_SHA256),
        Algorithm::RsaPkcs1Sha256 => Some(webpki::ring::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Ed25519 => Some(webpki::ring::ED25519),
        Algorithm::HmacSha1 | Algorithm::HmacSha256 | Algorithm::HmacSha512 => None,
    }
}
