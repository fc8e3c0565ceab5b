//! A static text in one header, compared and never hashed (Asaas, RevenueCat, GitLab). Nothing of the delivery is
//! signed: who has seen one delivery can send any other. It keeps strangers out and no more.

use crate::scheme::Match;
use crate::secret::Secret;
use crate::{Delivery, Refusal};

/// A static text in one header.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// Its header. The whole value counts, a `Bearer ` before it included.
    pub header: &'static str,
}

impl Token {
    pub(super) fn verify(&self, secrets: &[Secret], delivery: &Delivery<'_>) -> Result<Match, Refusal> {
        let sent = delivery.headers.required(self.header)?;
        let slot = secrets.iter().position(|secret| secret.is_token(sent));
        Ok(Match {
            slot: slot.ok_or(Refusal::BadSignature)?,
            signed_at: None,
        })
    }

    pub(super) fn sign(&self, secret: &Secret) -> Option<Vec<(&'static str, String)>> {
        let token = String::from_utf8(secret.sign(&[])?).ok()?;
        Some(vec![(self.header, token)])
    }
}
