//! The arithmetic of signatures: which function, how its result is written, and how a secret's text becomes a key.
//!
//! Every sender's scheme is one choice out of each of the three lists, and some order in which bytes are joined.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::secret::{Candidate, ED25519_BYTES, MAC_BYTES};

/// The same complaint about a whole header and about what stands behind its prefix.
macro_rules! problems {
    ($form:literal) => {
        (
            concat!("it is not ", $form),
            concat!("it is not the documented prefix and ", $form),
        )
    };
}

/// Which function signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC with SHA-1. Only where a sender offers nothing better; as a MAC it is still unbroken.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-512.
    HmacSha512,
    /// Ed25519, checked strictly.
    Ed25519,
    /// ECDSA on P-256 with SHA-256; signatures in DER.
    EcdsaP256Sha256,
    /// RSA with PKCS #1 v1.5 padding and SHA-256.
    RsaPkcs1Sha256,
}

/// How a signature is written in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Lower-case hexadecimal.
    Hex,
    /// Standard base64 with padding.
    Base64,
}

/// How the text of a secret becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyForm {
    /// The text itself is the key.
    Text,
    /// Hexadecimal, either case.
    Hex,
    /// Base64, with or without its padding.
    Base64,
    /// As Standard Webhooks writes keys: `whsec_`, `whpk_` or `whsk_` and base64.
    StandardWebhooks,
    /// A public or private key: PEM, or the base64 of its DER; raw Ed25519 keys in hexadecimal.
    KeyPair,
    /// As `KeyPair`; any other text is a label that the sender knows and signs, such as the id of a subscription.
    LabelOrKeyPair,
}

impl Algorithm {
    /// As people write it, e.g. `HMAC-SHA256`.
    pub fn title(self) -> &'static str {
        match self {
            Self::HmacSha1 => "HMAC-SHA1",
            Self::HmacSha256 => "HMAC-SHA256",
            Self::HmacSha512 => "HMAC-SHA512",
            Self::Ed25519 => "Ed25519",
            Self::EcdsaP256Sha256 => "ECDSA P-256 with SHA-256",
            Self::RsaPkcs1Sha256 => "RSA PKCS #1 v1.5 with SHA-256",
        }
    }

    /// A signature of this algorithm, if the bytes can be one.
    pub(crate) fn candidate(self, bytes: &[u8]) -> Option<Candidate> {
        Some(match self {
            Self::HmacSha1 => Candidate::Sha1(bytes.try_into().ok()?),
            Self::HmacSha256 => Candidate::Mac(bytes.try_into().ok()?),
            Self::HmacSha512 => Candidate::Sha512(Box::new(bytes.try_into().ok()?)),
            Self::Ed25519 => {
                let bytes: [u8; ED25519_BYTES] = bytes.try_into().ok()?;
                Candidate::Ed25519(ed25519_dalek::Signature::from_bytes(&bytes))
            }
            Self::EcdsaP256Sha256 | Self::RsaPkcs1Sha256 => Candidate::PublicKey(bytes.into()),
        })
    }

    /// What is wrong with a header that holds no such signature, and what it has to hold.
    pub(crate) fn problem(self, encoding: Encoding, after_prefix: bool) -> &'static str {
        let (alone, prefixed) = match (self, encoding) {
            (Self::HmacSha1, Encoding::Hex) => problems!("40 lower-case hex digits"),
            (Self::HmacSha1, Encoding::Base64) => problems!("the base64 of 20 bytes"),
            (Self::HmacSha256, Encoding::Hex) => problems!("64 lower-case hex digits"),
            (Self::HmacSha256, Encoding::Base64) => problems!("the base64 of 32 bytes"),
            (Self::HmacSha512 | Self::Ed25519, Encoding::Hex) => problems!("128 lower-case hex digits"),
            (Self::HmacSha512 | Self::Ed25519, Encoding::Base64) => problems!("the base64 of 64 bytes"),
            (Self::EcdsaP256Sha256 | Self::RsaPkcs1Sha256, Encoding::Hex) => {
                problems!("lower-case hex digits")
            }
            (Self::EcdsaP256Sha256 | Self::RsaPkcs1Sha256, Encoding::Base64) => problems!("base64"),
        };
        if after_prefix { prefixed } else { alone }
    }
}

impl Encoding {
    /// As people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hex => "hex",
            Self::Base64 => "base64",
        }
    }

    /// The signature that `text` writes, if this is its one canonical spelling. The `hex` crate also reads
    /// capitals, which the senders never write and their SDKs refuse.
    pub(crate) fn read(self, algorithm: Algorithm, text: &[u8]) -> Option<Candidate> {
        match (self, algorithm) {
            (Self::Hex, _) if text.iter().any(u8::is_ascii_uppercase) => None,
            // The common case without an allocation.
            (Self::Hex, Algorithm::HmacSha256) => {
                let mut mac = [0; MAC_BYTES];
                hex::decode_to_slice(text, &mut mac).ok()?;
                Some(Candidate::Mac(mac))
            }
            (Self::Hex, _) => algorithm.candidate(&hex::decode(text).ok().filter(|bytes| !bytes.is_empty())?),
            (Self::Base64, _) => {
                algorithm.candidate(&STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty())?)
            }
        }
    }

    /// Writes a signature.
    pub(crate) fn write(self, signature: &[u8]) -> String {
        match self {
            Self::Hex => hex::encode(signature),
            Self::Base64 => STANDARD.encode(signature),
        }
    }
}
