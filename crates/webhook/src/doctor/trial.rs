//! One trial: a copy of the delivery with something changed, verified for real. And how many of them there may be.

use std::cell::Cell;

use bytes::Bytes;
use hookgate_signature::{Delivery, Headers, Keys, Refusal, Tolerance};
use secrecy::SecretString;

use super::Case;
use crate::Provider;

/// The most copies of a delivery that are verified. The changes are fewer than half as many for a source with two
/// secrets; many sources, secrets or headers multiply some of them.
pub const TRIALS_MAX: usize = 1_000;

/// What is being examined, and how much of the bound is used.
pub(super) struct Examination<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) now: i64,
    tried: Cell<usize>,
}

/// The key of a trial.
#[derive(Clone, Copy)]
pub(super) enum Key<'t> {
    Texts(&'t [SecretString]),
    Bytes(&'t [u8]),
}

/// A changed copy.
#[derive(Clone)]
pub(super) struct Trial<'t> {
    pub(super) provider: Provider,
    pub(super) key: Key<'t>,
    pub(super) tolerance: Tolerance,
    pub(super) url: Option<&'t str>,
    pub(super) headers: Headers<'t>,
    pub(super) body: Bytes,
}

/// How a trial passed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fit {
    pub(super) slot: Option<usize>,
    /// The time that is against it all the same.
    pub(super) also: Option<Refusal>,
}

impl Fit {
    pub(super) fn of_slot(slot: usize) -> Self {
        Self {
            slot: Some(slot),
            also: None,
        }
    }

    /// The same with another slot.
    pub(super) fn at(self, slot: Option<usize>) -> Self {
        Self { slot, ..self }
    }
}

impl<'t> Trial<'t> {
    /// The delivery as it is.
    pub(super) fn of(case: &'t Case<'_>) -> Self {
        Self {
            provider: case.endpoint.provider,
            key: Key::Texts(case.endpoint.secrets),
            tolerance: case.endpoint.tolerance,
            url: case.delivery.url,
            headers: case.delivery.headers.clone(),
            body: case.delivery.body.clone(),
        }
    }

    fn keys(&self, tolerance: Tolerance) -> Option<Keys> {
        match self.key {
            Key::Texts(texts) => self.provider.keys(texts, tolerance).ok(),
            Key::Bytes(bytes) => Keys::of_bytes(self.provider.knowledge().scheme, bytes, tolerance),
        }
    }
}

impl<'a> Examination<'a> {
    pub(super) fn new(case: &'a Case<'a>, now: i64) -> Self {
        Self {
            case,
            now,
            tried: Cell::new(0),
        }
    }

    pub(super) fn tried(&self) -> usize {
        self.tried.get()
    }

    /// Whether the signature of the copy is good at any time, and whether it is at this one. Saved deliveries are
    /// old, so time must not hide what else is wrong.
    pub(super) fn fits(&self, trial: &Trial<'_>) -> Option<Fit> {
        if self.tried.get() >= TRIALS_MAX {
            return None;
        }
        self.tried.set(self.tried.get() + 1);
        let delivery = || Delivery {
            method: self.case.delivery.method,
            url: trial.url,
            headers: trial.headers.clone(),
            body: trial.body.clone(),
        };
        let at_any_time = trial.keys(Tolerance::Off)?;
        let slot = trial
            .provider
            .verify(&at_any_time, delivery(), self.now)
            .ok()?
            .slot();
        let also = trial
            .keys(trial.tolerance)
            .and_then(|keys| trial.provider.verify(&keys, delivery(), self.now).err());
        Some(Fit {
            slot: Some(slot),
            also,
        })
    }
}
