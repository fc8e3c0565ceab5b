//! For senders that sign parts of a body, or a text that has to be worked out from a request: their own file reads
//! which bytes are said to be signed and by which signatures, as [`Seal`]s. Every seal of a delivery has to hold.

use crate::scheme::Match;
use crate::secret::{Candidate, Secret, first_match};
use crate::{Algorithm, Encoding, KeyForm, Refusal};

/// A scheme whose signed text is read by the sender's own file.
#[derive(Debug, Clone, Copy)]
pub struct Detached {
    /// The header or field of the signature, for messages.
    pub header: &'static str,
    /// What is signed, in words.
    pub signs: &'static str,
    /// Which functions may sign, the usual one first. The secret's text is the key of each.
    pub algorithms: &'static [Algorithm],
    /// How the secret's text becomes the key.
    pub key: KeyForm,
}

/// Which bytes are said to be signed, and by what. Nothing about it is believed yet.
pub struct Seal {
    /// Texts of which any may be the signed one, where senders disagree about a detail.
    pub texts: Vec<Vec<u8>>,
    /// Signatures of which any may match.
    pub signatures: Vec<Offered>,
    /// When it was signed, unix seconds, where a time is part of every text.
    pub signed_at: Option<i64>,
}

/// A well-formed signature that somebody offers.
pub struct Offered(Candidate);

impl Offered {
    /// Reads a signature; `None` if this cannot be one of the algorithm.
    pub fn read(algorithm: Algorithm, encoding: Encoding, text: &[u8]) -> Option<Self> {
        encoding.read(algorithm, text).map(Self)
    }
}

impl Seal {
    fn verify(self, secrets: &[Secret]) -> Result<Match, Refusal> {
        let candidates: Vec<_> = self.signatures.into_iter().map(|offered| offered.0).collect();
        let slot = self
            .texts
            .iter()
            .find_map(|text| first_match(secrets, &[text], &candidates));
        Ok(Match {
            slot: slot.ok_or(Refusal::BadSignature)?,
            signed_at: self.signed_at,
        })
    }
}

/// Verifies every seal. Says of the first which secret it was; no seal is no signature.
pub(crate) fn verify(secrets: &[Secret], header: &'static str, seals: Vec<Seal>) -> Result<Match, Refusal> {
    let mut first = None;
    for seal in seals {
        let matched = seal.verify(secrets)?;
        first.get_or_insert(matched);
    }
    first.ok_or(Refusal::MissingSignature(header))
}
